"""The journal: replay, torn tails, damage, fencing, a full disk."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from raybo.errors import JournalError
from raybo.study.journal.journal import (
    JOURNAL_FILE,
    LOCK_FILE,
    Journal,
    encode_line,
    read_journal,
)
from raybo.study.journal.lock import is_held, read_holder


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of journals are opened, and none has to survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def fill(folder: Path, n: int = 30) -> list[dict[str, object]]:
    events = [{"kind": "done", "number": i, "text": "é\n"} for i in range(n)]
    journal = Journal(folder)
    journal.append(*events[: n // 2])
    for event in events[n // 2 :]:
        journal.append(event)
    journal.close()
    return events


def test_events_come_back_in_order(tmp_path: Path) -> None:
    events = fill(tmp_path)
    found = read_journal(tmp_path)
    assert found.events == events
    assert (found.next_seq, found.epoch, found.tail) == (30, 1, b"")


def test_an_empty_folder_is_an_empty_journal(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none").events == []
    assert Journal(tmp_path / "new").contents.events == []


def test_each_writer_has_a_larger_epoch(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        journal = Journal(tmp_path)
        assert journal.epoch == epoch
        if epoch != 2:  # a writer that wrote nothing counts too
            journal.append({"kind": "x"})
        journal.close()
    assert read_journal(tmp_path).epoch == 3


@pytest.mark.usefixtures("no_sync")
def test_every_cut_of_the_last_records_loses_only_the_torn_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events = fill(tmp_path)
    data = (tmp_path / JOURNAL_FILE).read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(ends[-21], len(data) + 1):
        (tmp_path / JOURNAL_FILE).write_bytes(data[:cut])
        caplog.clear()
        journal = Journal(tmp_path)
        journal.close()
        whole = sum(end - 1 <= cut for end in ends)  # a record is whole without its newline
        assert journal.contents.events == events[:whole]
        assert read_journal(tmp_path).events == events[:whole]
        assert bool(caplog.records) == (cut not in ends)
        for torn in tmp_path.glob("*.torn-1"):
            assert data[:cut].endswith(torn.read_bytes())
            torn.unlink()


def test_a_journal_goes_on_after_a_torn_write(tmp_path: Path) -> None:
    events = fill(tmp_path, 3)
    path = tmp_path / JOURNAL_FILE
    path.write_bytes(path.read_bytes()[:-5])
    journal = Journal(tmp_path)
    journal.append({"kind": "next"})
    journal.close()
    assert read_journal(tmp_path).events == [*events[:2], {"kind": "next"}]


def test_the_torn_bytes_are_kept_aside(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    for n in (1, 2):
        with open(tmp_path / JOURNAL_FILE, "ab") as file:
            file.write(b'{"crc":"half' + b"%d" % n)
        Journal(tmp_path).close()
        assert (tmp_path / f"{JOURNAL_FILE}.torn-{n}").read_bytes() == b'{"crc":"half%d' % n


def test_a_tail_of_zeros_is_a_torn_write(tmp_path: Path) -> None:
    events = fill(tmp_path, 3)
    with open(tmp_path / JOURNAL_FILE, "ab") as file:
        file.write(bytes(500))
    journal = Journal(tmp_path)
    assert journal.contents.events == events
    journal.close()


@pytest.mark.usefixtures("no_sync")
def test_a_thousand_bit_flips_are_all_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events = fill(tmp_path)
    path = tmp_path / JOURNAL_FILE
    data = path.read_bytes()
    rng = random.Random(0)
    places = [rng.randrange(8 * len(data)) for _ in range(1000)]
    places += [8 * (len(data) - 1) + bit for bit in range(8)]  # the last newline
    for place in places:
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        caplog.clear()
        try:
            journal = Journal(tmp_path)
        except JournalError as error:
            line = data.count(b"\n", 0, place // 8) + 1
            assert f"{JOURNAL_FILE}:{line}: damaged" in str(error)  # noqa: PT017
        else:
            assert caplog.records  # the last newline: warned of, and no record lost
            assert journal.contents.events == events
            journal.close()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: lines[:4] + lines[5:], ":5: record 5 where record 4 belongs"),
        (lambda lines: lines[:4] + lines[3:], ":5: record 3 where record 4 belongs"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], ":1: record 1 where record 0 belongs"),
        (lambda lines: [*lines[:3], b"\n", *lines[3:]], ":4: damaged"),
        (lambda lines: [*lines, encode_line({}, 10, 0)], ":11: written by a writer that had been"),
        (lambda lines: [b"not json\n", *lines], ":1: damaged"),
    ],
)
def test_other_damage_is_refused_with_its_line(tmp_path: Path, edit, message: str) -> None:  # type: ignore[no-untyped-def]
    fill(tmp_path, 10)
    path = tmp_path / JOURNAL_FILE
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(JournalError, match=message):
        Journal(tmp_path)


def test_a_newer_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raybo.study.journal.journal.FORMAT", 2)
    fill(tmp_path, 2)
    monkeypatch.undo()
    with pytest.raises(JournalError, match="format 2, this release reads format 1"):
        read_journal(tmp_path)


def test_a_snapshot_of_an_earlier_release_is_left_alone(tmp_path: Path) -> None:
    events = fill(tmp_path, 5)
    (tmp_path / "snapshot.json").write_text('{"v":1,"seq":9,"offset":0,"state":{"entries":"no"}}')
    journal = Journal(tmp_path)
    assert journal.contents.events == events
    journal.close()


def test_there_is_one_writer(tmp_path: Path) -> None:
    journal = Journal(tmp_path, {"driver": os.getpid()})
    with pytest.raises(JournalError, match=rf"is being run by pid {os.getpid()} on .* since 20"):
        Journal(tmp_path, {"driver": os.getpid(), "session": "other"}, wait=0.1)
    journal.close()
    Journal(tmp_path).close()


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks."""

    def refuse(fd: int, blocking: bool) -> bool:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("raybo.study.journal.lock.lock_descriptor", refuse)


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("cut", [0, 12])
def test_without_locks_the_append_of_the_writer_before_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    first = Journal(tmp_path)
    first.append({"kind": "a"})
    line = encode_line({"kind": "b"}, 1, 1)
    writes = [part for part in (line[:cut], line[cut:]) if part]
    path, sleep = first.path, time.sleep

    def append_meanwhile(seconds: float) -> None:
        if writes:
            with open(path, "ab") as file:
                file.write(writes.pop(0))
        sleep(0)

    monkeypatch.setattr("raybo.study.journal.journal.time.sleep", append_meanwhile)
    second = Journal(tmp_path)
    second.append({"kind": "c"})
    assert read_journal(tmp_path).events == [{"kind": "a"}, {"kind": "b"}, {"kind": "c"}]
    assert list(tmp_path.glob("*.torn-*")) == []
    with pytest.raises(JournalError, match="taken over"):
        first.append({"kind": "d"})


@pytest.mark.usefixtures("no_locks")
def test_without_locks_nothing_is_acknowledged_that_another_wrote_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raybo.study.journal.journal._SETTLE_SECONDS", 0.0)
    journal = Journal(tmp_path)
    fsync = os.fsync

    def write_beside(fd: int) -> None:
        with open(journal.path, "ab") as file:
            file.write(encode_line({"kind": "other"}, 0, 2))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", write_beside)
    with pytest.raises(JournalError, match="another writer changed it"):
        journal.append({"kind": "mine"})


def test_a_reader_needs_no_lock(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append({"kind": "x"})
    assert read_journal(tmp_path).events == [{"kind": "x"}]
    journal.close()


def test_a_writer_that_was_replaced_notices(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    holder = read_holder(tmp_path / "journal.lock")
    (tmp_path / "journal.lock").write_text(json.dumps({**holder, "epoch": 7, "pid": 1}))
    with pytest.raises(JournalError, match="taken over by pid 1"):
        journal.append({"kind": "x"})
    journal.close()


def test_a_journal_that_somebody_else_wrote_to_is_not_appended_to(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with open(tmp_path / JOURNAL_FILE, "ab") as file:
        file.write(b"x")
    with pytest.raises(JournalError, match="another writer changed it"):
        journal.append({"kind": "x"})
    with pytest.raises(JournalError, match="takes no more records"):
        journal.append({"kind": "x"})
    journal.close()


def replace_file(path: Path) -> None:
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)  # as editors, rsync and `sed -i` do


def move_folder(path: Path) -> None:
    moved = path.parent.rename(path.parent.with_name("moved"))
    path.parent.mkdir()
    for file in moved.iterdir():
        (path.parent / file.name).write_bytes(file.read_bytes())


@pytest.mark.parametrize("change", [replace_file, Path.unlink, move_folder])
def test_a_journal_that_was_replaced_or_removed_is_not_appended_to(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    journal = Journal(tmp_path / "s")
    journal.append({"kind": "x"})
    change(journal.path)
    with pytest.raises(JournalError, match="replaced, moved or removed"):
        journal.append({"kind": "y"})
    with pytest.raises(JournalError, match="takes no more records"):
        journal.append({"kind": "y"})


@pytest.mark.parametrize(
    "body",
    [
        {"v": 1, "epoch": 1, "event": {}},
        {"v": 1, "seq": 0, "epoch": 1},
        {"v": 1, "seq": 0, "epoch": 1, "event": [1]},
        {"v": 1, "seq": 0, "epoch": "1", "event": {}},
    ],
)
def test_a_malformed_line_with_a_right_checksum_is_refused(
    tmp_path: Path, body: dict[str, object]
) -> None:
    rest = json.dumps(body).encode()[1:]
    (tmp_path / JOURNAL_FILE).write_bytes(b'{"crc":"%08x",%s\n' % (zlib.crc32(rest), rest))
    with pytest.raises(JournalError, match=f"{JOURNAL_FILE}:1: .*wrong type"):
        read_journal(tmp_path)


@pytest.mark.parametrize("text", ['{"epoch": "a"}', '{"epoch": null}', "[1]", "", "no json"])
def test_a_lock_file_that_makes_no_sense_counts_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_FILE).write_text(text)
    journal = Journal(tmp_path)
    assert journal.epoch == 1
    journal.append({"kind": "x"})
    assert is_held(tmp_path / LOCK_FILE)
    journal.close()
    assert not is_held(tmp_path / LOCK_FILE)


def test_a_removed_folder_is_noticed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    (tmp_path / "journal.lock").unlink()
    with pytest.raises(JournalError, match="removed while the study was running"):
        journal.append({"kind": "x"})
    journal.close()


def test_what_json_cannot_hold_is_refused_before_it_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalError, match="cannot be written as JSON"):
        journal.append({"kind": "x", "value": float("nan")})
    journal.append({"kind": "y"})
    journal.close()
    assert read_journal(tmp_path).events == [{"kind": "y"}]


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from raybo.errors import JournalError
from raybo.study.journal.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
written = 0
try:
    while True:
        journal.append({"kind": "x", "text": "x" * 1000})
        written += 1
except JournalError as error:
    assert "the %d records before are safe" % written in str(error), error
    print(written)
"""


def test_a_full_disk_loses_nothing_acknowledged(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = read_journal(tmp_path)
    assert len(found.events) == int(done.stdout) > 10
    assert found.tail == b""
