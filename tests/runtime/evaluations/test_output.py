"""What objectives print."""

# ruff: noqa: T201  (printing is what is tested)

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from raybo.runtime.evaluations.output import MAX_CHARACTERS, output_of


def test_lines_are_marked_with_their_trial_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with output_of(17, str(tmp_path)):
        print("one\ntwo", end=" ")
        print("words")
        print("no", file=sys.stderr)
        sys.stdout.close()
    print("after")
    shown = capsys.readouterr()
    assert shown.out == "trial 17 | one\ntrial 17 | two words\nafter\n"
    assert shown.err == "trial 17 | no\n"
    assert (tmp_path / "output" / "17.txt").read_text() == "one\ntwo words\nno\n"


def test_a_silent_trial_leaves_no_file_and_a_loud_one_a_bounded_one(tmp_path: Path) -> None:
    with output_of(0, str(tmp_path)):
        pass
    with output_of(1, str(tmp_path)):
        print("x" * 2 * MAX_CHARACTERS)
    assert [path.name for path in (tmp_path / "output").iterdir()] == ["1.txt"]
    assert (tmp_path / "output" / "1.txt").stat().st_size == MAX_CHARACTERS


@pytest.mark.parametrize("folder", [None, "/no/such/folder"])
def test_where_the_study_is_not_seen_lines_are_marked_only(
    folder: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with output_of(2, folder):
        print("hello")
    assert capsys.readouterr().out == "trial 2 | hello\n"
