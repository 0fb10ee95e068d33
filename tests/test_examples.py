"""Every example runs with a tiny budget, as a user would run it, and writes its report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.solvers.lp_solve import libraries

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
WITHOUT_REPORT = {"ask_tell", "high_dimensional"}


@pytest.mark.ray
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    if path.stem == "configure_solver":
        try:
            libraries()
        except DatasetError as error:
            pytest.skip(str(error))
    assert len(path.read_text().splitlines()) <= 60
    done = subprocess.run(
        [sys.executable, str(path), "--trials", "6"],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": "local"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "best" in done.stdout
    if path.stem not in WITHOUT_REPORT:
        report = (tmp_path / f"{path.stem}.html").read_text()
        assert "<h1" in report or "<table" in report  # raybo's own, or Ray Tune's results
