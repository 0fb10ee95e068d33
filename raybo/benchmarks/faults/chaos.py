"""Kill workers, nodes, coordinators and drivers of a running study, and count what it loses.

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
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from raybo.benchmarks.faults.audit import STUDY, examine
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
from raybo.benchmarks.faults.soak import NODES as SOAK_NODES
from raybo.benchmarks.faults.soak import print_soak, run_soak
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.terminal import wide_console
from raybo.study.journal.journal import JOURNAL_FILE

SCENARIOS = ("workers", "nodes", "coordinator", "drivers", "journal")

_LOOK_SECONDS = 0.1  # between two looks at the journal
_DELAY_SECONDS = 0.4  # a kill comes after a random delay of up to this
_LAST_KILL = 0.9  # share of the trials that are done when the last kill comes
_PATIENCE_SECONDS = 300.0  # without a result, after which a study is stuck
_JOURNAL_TRIALS = 60


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
    """
    clock = time.monotonic()
    target = Target(folder, trials=trials, workers=3)
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
    return Outcome(
        name,
        found.done,
        found.failed,
        n_killed,
        kills,
        found.evaluations,
        len(found.lost),
        len(found.twice),
        len(found.stuck),
        time.monotonic() - clock,
        output,
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
@click.option("--only", default=",".join(SCENARIOS), help="comma-separated scenarios")
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
@click.option("--minutes", default=60.0, help="length of the soak")
@click.option("--every", default=10.0, help="mean seconds between two kills of the soak")
@click.option("--folder", type=click.Path(path_type=Path), help="keep journals and logs here")
def command(only: str, folder: Path | None, minutes: float, every: float, **n: int) -> None:
    """Kill workers, nodes, coordinators and drivers; damage a journal; count the losses.

    Exits with 1 when a result was lost or counted twice, or a trial got stuck or failed.
    """
    chosen = only.split(",")
    known = (*SCENARIOS, "soak")
    if unknown := set(chosen) - set(known):
        raise BenchmarkError(f"no scenario {', '.join(unknown)}; there are {', '.join(known)}")
    console, outcomes = wide_console(), []
    home = Path(tempfile.mkdtemp(prefix="raybo-chaos-")) if folder is None else folder
    if "soak" in chosen:
        chosen.remove("soak")
        with LocalCluster(SOAK_NODES) as cluster:
            soak = run_soak(cluster, home / "soak", 60 * minutes, every)
        print_soak(soak, console)
        if not soak.good:
            sys.exit(1)
    if not chosen:
        return
    with LocalCluster() as cluster:
        kills: dict[str, tuple[Kill, int, int]] = {
            "workers": (kill_worker, n["worker_trials"], n["worker_kills"]),
            "nodes": (make_kill_node(cluster), n["node_trials"], n["node_kills"]),
            "coordinator": (
                make_kill_coordinator(),
                n["coordinator_trials"],
                n["coordinator_kills"],
            ),
            "drivers": (kill_driver, n["driver_trials"], n["driver_kills"]),
        }
        for scenario in chosen:
            if scenario == "journal":
                outcomes += damage_journal(home / scenario, n["records"], n["flips"])
            else:
                kill, trials, count = kills[scenario]
                name = f"{scenario.removesuffix('s')} kills"
                outcomes.append(run_with_kills(name, kill, home / scenario, trials, count))
            console.print(f"{scenario}: {'good' if outcomes[-1].good else 'BAD'}")
    print_outcomes(outcomes, console)
    if folder is None:
        shutil.rmtree(home)
    if not all(outcome.good for outcome in outcomes):
        sys.exit(1)
