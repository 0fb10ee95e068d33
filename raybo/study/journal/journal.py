"""Journal: the append-only record of a run, and its replay.

A journal is a file of JSON lines. Each line is

    {"crc":"0f3a9c21","v":1,"seq":17,"epoch":2,"event":{...}}

`crc` is the CRC32 of all bytes after it up to the newline, so that any flipped bit is noticed,
also one that leaves the JSON valid. `seq` counts from 0 without gaps. `epoch` grows by one with
each writer, so that a writer that was replaced can be told from its successor.

Durability. `append` returns after fsync: what it was given is *acknowledged* and is never dropped.
One call writes all its events with one fsync.

Damage. Bytes after the last newline are a write that was cut short: they are moved to a
`.torn-<n>` file beside the journal, with a warning; a complete record among them (its CRC holds,
only the newline is missing or flipped) is kept. Any other damage is refused with its line number.

Snapshots only accelerate. One holds the folded state up to some byte of the journal with the CRC
of all bytes before it; it is used only if both CRCs hold, else the journal is read line by line.

One writer. It holds an flock on `journal.lock`, which names it; where a shared folder has no
working flock, the epoch in that file fences off the older writer at its next append.
"""

from __future__ import annotations

import json
import logging
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybo.errors import JournalError
from raybo.study.journal.lock import Lock

logger = logging.getLogger(__name__)

FORMAT = 1
JOURNAL_FILE = "journal.jsonl"
SNAPSHOT_FILE = "snapshot.json"
LOCK_FILE = "journal.lock"

_HEAD = b'{"crc":"'
_BODY_AT = len(_HEAD) + 8 + len(b'",')  # where the bytes under the CRC begin

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Contents:
    """What a journal holds: the state of a snapshot (or None), then the events after it."""

    state: dict[str, Any] | None
    events: list[dict[str, Any]]
    next_seq: int
    epoch: int  # of the last record; 0 when there is none
    size: int  # bytes of whole records
    crc: int  # CRC32 of those bytes
    tail: bytes = b""  # what follows them: a write cut short


class Journal:
    """The writer of a journal; `contents` is what it held when it was opened.

    Parameters
    ----------
    folder
        Folder of the study; made if it is missing.
    who
        Named in the lock for others to read: the pid and host of the driver, its session.
    wait
        Seconds to wait for a writer that is about to end.
    """

    def __init__(
        self, folder: Path, who: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / JOURNAL_FILE
        self._lock = Lock(folder / LOCK_FILE, who or {}, wait)
        self._broken: str | None = None
        self._fd = -1
        try:
            self.contents = read_journal(folder)
            self.epoch = max(self.contents.epoch, self._lock.last_epoch) + 1
            self._lock.claim(self.epoch)
            new = not self.path.exists()
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            if new:
                _sync_folder(folder)
            self._cut_tail()
        except BaseException:
            self.close()
            raise
        self._seq, self._size, self._crc = (
            self.contents.next_seq,
            self.contents.size,
            self.contents.crc,
        )

    @property
    def size(self) -> int:
        """Bytes that are safely on disk."""
        return self._size

    @property
    def next_seq(self) -> int:
        """Number of the next record."""
        return self._seq

    def append(self, *events: Event) -> None:
        """Write events, in order, and return when they are on disk.

        Raises
        ------
        JournalError
            When they cannot be written; the journal takes no more events then. What was
            acknowledged before is safe.
        """
        if not events:
            return
        self._check()
        seq = self._seq
        lines = [encode_line(event, seq + i, self.epoch) for i, event in enumerate(events)]
        data = b"".join(lines)
        try:
            _write_all(self._fd, data)
            os.fsync(self._fd)
        except OSError as error:
            self._undo()
            self._broken = f"it could not be written before ({error.strerror})"
            raise JournalError(
                f"{self.path}: cannot write: {error.strerror}; the {seq} records before are safe; "
                "make room or repair the disk, then resume the study"
            ) from error
        self._seq, self._size = seq + len(lines), self._size + len(data)
        self._crc = zlib.crc32(data, self._crc)

    def snapshot(self, state: Mapping[str, Any]) -> None:
        """Keep the folded state of all events so far, for a faster start."""
        body = {"seq": self._seq, "offset": self._size, "prefix": self._crc, "state": state}
        target = self.path.with_name(SNAPSHOT_FILE)
        fresh = target.with_suffix(".tmp")
        with open(fresh, "wb") as file:
            file.write(_sealed({"v": FORMAT, **body}))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)

    def close(self) -> None:
        """Let go of the file and the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._lock.release()

    def _check(self) -> None:
        if self._fd < 0:
            raise JournalError(f"{self.path}: the journal is closed; open it again to write")
        if self._broken:
            raise JournalError(f"{self.path}: takes no more records: {self._broken}")
        self._lock.check()
        size = os.fstat(self._fd).st_size
        if size != self._size:
            self._broken = "somebody else changed it"
            raise JournalError(
                f"{self.path}: has {size} bytes, not the {self._size} written here; another "
                "writer changed it; make sure that one study is run once, then resume"
            )

    def _undo(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:  # the tail stays and is cut when the journal is opened again
            logger.warning("%s: a half-written record could not be removed", self.path)

    def _cut_tail(self) -> None:
        """Move what follows the last whole record aside; keep a record that only lost its end."""
        found = self.contents
        if not found.tail and os.fstat(self._fd).st_size == found.size:
            return
        aside = _keep_aside(self.path, found.tail)
        os.ftruncate(self._fd, found.size)
        kept = _complete_record(found.tail, found.next_seq)
        if kept is not None:
            line, event, epoch = kept
            _write_all(self._fd, line)
            self.contents = Contents(
                found.state,
                [*found.events, event],
                found.next_seq + 1,
                epoch,
                found.size + len(line),
                zlib.crc32(line, found.crc),
            )
        os.fsync(self._fd)
        logger.warning(
            "%s: the last write was cut short: %d bytes after record %d were moved to %s%s",
            self.path,
            len(found.tail),
            found.next_seq - 1,
            aside.name,
            "; they held one whole record, which is kept" if kept else "",
        )


def read_journal(folder: Path) -> Contents:
    """Contents of the journal in `folder`, verified; changes nothing and needs no lock."""
    path = folder / JOURNAL_FILE
    data = path.read_bytes() if path.exists() else b""
    shot = _read_snapshot(folder / SNAPSHOT_FILE)
    if shot is not None:
        if shot["offset"] > len(data):
            logger.warning(
                "%s: %d bytes are missing: it has %d, and a snapshot was made when it had %d; "
                "going on with the records that are left",
                path,
                shot["offset"] - len(data),
                len(data),
                shot["offset"],
            )
        elif zlib.crc32(data[: shot["offset"]]) == shot["prefix"]:
            return parse_journal(data, str(path), shot)
    return parse_journal(data, str(path))


def parse_journal(data: bytes, label: str, shot: Mapping[str, Any] | None = None) -> Contents:
    """Contents of the bytes of a journal; those that `shot`, a snapshot, covers are not parsed."""
    start = shot["offset"] if shot else 0
    seq, epoch = (shot["seq"], 0) if shot else (0, 0)
    line_number = data.count(b"\n", 0, start)
    end = data.rfind(b"\n") + 1
    events = []
    for line in data[start:end].split(b"\n")[:-1]:
        line_number += 1
        event, epoch = _checked(line, label, line_number, (seq, epoch))
        events.append(event)
        seq += 1
    if shot and not events:
        epoch = _last_epoch(data[:end])
    size = max(start, end)
    return Contents(
        shot["state"] if shot else None,
        events,
        seq,
        epoch,
        size,
        zlib.crc32(data[:size]),
        data[size:],
    )


def encode_line(event: Event, seq: int, epoch: int) -> bytes:
    """One line of a journal."""
    try:
        return _sealed({"v": FORMAT, "seq": seq, "epoch": epoch, "event": event})
    except (TypeError, ValueError) as error:
        raise JournalError(f"record {seq} cannot be written as JSON: {error}") from error


def _sealed(body: Mapping[str, Any]) -> bytes:
    rest = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")[1:]
    return _HEAD + b"%08x" % zlib.crc32(rest) + b'",' + rest + b"\n"


def _unsealed(line: bytes) -> dict[str, Any] | None:
    """Body of a line without its newline; None when its CRC does not hold."""
    rest = line[_BODY_AT:]
    if line[:_BODY_AT] != _HEAD + b"%08x" % zlib.crc32(rest) + b'",' or not rest:
        return None
    try:
        body = json.loads(b"{" + rest)
    except ValueError:  # cannot happen by accident: the CRC holds
        return None
    return body if isinstance(body, dict) else None


def _checked(
    line: bytes, label: str, number: int, expected: tuple[int, int]
) -> tuple[dict[str, Any], int]:
    where, (seq, epoch) = f"{label}:{number}", expected
    body = _unsealed(line)
    if body is None:
        raise JournalError(
            f"{where}: damaged: its checksum does not hold, and it is no unfinished last line; "
            "restore the file from a backup, or give up this line and all after it: "
            f"copy the file, then keep its first {number - 1} lines (head -n {number - 1})"
        )
    if body.get("v") != FORMAT:
        raise JournalError(
            f"{where}: written in format {body.get('v')!r}, this release reads format {FORMAT}; "
            "use the release that wrote it"
        )
    if body["seq"] != seq:
        raise JournalError(
            f"{where}: record {body['seq']} where record {seq} belongs: lines are missing, "
            "doubled or out of order; restore the file from a backup"
        )
    if body["epoch"] < epoch:
        raise JournalError(
            f"{where}: written by a writer that had been replaced (epoch {body['epoch']} after "
            f"{epoch}); remove this line and those after it that have the older epoch"
        )
    return body["event"], body["epoch"]


def _complete_record(tail: bytes, seq: int) -> tuple[bytes, dict[str, Any], int] | None:
    """Line, event and epoch of a record that lost only its newline."""
    for line in (tail, tail[:-1]):
        body = _unsealed(line)
        if body is not None and body.get("v") == FORMAT and body.get("seq") == seq:
            return line + b"\n", body["event"], body["epoch"]
    return None


def _read_snapshot(path: Path) -> dict[str, Any] | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    body = _unsealed(data[:-1]) if data.endswith(b"\n") else None
    if body is None:
        logger.warning("%s: damaged; the journal is read line by line instead", path)
    return body if body is not None and body.get("v") == FORMAT else None


def _last_epoch(data: bytes) -> int:
    body = _unsealed(data[data.rfind(b"\n", 0, len(data) - 1) + 1 : -1]) if data else None
    return int(body["epoch"]) if body else 0


def _keep_aside(path: Path, tail: bytes) -> Path:
    n = 1
    while (aside := path.with_name(f"{path.name}.torn-{n}")).exists():
        n += 1
    aside.write_bytes(tail)
    return aside


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable, where the system can."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError:
        logger.debug("%s: folders cannot be synced here", folder)
    finally:
        os.close(fd)


def timestamp() -> float:
    """Seconds since the epoch, as journals record them."""
    return round(time.time(), 6)
