"""What a journal writer acknowledges, and what it survives."""

from __future__ import annotations

import asyncio
from pathlib import Path

from raybo.runtime.writer import JournalWriter
from raybo.study.journal.journal import Journal
from raybo.study.journal.record import Record
from raybo.study.journal.storage import FolderStore


def test_a_trial_is_acknowledged_once_it_is_on_disk(tmp_path: Path) -> None:
    async def go() -> None:
        writer = JournalWriter(FolderStore(tmp_path), Journal(tmp_path))
        writer.add("asked", number=0, config={"x": 1})
        writer.add("done", number=0, value=2.0)
        assert writer.record.order == [0]
        assert writer.acknowledged() == []
        commits = asyncio.ensure_future(writer.commit_forever())
        await writer.flush()
        assert [trial.number for trial in writer.acknowledged()] == [0]
        assert Record.from_contents(FolderStore(tmp_path).read()).order == [0]
        commits.cancel()
        await writer.close()

    asyncio.run(go())
