"""What a journal writer acknowledges, and what it survives."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from raybo.runtime import writer as module
from raybo.runtime.writer import JournalWriter
from raybo.study.journal.compact import COMPACT_FILE, read_record
from raybo.study.journal.journal import Journal, read_journal
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
        assert Record.from_contents(read_journal(tmp_path)).order == [0]
        commits.cancel()
        await writer.close()

    asyncio.run(go())


def test_a_long_journal_is_compacted_while_a_study_runs_and_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PUSH_SECONDS", 0.01)
    short = tmp_path / COMPACT_FILE

    async def go() -> None:
        writer = JournalWriter(FolderStore(tmp_path), Journal(tmp_path))
        jobs = [asyncio.ensure_future(j()) for j in (writer.commit_forever, writer.upload_forever)]
        writer.add("asked", number=0, config={"x": "long" * 2**18})
        while not short.exists():
            await asyncio.sleep(0.01)
        before = short.stat().st_ino
        writer.add("done", number=0, value=2.0)
        await writer.flush()
        assert read_record(tmp_path) == writer.record
        for job in jobs:
            job.cancel()
        assert short.stat().st_ino == before  # it has hardly grown
        await writer.close()
        assert short.stat().st_ino != before
        assert read_record(tmp_path) == writer.record

    asyncio.run(go())
