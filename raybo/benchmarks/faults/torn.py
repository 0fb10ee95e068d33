"""A journal that is damaged on purpose: cut at every byte of its end, and with flipped bits."""

from __future__ import annotations

import logging
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybo.errors import JournalError
from raybo.study.journal.journal import JOURNAL_FILE, Journal, parse_journal, read_journal

_MEMORY = Path("/dev/shm")  # thousands of journals are opened: none has to reach a disk
_LOGGER = logging.getLogger("raybo.study.journal.journal")


def count_bad_cuts(data: bytes, records: int = 20) -> tuple[int, int]:
    """Cuts of a journal, one before each byte of its last `records`, and how many went wrong.

    A cut journal has to open, hold all records but the torn one (which is whole if only its
    newline is missing), keep the torn bytes aside, take another record, and open again.
    """
    lines = data.splitlines(keepends=True)
    begin = sum(map(len, lines[:-records]))
    events = parse_journal(data, "whole").events
    bad = 0
    for cut in range(begin, len(data) + 1):
        whole = parsed = 0
        for line in lines:
            if whole + len(line) - 1 > cut:
                break
            whole, parsed = whole + len(line), parsed + 1
        with _damaged(data[:cut]) as folder:
            try:
                good = _is_whole(folder, events[:parsed], data[: min(whole, cut)], data[:cut])
            except (JournalError, OSError):
                good = False
        bad += not good
    return len(data) + 1 - begin, bad


def _is_whole(folder: Path, events: list[dict[str, object]], kept: bytes, cut: bytes) -> bool:
    journal = Journal(folder)
    found = journal.contents.events
    journal.append({"kind": "points", "configs": []})
    journal.close()
    again = read_journal(folder)
    aside = b"".join(path.read_bytes() for path in folder.glob("*.torn-*"))
    saved = (kept + aside if len(kept) < len(cut) else kept).startswith(cut)
    return saved and found == events and len(again.events) == len(events) + 1 and not again.tail


def count_unnoticed_flips(data: bytes, flips: int = 1000, seed: int = 0) -> int:
    """Random bit flips, of `flips`, after which a journal opens without an error or a warning.

    A flip that is only warned of must leave all records.
    """
    rng = random.Random(seed)
    events = parse_journal(data, "whole").events
    unnoticed = 0
    for _ in range(flips):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with _damaged(bytes(flipped)) as folder, _warnings() as warned:
            try:
                journal = Journal(folder)
            except JournalError:
                continue
            journal.close()
            unnoticed += not warned or journal.contents.events != events
    return unnoticed


@contextmanager
def _damaged(data: bytes) -> Iterator[Path]:
    folder = Path(
        tempfile.mkdtemp(prefix="raybo-torn-", dir=_MEMORY if _MEMORY.is_dir() else None)
    )
    try:
        (folder / JOURNAL_FILE).write_bytes(data)
        with _warnings():
            yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Warnings of the journal, which are not shown meanwhile."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler, old = Keep(), _LOGGER.propagate
    _LOGGER.addHandler(handler)
    _LOGGER.propagate = False
    try:
        yield messages
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.propagate = old
