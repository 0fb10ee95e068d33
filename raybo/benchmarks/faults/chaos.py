"""Kill workers, nodes, coordinators and drivers of a running study, and count what it loses.

    raybo bench chaos
    raybo bench chaos --only workers,journal --worker-kills 3

The studies run on a Ray cluster of a head and three nodes on this machine. Each has a driver
process (target.py); this process kills, reads the journal every now and then, and in the end
compares it with the logs of evaluations and drivers (audit.py).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import ray
from rich.console import Console
from rich.table import Table

from raybo.benchmarks.faults.audit import (
    STUDY,
    Results,
    evaluating,
    examine,
    read_events,
    results_of,
)
from raybo.benchmarks.faults.cluster import LocalCluster
from raybo.benchmarks.faults.damage import count_bad_cuts, count_unnoticed_flips
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.terminal import wide_console
from raybo.runtime.driver import NAMESPACE
from raybo.study.journal.journal import JOURNAL_FILE, LOCK_FILE
from raybo.study.journal.lock import read_holder

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


class Target:
    """A study in `folder`, run by a driver process, and the results seen in its journal."""

    def __init__(self, folder: Path, trials: int, workers: int = 3) -> None:
        self.folder = folder
        self.seen: Results = {}
        self._size = -1  # of the journal, at the last look
        self._arguments = [str(folder), f"--trials={trials}", f"--workers={workers}"]
        folder.mkdir(parents=True)
        self.driver = self.start_driver()

    def start_driver(self) -> subprocess.Popen[bytes]:
        """Start the driver, or another one in its place."""
        with open(self.folder / "driver.log", "ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, "-m", "raybo.benchmarks.faults.target", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.driver

    def look(self) -> int:
        """Read the journal and return the number of trials that have ended."""
        path = self.folder / STUDY / JOURNAL_FILE
        size = path.stat().st_size if path.exists() else -1
        if size != self._size:
            self._size = size
            for number, result in results_of(read_events(self.folder)).items():
                self.seen.setdefault(number, result)
        return len(self.seen)


Kill = Callable[[Target], bool]  # whether there was something to kill


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
    target = Target(folder, trials)
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
        output = (folder / "driver.log").read_text(errors="replace")[-3000:]
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


def kill_worker(target: Target) -> bool:
    """Kill a worker process during an evaluation."""
    pids = [pid for pid in evaluating(target.folder) if _is_ray(pid)]
    return bool(pids) and _kill(random.choice(pids))


def make_kill_node(cluster: LocalCluster) -> Kill:
    """Return a function that kills a node with its workers, and starts another."""

    def kill_node(_: Target) -> bool:
        if cluster.n_alive() < 2:
            return False
        cluster.kill()
        cluster.add()
        return True

    return kill_node


def make_kill_coordinator() -> Kill:
    """Return a function that ends the coordinator: by a signal and by `ray.kill`, in turns."""
    killed: list[int] = []

    def kill_coordinator(target: Target) -> bool:
        pid = int(read_holder(target.folder / STUDY / LOCK_FILE).get("pid", 0))
        if pid in killed or not _is_ray(pid):
            return False  # the next one has not started
        if len(killed) % 2:
            actors: Any = ray.util.list_named_actors(all_namespaces=True)
            names = [a["name"] for a in actors if a["name"].startswith(f"{STUDY}@")]
            ray.kill(ray.get_actor(names[0], namespace=NAMESPACE), no_restart=False)
        else:
            _kill(pid)
        killed.append(pid)
        return True

    return kill_coordinator


def kill_driver(target: Target) -> bool:
    """Kill the driver and start it again: it resumes the study."""
    target.driver.kill()
    target.driver.wait()
    target.look()
    target.start_driver()
    return True


def kill_nothing(_: Target) -> bool:
    """Kill nothing."""
    return False


def _is_ray(pid: int) -> bool:
    """Return whether a process is a worker or an actor of Ray, not another with that number."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::")
    except OSError:
        return False


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


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
@click.option("--folder", type=click.Path(path_type=Path), help="keep journals and logs here")
def command(only: str, folder: Path | None, **n: int) -> None:
    """Kill workers, nodes, coordinators and drivers; damage a journal; count the losses.

    Exits with 1 when a result was lost or counted twice, or a trial got stuck or failed.
    """
    chosen = only.split(",")
    if unknown := set(chosen) - set(SCENARIOS):
        raise BenchmarkError(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    console, outcomes = wide_console(), []
    home = Path(tempfile.mkdtemp(prefix="raybo-chaos-")) if folder is None else folder
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
