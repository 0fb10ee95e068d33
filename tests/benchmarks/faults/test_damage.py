"""Cut and flipped journals are noticed, and the check can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from raybo.benchmarks.faults.damage import count_bad_cuts, count_unnoticed_flips
from raybo.study.journal.journal import JOURNAL_FILE, Journal


def journal_bytes(folder: Path) -> bytes:
    """Return the bytes of a journal of four trials."""
    journal = Journal(folder)
    for number in range(4):
        journal.append({"kind": "asked", "number": number, "config": {"x": number / 8}})
        journal.append({"kind": "done", "number": number, "value": number + 0.5})
    journal.close()
    return (folder / JOURNAL_FILE).read_bytes()


def test_cuts_and_flips_of_a_journal_are_noticed(tmp_path: Path) -> None:
    data = journal_bytes(tmp_path)
    cuts, bad = count_bad_cuts(data, records=2)
    assert cuts == sum(map(len, data.splitlines(keepends=True)[-2:])) + 1
    assert (bad, count_unnoticed_flips(data, flips=40)) == (0, 0)


def test_a_cut_that_loses_a_whole_record_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = journal_bytes(tmp_path)
    monkeypatch.setattr("raybo.study.journal.journal._complete_record", lambda *_: None)
    assert count_bad_cuts(data, records=2)[1] == 2  # the two cuts before a newline
