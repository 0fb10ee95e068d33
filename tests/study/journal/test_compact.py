"""The short journal: the same record, whatever happens to it or while it is written."""

from __future__ import annotations

import errno
import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raybo.errors import JournalError
from raybo.study.journal import compact as module
from raybo.study.journal.compact import COMPACT_FILE, compact, read_record
from raybo.study.journal.journal import JOURNAL_FILE, Journal, read_journal
from raybo.study.journal.record import Record
from raybo.study.journal.storage import FolderStore
from raybo.study.outcome import Outcome

STORED = Path(__file__).parents[2] / "data" / "stored"
FILES = {JOURNAL_FILE, COMPACT_FILE, "journal.lock"}
SPAN = {"attempts": 1, "started": 101.0, "finished": 102.5}
EVENTS: list[dict[str, Any]] = [
    {"kind": "header", "name": "s", "mode": "max", "constraints": {"a": [None, 5.0]}, "seed": 3},
    {"kind": "session", "id": "a", "time": 100.0, "settings": {"workers": 2}},
    {"kind": "given", "number": 0, "config": {"x": 9}, "value": 2, "extra": {"a": 1}},
    {"kind": "points", "configs": [{"x": 1}, {"x": 2}]},
    {"kind": "asked", "number": 1, "config": {"x": 1}, "source": "point"},
    {"kind": "asked", "number": 3, "config": {"x": 5, "y": "é"}, "memo": {"z": [1], "q": '"'}},
    {"kind": "asked", "number": 2, "config": {"x": 6}},
    {"kind": "asked", "number": 4, "config": {"x": 7}},
    {"kind": "retry", "number": 1, "cause": "crash", "reason": "died"},
    {"kind": "retry", "number": 3, "cause": "lost", "reason": "node", "lost": True},
    {"kind": "report", "number": 2, "steps": [[1, 2.0], [2, 1.0]], "checkpoint": [2, "a.pt"]},
    {"kind": "paused", "number": 2, "extra": {"a": 1}, **SPAN},
    {"kind": "done", "number": 3, "value": 1.5, "extra": {"a": 1, "b": [None]}, **SPAN},
    {"kind": "session", "id": "b", "time": 200.0},
    {"kind": "failed", "number": 1, "reason": "no", "cause": "crash", "traceback": "t\n",
     "alike": "k", **SPAN},
    {"kind": "promoted", "number": 2},
    {"kind": "interrupted", "numbers": [2]},
    {"kind": "report", "number": 2, "steps": [[3, 0.5]], "extra": {"a": 2}},
    {"kind": "stopped", "reason": "enough", "outcome": "target", "seconds": 3.0, "use": None},
    {"kind": "session", "id": "c", "time": 300.0},
    {"kind": "stopped_early", "number": 2, "extra": {"a": 2}, **SPAN},
]  # fmt: skip


def write(folder: Path, *events: dict[str, Any]) -> None:
    journal = Journal(folder)
    journal.append(*events)
    journal.close()


def expected(folder: Path) -> Record:
    return Record.from_contents(read_journal(folder))


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journal with several lines of trials in the short one, which stands for most of it."""
    monkeypatch.setattr(module, "_TOGETHER", 2)
    write(tmp_path, *EVENTS[:-3])
    compact(tmp_path)
    write(tmp_path, *EVENTS[-3:])
    return tmp_path


def only_by_the_short_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> Record:
        raise AssertionError("the short journal was not used")

    monkeypatch.setattr(Record, "from_contents", refuse)


@pytest.mark.parametrize("n", range(len(EVENTS) + 1))
def test_the_record_is_the_same_wherever_the_journal_was_compacted(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TOGETHER", 2)
    write(tmp_path, *EVENTS[:n])
    compact(tmp_path)
    write(tmp_path, *EVENTS[n:])
    record = expected(tmp_path)
    only_by_the_short_journal(monkeypatch)
    assert read_record(tmp_path) == record
    compact(tmp_path)  # made of the one before
    found = read_record(tmp_path)
    assert found == record
    assert list(found.entries) == list(record.entries)
    assert [e.trial.state for e in found.entries.values()] == [
        e.trial.state for e in record.entries.values()
    ]


@pytest.mark.parametrize("name", sorted(p.parent.name for p in STORED.glob("*/journal.jsonl.gz")))
def test_journals_of_earlier_releases_have_the_same_outcome(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    data = gzip.decompress((STORED / name / "journal.jsonl.gz").read_bytes())
    (tmp_path / name / JOURNAL_FILE).write_bytes(data)
    before, record = Outcome.load(name, tmp_path), expected(tmp_path / name)
    compact(tmp_path / name)
    only_by_the_short_journal(monkeypatch)
    assert read_record(tmp_path / name) == record
    assert repr(Outcome.load(name, tmp_path).rows()) == repr(before.rows())
    assert (tmp_path / name / JOURNAL_FILE).read_bytes() == data


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", range(9))
@pytest.mark.parametrize("first", [True, False])
def test_a_kill_at_any_step_loses_nothing(
    step: int, first: bool, long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if first:
        (long / COMPACT_FILE).unlink()
    data, record = (long / JOURNAL_FILE).read_bytes(), expected(long)
    left = iter(range(step))

    def mortal(work: Callable[..., Any]) -> Callable[..., Any]:
        def step_of(*args: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return work(*args)

        return step_of

    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_line", mortal(module.encode_line))  # 8 lines
        patch.setattr(Path, "replace", mortal(Path.replace))
        with pytest.raises(Killed):
            compact(long)
    assert (long / JOURNAL_FILE).read_bytes() == data
    assert read_record(long) == record
    write(long, {"kind": "asked", "number": 9, "config": {}})
    record = expected(long)
    assert read_record(long) == record
    compact(long)
    only_by_the_short_journal(monkeypatch)
    assert read_record(long) == record
    assert len((long / COMPACT_FILE).read_bytes().splitlines()) == 8  # and the step of its name
    assert {path.name for path in long.iterdir()} == FILES  # nothing is left of the kill


def test_a_cut_or_flipped_short_journal_is_not_used(long: Path) -> None:
    record, path = expected(long), long / COMPACT_FILE
    data = path.read_bytes()
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        assert read_record(long) == record
    rng = random.Random(0)
    for _ in range(1000):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        assert read_record(long) == record


def error_of(folder: Path, read: Callable[[Path], Any]) -> str:
    with pytest.raises(JournalError) as caught:
        read(folder)
    return str(caught.value)


def test_a_damaged_journal_is_refused_as_without_a_short_one(long: Path) -> None:
    data = (long / JOURNAL_FILE).read_bytes()
    lines = data.splitlines(keepends=True)
    damaged = [data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :] for i in range(0, len(data) - 1, 7)]
    doubled = [b"".join(lines[: i + 1] + lines[i:]) for i in range(len(lines))]
    missing = [b"".join(lines[:i] + lines[i + 1 :]) for i in range(len(lines) - 1)]
    for bad in (*damaged, *doubled, *missing):
        (long / JOURNAL_FILE).write_bytes(bad)
        assert error_of(long, read_record) == error_of(long, expected)


def test_a_journal_that_was_cut_or_replaced_is_read_by_itself(long: Path) -> None:
    data = (long / JOURNAL_FILE).read_bytes()
    for cut in range(0, len(data), 5):
        (long / JOURNAL_FILE).write_bytes(data[:cut])
        assert read_record(long) == expected(long)
    (long / JOURNAL_FILE).unlink()
    write(long, {"kind": "header", "name": "t"}, *EVENTS[1:4])
    assert read_record(long) == expected(long)


def test_a_journal_is_compacted_when_it_is_long_and_has_grown(tmp_path: Path) -> None:
    store, short = FolderStore(tmp_path), tmp_path / COMPACT_FILE
    write(tmp_path, EVENTS[0])
    store.push(1000)
    assert not short.exists()
    store.push(2**20)
    record = read_record(tmp_path)
    for size, closing, written in (
        (2**20 + 2**18, False, False),
        (2**20 + 2**19 + 1, False, True),
        (2**20 + 2**19 + 2, False, False),
        (2**20 + 2**19 + 2, True, True),
    ):
        short.unlink(missing_ok=True)
        store.push(size, closing)
        assert short.exists() == written
    assert read_record(tmp_path) == record == expected(tmp_path)


def test_a_full_disk_is_a_warning(
    long: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_line", full)
        FolderStore(long).push(2**30)
    assert "could not be written: [Errno 28] No space left" in caplog.text
    assert {path.name for path in long.iterdir()} == FILES
    assert read_record(long) == expected(long)
