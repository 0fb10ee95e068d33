"""Ledger: the state of a study in memory, and its journal on disk.

An event changes the state at once and is queued for the journal; a task of its own writes what
has queued up with one fsync, off the event loop. A finished trial is shown to the driver only when
its event is on disk: it is then acknowledged. Workers are refilled without waiting for the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from raybo.errors import JournalError
from raybo.study.journal.journal import Journal
from raybo.study.journal.record import Record
from raybo.study.journal.storage import PUSH_SECONDS, Store

logger = logging.getLogger(__name__)

_SNAPSHOT_EVENTS = 1000  # replaying fewer takes no time worth saving


class Ledger:
    """The only writer of a study's journal."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self.store = store
        self.journal = journal
        self.record = Record.from_contents(journal.contents)
        self.acknowledged: list[int] = list(self.record.order)  # numbers, as they finished
        self.changed = asyncio.Event()  # something was acknowledged
        self._queue: list[Mapping[str, Any]] = []
        self._dirty = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._fresh_events = len(journal.contents.events)

    def add(self, kind: str, **fields: Any) -> None:
        """Fold an event into the state and queue it for the disk."""
        event = {"kind": kind, **fields}
        self.record.apply(event)
        self._queue.append(event)
        self._idle.clear()
        self._dirty.set()

    async def commit_forever(self) -> None:
        """Write what is queued, again and again.

        Raises
        ------
        JournalError
            When the disk does not take it; nothing more is acknowledged then.
        """
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            batch, self._queue = self._queue, []
            await asyncio.to_thread(self.journal.append, *batch)
            self._fresh_events += len(batch)
            finished = [e["number"] for e in batch if e["kind"] in ("done", "failed", "given")]
            if finished:
                self.acknowledged += finished
                self.changed.set()
            if not self._queue:
                self._idle.set()

    async def push_forever(self) -> None:
        """Bring the journal to its storage, every few seconds."""
        while True:
            await asyncio.sleep(PUSH_SECONDS)
            await self._push(closing=False)

    async def flush(self) -> None:
        """Return when all events are on disk; needs `commit_forever` at work."""
        await self._idle.wait()

    async def close(self) -> None:
        """Leave a snapshot, bring the journal to its storage, and let go of it."""
        if self._idle.is_set() and self._fresh_events >= _SNAPSHOT_EVENTS:
            await asyncio.to_thread(self.journal.snapshot, self.record.to_json())
        await self._push(closing=True)
        self.journal.close()

    async def _push(self, closing: bool) -> None:
        try:
            await asyncio.to_thread(self.store.push, self.journal.size, closing)
        except JournalError:
            raise
        except OSError as error:
            logger.warning(
                "%s: the upload failed (%s); the journal is safe in %s%s",
                self.store.location,
                error,
                self.store.folder,
                ": resume the study on this machine to upload it" if closing else ", trying again",
            )
