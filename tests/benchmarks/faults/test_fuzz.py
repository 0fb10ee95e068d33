"""Files that somebody made to break raybo; `raybo bench chaos --only hostile` tries more."""

from __future__ import annotations

from pathlib import Path

import pytest

from raybo.benchmarks.faults.fuzz import KINDS, fuzz


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")  # of Ray, about bounds that make no sense
def test_only_errors_of_raybo_come_out(kind: str, tmp_path: Path) -> None:
    found = fuzz(kind, 50, tmp_path)
    assert found.n_files >= 50
    assert not found.errors
