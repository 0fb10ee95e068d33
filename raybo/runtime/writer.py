"""JournalWriter: the record of a study in memory and its journal on disk.

An event changes the record at once and is queued for the journal. A background task writes the
queue with one fsync, off the event loop. A finished trial is acknowledged, which makes it visible
to the driver, only when its event is on disk; workers are refilled without waiting for the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raybo.errors import JournalError, StudyError
from raybo.runtime.session import Session
from raybo.runtime.timeouts import LOCK_SECONDS
from raybo.study.journal.journal import Journal
from raybo.study.journal.record import Record
from raybo.study.journal.storage import PUSH_SECONDS, Store, open_store
from raybo.study.trial import TrialRecord

logger = logging.getLogger(__name__)

_FINISHES = ("done", "stopped_early", "failed", "given")  # events that end a trial


def open_journal(session: Session) -> JournalWriter:
    """Open the journal of a session's study, new or not.

    Raises
    ------
    JournalError
        When the journal is damaged, cannot be opened, or has another writer.
    StudyError
        When the folder holds another study.
    """
    try:
        store = open_store(session.storage, session.name, Path(session.spool))
        store.fetch(session.holder)
        writer = JournalWriter(store, Journal(store.folder, session.holder, LOCK_SECONDS))
    except OSError as error:
        raise JournalError(
            f"study {session.name!r} cannot be opened in {session.storage!r}: {error}; check "
            "that the storage can be written, or choose another"
        ) from error
    name = writer.record.header.get("name", session.name)
    if name != session.name:
        raise StudyError(
            f"the folder of study {session.name!r} holds the study {name!r}; choose another name"
        )
    return writer


class JournalWriter:
    """The only writer of a study's journal."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self.record = Record.from_contents(journal.contents)
        self.epoch = journal.epoch
        self.changed = asyncio.Event()  # set when trials are acknowledged
        self._store = store
        self._journal = journal
        self._acknowledged = list(self.record.order)  # numbers, in the order of finishing
        self._queue: list[Mapping[str, Any]] = []
        self._has_queue = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self._waiting: list[asyncio.Event] = []  # for what is queued

    def add(self, kind: str, **fields: Any) -> None:
        """Apply an event to the record and queue it for the disk."""
        event = {"kind": kind, **fields}
        self.record.apply(event)
        self._queue.append(event)
        self._all_written.clear()
        self._has_queue.set()

    def acknowledged(self, after: int = 0) -> list[TrialRecord]:
        """Return the trials on disk in the order of finishing, without the first `after`."""
        return [self.record.entries[number].trial for number in self._acknowledged[after:]]

    def paused(self) -> list[TrialRecord]:
        """Return the trials that were paused in this session and have not gone on."""
        return [self.record.entries[n].trial for n, now in self.record.paused.items() if now]

    async def commit_forever(self) -> None:
        """Write what is queued, again and again.

        Raises
        ------
        JournalError
            When the events cannot be written; no trial is acknowledged from then on.
        """
        while True:
            await self._has_queue.wait()
            self._has_queue.clear()
            batch, self._queue = self._queue, []
            waiting, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._journal.append, *batch)
            except JournalError:
                raise
            except Exception as error:  # a stale file handle, no memory, no thread to write with
                raise JournalError(
                    f"{self._store.location}: cannot write: {type(error).__name__}: {error}; the "
                    "acknowledged trials are safe; repair the cause, then resume the study"
                ) from error
            for event in waiting:
                event.set()
            finished = [e["number"] for e in batch if e["kind"] in _FINISHES]
            if finished:
                self._acknowledged += finished
                self.changed.set()
            if not self._queue:
                self._all_written.set()

    async def upload_forever(self) -> None:
        """Bring the journal to its storage, every few seconds."""
        while True:
            await asyncio.sleep(PUSH_SECONDS)
            await self._upload(closing=False)

    async def written(self) -> None:
        """Return when what is queued now is on disk; needs `commit_forever` to be running."""
        if self._queue:
            event = asyncio.Event()
            self._waiting.append(event)
            await event.wait()

    async def flush(self) -> None:
        """Return when all events are on disk; needs `commit_forever` to be running."""
        await self._all_written.wait()

    async def close(self) -> None:
        """Bring the journal to its storage, and release it."""
        await self._upload(closing=True)
        self.release()

    def release(self) -> None:
        """Close the journal's file and release its lock."""
        self._journal.close()

    async def _upload(self, closing: bool) -> None:
        try:
            await asyncio.to_thread(self._store.push, self._journal.size, closing)
        except OSError as error:
            logger.warning(
                "%s: the upload failed (%s); the journal is safe in %s%s",
                self._store.location,
                error,
                self._store.folder,
                ": resume the study on this machine to upload it" if closing else ", trying again",
            )
