"""What can happen to the file of a running study's journal: a full disk, another file in place."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

from raybo.benchmarks.faults.audit import Findings, examine
from raybo.benchmarks.faults.kills import Target

_LOOK_SECONDS = 0.1  # between two looks at the journal
_PATIENCE_SECONDS = 300.0  # for a driver to end


def fill_disk(target: Target) -> None:
    """Let the coordinator write a few bytes more, as on a disk that is nearly full.

    The limit on the size of its files, which needs no rights, makes `write` fail where the disk
    would; later processes have no such limit: room was made.
    """
    limit = target.journal.stat().st_size + 100
    resource.prlimit(target.coordinator, resource.RLIMIT_FSIZE, (limit, limit))


def replace_journal(target: Target) -> None:
    """Put a copy in place of the journal, as editors, `sed -i` and restored backups do."""
    os.kill(target.coordinator, signal.SIGSTOP)  # the copy is complete
    copy = target.journal.with_suffix(".copy")
    copy.write_bytes(target.journal.read_bytes())
    copy.replace(target.journal)
    os.kill(target.coordinator, signal.SIGCONT)


def run_with_trouble(
    trouble: Callable[[Target], None], message: str, folder: Path, trials: int
) -> tuple[Findings, bool]:
    """Run a study, make trouble after a third of it, resume it; return what an audit finds.

    The second is whether the first driver ended with an error that says `message`.
    """
    target = Target(folder, trials=trials, workers=3)
    try:
        while target.look() < trials // 3 and target.driver.poll() is None:
            time.sleep(_LOOK_SECONDS)
        trouble(target)
        noticed = target.driver.wait(_PATIENCE_SECONDS) != 0 and message in target.output
        target.look()
        target.start_driver()
        target.driver.wait(_PATIENCE_SECONDS)
    finally:
        target.driver.kill()
        target.driver.wait()
    return examine(folder, trials, target.seen, all_received=False), noticed
