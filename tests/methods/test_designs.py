"""The first points of a study need no model, and no torch."""

from __future__ import annotations

import subprocess
import sys

from raybo.methods.registry import METHODS

SCRIPT = """
import sys
import raybo

for method in {methods}:
    opt = raybo.Optimizer({{"x": raybo.Float(0, 1), "y": raybo.Int(0, 9)}}, method=method)
    opt.ask(2)
    if "torch" in sys.modules:
        sys.exit(method)
box = raybo.Optimizer(raybo.Box(10**9, low=-1.0, high=1.0))
box.ask(2)
assert "torch" not in sys.modules
"""


def test_the_first_points_are_proposed_without_torch() -> None:
    script = SCRIPT.format(methods=list(METHODS))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
