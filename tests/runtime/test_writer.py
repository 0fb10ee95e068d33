"""What a journal writer acknowledges, and what it survives."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from raybo.runtime.writer import SNAPSHOT_EVENTS, JournalWriter
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


def test_a_snapshot_that_cannot_be_written_does_not_keep_a_study_from_ending(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "snapshot.tmp").mkdir()  # opening it for writing fails, as on a full disk

    async def go() -> None:
        writer = JournalWriter(FolderStore(tmp_path), Journal(tmp_path))
        commits = asyncio.ensure_future(writer.commit_forever())
        for number in range(SNAPSHOT_EVENTS):
            writer.add("asked", number=number, config={})
        await writer.flush()
        commits.cancel()
        await writer.close()

    asyncio.run(go())
    assert "snapshot" in caplog.text
    assert len(FolderStore(tmp_path).read().events) == SNAPSHOT_EVENTS
    Journal(tmp_path).close()  # its lock is free
