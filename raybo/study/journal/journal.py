"""Journal: an append-only file of events, verified when it is read.

A journal is a file of JSON lines. Each line is

    {"crc":"0f3a9c21","v":1,"seq":17,"epoch":2,"event":{...}}

`crc` is the CRC32 of all bytes after it up to the newline, so that any flipped bit is noticed,
also one that leaves the JSON valid. `seq` counts from 0 without gaps: the record on line n has
n - 1. `epoch` grows by one with each writer and distinguishes a writer from its successor.

Durability. `append` returns after fsync: its events are then *acknowledged* and never dropped.
One call writes all its events with one fsync.

Damage. Bytes after the last newline are a write that was cut short: they are moved to a
`.torn-<n>` file beside the journal, with a warning; a complete record among them (its CRC holds,
only the newline is missing or flipped) is kept. Any other damage is refused with its line number.

One writer. It locks `journal.lock`, which names it; where a shared folder has no working locks,
the epoch in that file stops the older writer at its next append, and the new one waits until the
journal no longer grows. A writer also stops when its journal is replaced, moved or removed, or
when anybody else has written to it.
"""

from __future__ import annotations

import json
import logging
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raybo.errors import JournalError
from raybo.study.journal.bulk import in_bulk
from raybo.study.journal.lock import Lock

logger = logging.getLogger(__name__)

FORMAT = 1
JOURNAL_FILE = "journal.jsonl"
LOCK_FILE = "journal.lock"

_SETTLE_SECONDS = 1.0  # without locks: a writer that was replaced ends its append within this time

_HEAD = b'{"crc":"%08x","v":%d,"seq":%d,"epoch":%d,"event":'
_BODY_AT = len(b'{"crc":"') + 8 + len(b'",')  # where the bytes under the CRC begin

_decode = json.JSONDecoder().raw_decode

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Contents:
    """What a journal holds."""

    label: str  # names the journal in messages
    texts: list[bytes]  # of the events, as JSON: their CRC, number and epoch are right
    epoch: int  # of the last record; 0 when there is none
    size: int  # bytes of complete records
    tail: bytes = b""  # bytes after them: a write that was cut short
    before: int = 0  # records of the journal that come before these

    @property
    def next_seq(self) -> int:
        """Number of the next record."""
        return self.before + len(self.texts)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events, decoded."""
        return [self.event(index) for index in range(len(self.texts))]

    def event(self, index: int) -> dict[str, Any]:
        """Return event number `index`, decoded."""
        try:
            return decode_event(self.texts[index].decode())
        except (ValueError, RecursionError):
            raise JournalError(
                "not JSON; its checksum is right, so raybo did not write it; restore the file "
                "from a backup"
            ) from None

    def where(self, index: int) -> str:
        """Return the file and line of event number `index`."""
        return f"{self.label}:{self.before + index + 1}"


class Journal:
    """The writer of a journal; `contents` is what it held when it was opened.

    Parameters
    ----------
    folder
        Folder of the study; made if it is missing.
    who
        Holder that the lock names to others: the pid and host of the driver, its session.
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
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._fd = os.open(self.path, flags, 0o644)
            if new:
                _sync_folder(folder)
            if not self._lock.exclusive:
                self._settle()
            self._cut_tail()
        except BaseException:
            self.close()
            raise
        self._seq, self._size = self.contents.next_seq, self.contents.size

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
        self._check_file()

    def close(self) -> None:
        """Close the file and release the lock."""
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
        self._check_file()

    def _check_file(self) -> None:
        """Raise when the file is not in its place, or another writer has changed it."""
        mine = os.fstat(self._fd)
        if not self._in_place(mine):
            self._broken = "it was replaced or removed"
            raise JournalError(
                f"{self.path}: replaced, moved or removed while the study was running; put back "
                "the file with all its records, then resume the study"
            )
        size = mine.st_size
        if size != self._size:
            self._broken = "another writer changed it"
            raise JournalError(
                f"{self.path}: has {size} bytes, not the {self._size} written here; another "
                "writer changed it; make sure that one study is run once, then resume"
            )

    def _in_place(self, mine: os.stat_result) -> bool:
        """Whether the path still leads to the open file."""
        try:
            return os.path.samestat(os.stat(self.path), mine)
        except OSError:
            return False

    def _undo(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:  # the tail stays and is cut when the journal is opened again
            logger.warning("%s: a half-written record could not be removed", self.path)

    def _settle(self) -> None:
        """Read again until the file no longer grows: the writer before may be in an append."""
        before = -1
        while (size := os.fstat(self._fd).st_size) != before:
            before = size
            time.sleep(_SETTLE_SECONDS)
        self.contents = read_journal(self.path.parent)

    def _cut_tail(self) -> None:
        """Move bytes after the last record aside; keep a record that lost only its newline."""
        found = self.contents
        self._size = found.size + len(found.tail)
        self._check_file()
        if not found.tail:
            return
        aside = _keep_aside(self.path, found.tail)
        os.ftruncate(self._fd, found.size)
        kept = _complete_record(found.tail, found.next_seq)
        if kept is not None:
            line, text, epoch = kept
            _write_all(self._fd, line)
            self.contents = replace(
                found,
                texts=[*found.texts, text],
                epoch=epoch,
                size=found.size + len(line),
                tail=b"",
            )
        os.fsync(self._fd)
        logger.warning(
            "%s: the last write was cut short: %d bytes after record %d were moved to %s%s",
            self.path,
            len(found.tail),
            found.next_seq - 1,
            aside.name,
            "; they held one complete record, which is kept" if kept else "",
        )


def read_journal(folder: Path) -> Contents:
    """Return the verified contents of the journal in `folder`; needs no lock, writes nothing."""
    path = folder / JOURNAL_FILE
    data = path.read_bytes() if path.exists() else b""
    return parse_journal(data, str(path))


@in_bulk
def parse_journal(
    data: bytes, label: str, begin: int = 0, before: int = 0, epoch: int = 0
) -> Contents:
    """Return the contents of a journal's bytes.

    Parameters
    ----------
    data
        All of its bytes.
    label
        Names them in messages.
    begin, before, epoch
        Where to begin, the number of records before that byte, and the epoch of the last of them.
    """
    end = data.rfind(b"\n") + 1
    texts: list[bytes] = []
    for seq, line in enumerate(data[begin:end].split(b"\n")[:-1], before):
        head = _HEAD % (zlib.crc32(line[_BODY_AT:]), FORMAT, seq, epoch)
        if line.startswith(head) and line.endswith(b"}}"):
            texts.append(line[len(head) : -1])
        else:  # the first of its epoch, or not to be read
            epoch = _checked_epoch(_unsealed(line), f"{label}:{seq + 1}", seq, epoch)
            texts.append(_text_of(line))
    return Contents(label, texts, epoch, end, data[end:], before)


def decode_event(text: str) -> dict[str, Any]:
    """Return the event that a line of a journal holds as `text`."""
    event, end = _decode(text)
    if end != len(text) or not isinstance(event, dict):
        raise ValueError("not one object")
    return event


def encode_line(event: Event, seq: int, epoch: int) -> bytes:
    """Return one line of a journal."""
    try:
        return _sealed({"v": FORMAT, "seq": seq, "epoch": epoch, "event": event})
    except (TypeError, ValueError) as error:
        raise JournalError(f"record {seq} cannot be written as JSON: {error}") from error


def _sealed(body: Mapping[str, Any]) -> bytes:
    rest = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")[1:]
    return b'{"crc":"%08x",%s\n' % (zlib.crc32(rest), rest)


def _unsealed(line: bytes) -> dict[str, Any] | None:
    """Body of a line without its newline; None when its CRC is wrong."""
    rest = line[_BODY_AT:]
    if line[:_BODY_AT] != b'{"crc":"%08x",' % zlib.crc32(rest):
        return None
    try:
        body = json.loads(b"{" + rest)
    except (ValueError, RecursionError):  # not by accident: the CRC is right
        return None
    return body if isinstance(body, dict) else None


def _checked_epoch(body: dict[str, Any] | None, where: str, seq: int, epoch: int) -> int:
    """Epoch of record `seq` with this body, after one of `epoch`."""
    if body is not None and body.get("v") == FORMAT and _is(body.get("seq"), seq):
        event, found = body.get("event"), body.get("epoch")
        if isinstance(event, dict) and isinstance(found, int) and found >= epoch:
            return found
    raise _refusal(body, where, seq, epoch)


def _text_of(line: bytes) -> bytes:
    """Text of the event of a line, which is its last entry."""
    return line.partition(b'"event":')[2][:-1].strip()


def _is(found: Any, wanted: int) -> bool:
    return isinstance(found, int) and found == wanted


def _refusal(body: dict[str, Any] | None, where: str, seq: int, epoch: int) -> JournalError:
    """Return what is wrong with the record `seq`."""
    if body is None:
        return JournalError(
            f"{where}: damaged: its checksum is wrong, and it is not an unfinished last line; "
            "restore the file from a backup, or give up this line and all after it: "
            f"copy the file, then keep its first {seq} lines (head -n {seq})"
        )
    if body.get("v") != FORMAT:
        return JournalError(
            f"{where}: written in format {body.get('v')!r}, this release reads format {FORMAT}; "
            "use the release that wrote it"
        )
    kinds = {"seq": int, "epoch": int, "event": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(body.get(key), kind)]
    if wrong:
        return JournalError(
            f"{where}: its entry {wrong[0]!r} is missing or of the wrong type; its checksum is "
            "right, so raybo did not write it; restore the file from a backup"
        )
    if body["seq"] != seq:
        return JournalError(
            f"{where}: record {body['seq']} where record {seq} belongs: lines are missing, "
            "doubled or out of order; restore the file from a backup"
        )
    return JournalError(
        f"{where}: written by a writer that had been replaced (epoch {body['epoch']} after "
        f"{epoch}); remove this line and those after it that have the older epoch"
    )


def _complete_record(tail: bytes, seq: int) -> tuple[bytes, bytes, int] | None:
    """Line, text of the event and epoch of a record that lost only its newline, if any."""
    for line in (tail, tail[:-1]):
        body = _unsealed(line)
        if body is not None and body.get("v") == FORMAT and body.get("seq") == seq:
            return line + b"\n", _text_of(line), _checked_epoch(body, "", seq, 0)
    return None


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
    """Make the name of a new file durable, where the system can sync folders."""
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError:
        logger.debug("%s: folders cannot be synced here", folder)
    finally:
        os.close(fd)


def timestamp() -> float:
    """Return the seconds since the epoch, as journals record them."""
    return round(time.time(), 6)
