"""Do to running studies whatever goes wrong with machines and files, and count what they lose.

    raybo bench chaos
    raybo bench chaos --only workers,journal --worker-kills 3
    raybo bench chaos --only soak --minutes 60

The studies run on a Ray cluster of a head and three nodes on this machine. Each has a driver
process (target.py); this process kills, reads the journal every now and then, and in the end
compares it with the logs of evaluations and drivers (audit.py).
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from raybo.benchmarks.faults.audit import STUDY, Findings, examine, read_events
from raybo.benchmarks.faults.cluster import LocalCluster
from raybo.benchmarks.faults.damage import count_bad_cuts, count_unnoticed_flips
from raybo.benchmarks.faults.kills import (
    Kill,
    Target,
    kill_driver,
    kill_worker,
    make_kill_coordinator,
    make_kill_node,
)
from raybo.benchmarks.faults.soak import describe, run_soak
from raybo.benchmarks.faults.storage import fill_disk, replace_journal, run_with_trouble
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.terminal import wide_console
from raybo.study.journal.journal import JOURNAL_FILE

_LOOK_SECONDS = 0.1  # between two looks at the journal
_DELAY_SECONDS = 0.4  # a kill comes after a random delay of up to this
_LAST_KILL = 0.9  # share of the trials that are done when the last kill comes
_PATIENCE_SECONDS = 300.0  # without a result, after which a study is stuck
_JOURNAL_TRIALS = 60
_SLOW_SECONDS = 1.0  # a hostile file that takes longer counts as stuck
_FROZEN_SHARE, _FROZEN_TIMEOUT = 0.25, 3.0
_STEPS = 10  # of evaluations that report


@dataclass(frozen=True)
class Outcome:
    """One row of the table."""

    name: str
    done: int | None
    failed: int | None
    faults: int  # kills, cuts or flips that happened
    wanted: int  # those that should have happened
    evaluations: int | None
    lost: int
    twice: int
    stuck: int
    seconds: float
    output: str = ""  # end of the driver's output, if it failed

    @property
    def good(self) -> bool:
        """Return whether all faults happened, and nothing was lost, doubled, stuck or failed."""
        harm = self.lost + self.twice + self.stuck + (self.failed or 0)
        return harm == 0 and self.faults == self.wanted and not self.output


def run_with_kills(
    name: str,
    kill: Kill,
    folder: Path,
    trials: int,
    kills: int,
    patience: float = _PATIENCE_SECONDS,
    **options: Any,
) -> Outcome:
    """Run a study, kill parts of it meanwhile, and return what an audit finds.

    Parameters
    ----------
    name
        Name of the row.
    kill
        Kills something, if it is there.
    folder
        New folder for the study and the logs.
    trials, kills
        Length of the study; number of kills, spread evenly over it.
    patience
        Seconds without a result after which the study is stuck, and is ended.
    options
        Further options of target.py.
    """
    clock = time.monotonic()
    target = Target(folder, trials=trials, workers=3, **options)
    marks = [int((i + 1) * _LAST_KILL * trials / (kills + 1)) for i in range(kills)]
    n_killed = done = 0
    latest = clock
    try:
        while target.driver.poll() is None:
            if (now_done := target.look()) > done:
                done, latest = now_done, time.monotonic()
            if time.monotonic() - latest > patience:
                break
            if n_killed < kills and done >= marks[n_killed]:
                time.sleep(random.uniform(0, _DELAY_SECONDS))
                n_killed += kill(target)
            time.sleep(_LOOK_SECONDS)
    finally:
        target.driver.kill()
        target.driver.wait()
    output = ""
    if target.driver.returncode != 0:
        output = target.output
    found = examine(folder, trials, target.seen, all_received=kill is not kill_driver)
    row = _row(name, found, n_killed, kills, time.monotonic() - clock)
    return replace(row, output=output)


def _row(name: str, found: Findings, faults: int, wanted: int, seconds: float) -> Outcome:
    harm = (len(found.lost), len(found.twice), len(found.stuck))
    return Outcome(
        name, found.done, found.failed, faults, wanted, found.evaluations, *harm, seconds
    )


def kill_nothing(_: Target) -> bool:
    """Kill nothing."""
    return False


def damage_journal(folder: Path, records: int, flips: int) -> list[Outcome]:
    """Return a row for a journal cut at every byte of its last records, and one for bit flips."""
    run_with_kills("", kill_nothing, folder, _JOURNAL_TRIALS, 0)
    data = (folder / STUDY / JOURNAL_FILE).read_bytes()
    start = time.monotonic()
    cuts, bad = count_bad_cuts(data, records)
    middle = time.monotonic()
    unnoticed = count_unnoticed_flips(data, flips)
    end = time.monotonic()
    name = f"journal cut in its last {records} records"
    return [
        Outcome(name, None, None, cuts, cuts, None, bad, 0, 0, middle - start),
        Outcome("bit flips", None, None, flips, flips, None, unnoticed, 0, 0, end - middle),
    ]


def trouble_storage(name: str, folder: Path, trials: int) -> Outcome:
    """Return the row of a study whose disk is full, or whose journal is replaced."""
    trouble, message = _TROUBLE[name]
    clock = time.monotonic()
    found, noticed = run_with_trouble(trouble, message, folder, trials)
    return _row(f"{name}, resumed", found, int(noticed), 1, time.monotonic() - clock)


def freeze(folder: Path, trials: int) -> Outcome:
    """Return the row of trials that freeze before their first message, and must time out."""
    options = {"frozen": _FROZEN_SHARE, "timeout": _FROZEN_TIMEOUT}
    row = run_with_kills("frozen at once", kill_nothing, folder, trials, 0, **options)
    events = read_events(folder)
    frozen = {e["number"] for e in events
              if e["kind"] == "asked" and e["config"]["x"] < _FROZEN_SHARE}  # fmt: skip
    late = {e["number"] for e in events if e["kind"] == "failed" and e["cause"] == "timeout"}
    return replace(row, failed=(row.failed or 0) - len(frozen & late), faults=len(frozen & late),
                   wanted=len(frozen))  # fmt: skip


def read_hostile(folder: Path, files: int) -> list[Outcome]:
    """Return a row for each kind of hostile file; an error that is not raybo's counts as lost."""
    from raybo.benchmarks.faults.fuzz import KINDS, fuzz  # noqa: PLC0415  (needs the extra `dev`)

    folder.mkdir(parents=True)
    rows = []
    for kind in KINDS:
        clock = time.monotonic()
        found = fuzz(kind, files, folder)
        slow = int(found.slowest > _SLOW_SECONDS)
        rows.append(
            Outcome(
                f"hostile {kind}, slowest {found.slowest:.2f} s",
                None,
                None,
                found.n_files,
                found.n_files,
                None,
                found.errors.total(),
                0,
                slow,
                time.monotonic() - clock,
                "\n".join(found.errors),
            )
        )
    return rows


_TROUBLE: dict[str, tuple[Callable[[Target], None], str]] = {
    "disk full": (fill_disk, "cannot write"),
    "journal replaced": (replace_journal, "replaced, moved or removed"),
}


def print_outcomes(outcomes: list[Outcome], console: Console) -> None:
    """Print the table, and the output of drivers that failed."""
    table = Table(title="acknowledged results of studies whose processes are killed")
    table.add_column("fault")
    headings = ("trials done", "failed", "faults", "evaluations", "lost", "counted twice", "stuck",
                "seconds")  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right")
    for o in outcomes:
        row = (
            o.done,
            o.failed,
            o.faults,
            o.evaluations,
            o.lost,
            o.twice,
            o.stuck,
            round(o.seconds),
        )
        table.add_row(o.name, *("" if x is None else str(x) for x in row))
    console.print(table)
    for o in outcomes:
        if o.faults < o.wanted:
            console.print(f"{o.name}: only {o.faults} of {o.wanted} happened")
        if o.output:
            console.print(f"{o.name}: the driver ended with an error:", markup=False)
            console.print(o.output, markup=False)


@click.command()
@click.option("--only", default="", help="comma-separated scenarios  [default: all but soak]")
@click.option("--worker-kills", default=40)
@click.option("--worker-trials", default=200)
@click.option("--node-kills", default=5)
@click.option("--node-trials", default=100)
@click.option("--coordinator-kills", default=20)
@click.option("--coordinator-trials", default=200)
@click.option("--driver-kills", default=20)
@click.option("--driver-trials", default=200)
@click.option("--records", default=20, help="last records of a journal that is cut")
@click.option("--flips", default=1000, help="bits flipped in a journal, one at a time")
@click.option("--storage-trials", default=60, help="of the studies with a full disk or a copy")
@click.option("--frozen-trials", default=40)
@click.option("--files", default=1000, help="hostile files of each kind")
@click.option("--minutes", default=60.0, help="length of the soak")
@click.option("--every", default=10.0, help="mean seconds between two kills of the soak")
@click.option("--folder", type=click.Path(path_type=Path), help="keep journals and logs here")
def command(only: str, folder: Path | None, **n: Any) -> None:
    """Kill, freeze, fill, replace and damage what a study needs; count the losses.

    Exits with 1 when a result was lost or counted twice, or a trial got stuck or failed.
    """
    console, outcomes = wide_console(), []
    home = Path(tempfile.mkdtemp(prefix="raybo-chaos-")) if folder is None else folder
    with LocalCluster() as cluster:
        known = scenarios(cluster, n, console)
        chosen = only.split(",") if only else [name for name in known if name != "soak"]
        if unknown := set(chosen) - set(known):
            raise BenchmarkError(f"no scenario {', '.join(unknown)}; there are {', '.join(known)}")
        for name in chosen:
            rows = known[name](home / name)
            console.print(f"{name}: {'good' if all(row.good for row in rows) else 'BAD'}")
            outcomes += rows
    print_outcomes(outcomes, console)
    if folder is None:
        shutil.rmtree(home)
    if not all(outcome.good for outcome in outcomes):
        sys.exit(1)


def scenarios(
    cluster: LocalCluster, n: Mapping[str, Any], console: Console
) -> dict[str, Callable[[Path], list[Outcome]]]:
    """Return what can be done to a study, each in a new folder."""

    def kills(part: str, kill: Kill) -> Callable[[Path], list[Outcome]]:
        trials, count = n[f"{part}_trials"], n[f"{part}_kills"]
        return lambda place: [run_with_kills(f"{part} kills", kill, place, trials, count)]

    def trouble(name: str) -> Callable[[Path], list[Outcome]]:
        return lambda place: [trouble_storage(name, place, n["storage_trials"])]

    def reports(place: Path, **more: Any) -> list[Outcome]:
        parts: dict[str, Kill] = {"coordinator": make_kill_coordinator(), "driver": kill_driver}
        if more:
            parts["worker"] = kill_worker
        return [
            run_with_kills(
                f"{part} kills, with {'checkpoints' if more else 'reports'}",
                kill,
                place / part,
                n[f"{part}_trials"],
                n[f"{part}_kills"],
                steps=_STEPS,
                **more,
            )
            for part, kill in parts.items()
        ]

    def soak(place: Path) -> list[Outcome]:
        done = run_soak(cluster, place, 60 * n["minutes"], n["every"])
        console.print(describe(done))
        count, found = done.kills.total(), done.findings
        row = _row("soak", found, count, count, done.seconds)
        return [replace(row, output=done.output)]

    return {
        "workers": kills("worker", kill_worker),
        "nodes": kills("node", make_kill_node(cluster)),
        "coordinator": kills("coordinator", make_kill_coordinator()),
        "drivers": kills("driver", kill_driver),
        "journal": lambda place: damage_journal(place, n["records"], n["flips"]),
        "disk": trouble("disk full"),
        "replaced": trouble("journal replaced"),
        "reports": reports,
        "checkpoints": lambda place: reports(place, resumes=True),
        "frozen": lambda place: [freeze(place, n["frozen_trials"])],
        "hostile": lambda place: read_hostile(place, n["files"]),
        "soak": soak,
    }
