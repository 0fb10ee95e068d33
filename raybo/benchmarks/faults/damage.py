"""Damage to a journal: cut at every byte of its end, or with flipped bits."""

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

_MEMORY = Path("/dev/shm")  # thousands of journals are opened, and none needs a disk
_LOGGER = logging.getLogger("raybo.study.journal.journal")


def count_bad_cuts(data: bytes, records: int = 20) -> tuple[int, int]:
    """Cut a journal before each byte of its last `records`; return the cuts and the bad ones.

    A cut journal must open, hold all records but the torn one (which is complete if only its
    newline is missing), save the torn bytes, accept another record, and open again.
    """
    lines = data.splitlines(keepends=True)
    begin = sum(map(len, lines[:-records]))
    events = parse_journal(data, "complete").events
    bad = 0
    for cut in range(begin, len(data) + 1):
        kept = parsed = 0
        for line in lines:
            if kept + len(line) - 1 > cut:
                break
            kept, parsed = kept + len(line), parsed + 1
        with _damaged(data[:cut]) as folder:
            try:
                good = _is_intact(folder, events[:parsed], data[: min(kept, cut)], data[:cut])
            except (JournalError, OSError):
                good = False
        bad += not good
    return len(data) + 1 - begin, bad


def _is_intact(folder: Path, events: list[dict[str, object]], kept: bytes, cut: bytes) -> bool:
    journal = Journal(folder)
    found = journal.contents.events
    journal.append({"kind": "points", "configs": []})
    journal.close()
    again = read_journal(folder)
    aside = b"".join(path.read_bytes() for path in folder.glob("*.torn-*"))
    saved = (kept + aside if len(kept) < len(cut) else kept).startswith(cut)
    return saved and found == events and len(again.events) == len(events) + 1 and not again.tail


def count_unnoticed_flips(data: bytes, flips: int = 1000, seed: int = 0) -> int:
    """Flip random bits one at a time; return how often a journal opens without a complaint.

    A flip that causes only a warning must leave all records.
    """
    rng = random.Random(seed)
    events = parse_journal(data, "complete").events
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
    """Collect the warnings of the journal, and show none."""
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
