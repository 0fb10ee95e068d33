"""Kill everything that can be killed while a study runs, and count what it lost.

    python -m raybo.benchmarks.faults.chaos
    python -m raybo.benchmarks.faults.chaos --only workers,journal --worker-kills 3

Runs on a Ray cluster of its own: a head and three nodes on this machine. Each study has a driver
of its own; this process only strikes, reads the journal now and then, and at the end examines the
journal beside logs that evaluations and drivers wrote (raybo/benchmarks/faults/evidence.py).
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

from raybo.benchmarks.faults.evidence import (
    STUDY,
    Results,
    evaluating,
    examine,
    read_events,
    results_of,
)
from raybo.benchmarks.faults.raylets import Raylets, restart_with_token
from raybo.benchmarks.faults.torn import count_bad_cuts, count_unnoticed_flips
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.run import wide_console
from raybo.runtime.driver import NAMESPACE
from raybo.study.journal.journal import JOURNAL_FILE, LOCK_FILE
from raybo.study.journal.lock import read_holder

SCENARIOS = ("workers", "nodes", "coordinator", "drivers", "journal")

_LOOK_SECONDS = 0.1  # between two looks at the journal
_MOMENT = 0.4  # a blow falls at a random moment within so many seconds
_STRUCK_SHARE = 0.9  # of the trials: the last blow falls before so many are done
_JOURNAL_TRIALS = 60


@dataclass(frozen=True)
class Verdict:
    """One row of the table."""

    name: str
    done: int | None
    failed: int | None
    blows: int
    wanted: int
    evaluations: int | None
    lost: int
    twice: int
    stuck: int
    seconds: float
    output: str = ""  # the end of what the driver said, if it failed

    @property
    def good(self) -> bool:
        """Whether all blows fell, and nothing was lost, doubled, stuck or failed."""
        harm = self.lost + self.twice + self.stuck + (self.failed or 0)
        return harm == 0 and self.blows == self.wanted and not self.output


class Attack:
    """A study in `folder`, run by a driver process, and what was seen of it."""

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
                [sys.executable, "-m", "raybo.benchmarks.faults.victim", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.driver

    def look(self) -> int:
        """Number of the trials that have ended, as the journal says now."""
        path = self.folder / STUDY / JOURNAL_FILE
        size = path.stat().st_size if path.exists() else -1
        if size != self._size:
            self._size = size
            for number, result in results_of(read_events(self.folder)).items():
                self.seen.setdefault(number, result)
        return len(self.seen)


Strike = Callable[[Attack], bool]  # whether the blow fell


def endure(
    name: str, strike: Strike, folder: Path, trials: int, blows: int, patience: float = 300.0
) -> Verdict:
    """Run a study under attack.

    Parameters
    ----------
    name
        Of the row.
    strike
        Deals a blow, if there is something to hit.
    folder
        New folder for the study and the evidence.
    trials, blows
        Budget of the study; blows, spread evenly over its first trials.
    patience
        Seconds without a result after which the study is stuck, and is ended.
    """
    clock = time.monotonic()
    attack = Attack(folder, trials)
    marks = [int((i + 1) * _STRUCK_SHARE * trials / (blows + 1)) for i in range(blows)]
    fallen = done = 0
    latest = clock
    try:
        while attack.driver.poll() is None:
            if (now_done := attack.look()) > done:
                done, latest = now_done, time.monotonic()
            if time.monotonic() - latest > patience:
                break
            if fallen < blows and done >= marks[fallen]:
                time.sleep(random.uniform(0, _MOMENT))
                fallen += strike(attack)
            time.sleep(_LOOK_SECONDS)
    finally:
        attack.driver.kill()
        attack.driver.wait()
    output = ""
    if attack.driver.returncode != 0:
        output = (folder / "driver.log").read_text(errors="replace")[-3000:]
    found = examine(folder, trials, attack.seen, strike is not kill_driver)
    return Verdict(
        name,
        found.done,
        found.failed,
        fallen,
        blows,
        found.evaluations,
        len(found.lost),
        len(found.twice),
        len(found.stuck),
        time.monotonic() - clock,
        output,
    )


def kill_worker(attack: Attack) -> bool:
    """Kill a worker process in the midst of an evaluation."""
    pids = [pid for pid in evaluating(attack.folder) if _is_ray(pid)]
    return bool(pids) and _kill(random.choice(pids))


def make_kill_node(raylets: Raylets) -> Strike:
    """Strike that kills a node, workers and all, and starts another in its place."""

    def kill_node(_: Attack) -> bool:
        if raylets.n_alive() < 2:
            return False
        raylets.kill(random.randrange(100))
        raylets.add()
        return True

    return kill_node


def make_kill_coordinator() -> Strike:
    """Strike that ends the coordinator: its process is killed, or Ray is told to, in turns."""
    killed: list[int] = []

    def kill_coordinator(attack: Attack) -> bool:
        pid = int(read_holder(attack.folder / STUDY / LOCK_FILE).get("pid", 0))
        if pid in killed or not _is_ray(pid):
            return False  # the next one has not begun
        if len(killed) % 2:
            actors: Any = ray.util.list_named_actors(all_namespaces=True)
            ours = [a["name"] for a in actors if a["name"].startswith(f"{STUDY}@")]
            ray.kill(ray.get_actor(ours[0], namespace=NAMESPACE), no_restart=False)
        else:
            _kill(pid)
        killed.append(pid)
        return True

    return kill_coordinator


def kill_driver(attack: Attack) -> bool:
    """Kill the driver and start it again: it resumes the study."""
    attack.driver.kill()
    attack.driver.wait()
    attack.look()
    attack.start_driver()
    return True


def strike_nothing(_: Attack) -> bool:
    """No blow."""
    return False


def _is_ray(pid: int) -> bool:
    """Whether a process is a worker or an actor of Ray, and not another that got its number."""
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


def damage_journal(folder: Path, records: int, flips: int) -> list[Verdict]:
    """Rows for a journal that is cut at every byte of its last records, and for flipped bits."""
    endure("", strike_nothing, folder, _JOURNAL_TRIALS, 0)
    data = (folder / STUDY / JOURNAL_FILE).read_bytes()
    clock = time.monotonic()
    cuts, bad = count_bad_cuts(data, records)
    middle = time.monotonic()
    unnoticed = count_unnoticed_flips(data, flips)
    name = f"journal cut in its last {records} records"
    spent = time.monotonic() - middle
    return [
        Verdict(name, None, None, cuts, cuts, None, bad, 0, 0, middle - clock),
        Verdict("bit flips", None, None, flips, flips, None, unnoticed, 0, 0, spent),
    ]


def print_verdicts(verdicts: list[Verdict], console: Console) -> None:
    """Print the table, and what drivers said that failed."""
    table = Table(title="acknowledged results under attack")
    table.add_column("attack")
    headings = ("trials done", "failed", "kills", "evaluations", "lost", "counted twice", "stuck",
                "seconds")  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right")
    for v in verdicts:
        row = (
            v.done,
            v.failed,
            v.blows,
            v.evaluations,
            v.lost,
            v.twice,
            v.stuck,
            round(v.seconds),
        )
        table.add_row(v.name, *("" if x is None else str(x) for x in row))
    console.print(table)
    for v in verdicts:
        if v.blows < v.wanted:
            console.print(f"{v.name}: only {v.blows} of {v.wanted} blows fell")
        if v.output:
            console.print(f"{v.name}: the driver ended with an error:", markup=False)
            console.print(v.output, markup=False)


@click.command()
@click.option("--only", default=",".join(SCENARIOS), help="scenarios, separated by commas")
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
@click.option("--folder", type=click.Path(path_type=Path), help="keep the evidence here")
def command(only: str, folder: Path | None, **n: int) -> None:
    """Kill workers, nodes, coordinators and drivers; cut and flip a journal; count the losses.

    Exits with 1 when a result was lost or counted twice, or a trial got stuck or failed.
    """
    chosen = only.split(",")
    if unknown := set(chosen) - set(SCENARIOS):
        raise BenchmarkError(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    restart_with_token()
    console, verdicts = wide_console(), []
    home = Path(tempfile.mkdtemp(prefix="raybo-chaos-")) if folder is None else folder
    with Raylets() as raylets:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Ray's own would leave the nodes
        strikes: dict[str, tuple[str, Strike, int, int]] = {
            "workers": ("worker kills", kill_worker, n["worker_trials"], n["worker_kills"]),
            "nodes": ("node kills", make_kill_node(raylets), n["node_trials"], n["node_kills"]),
            "coordinator": ("coordinator kills", make_kill_coordinator(),
                            n["coordinator_trials"], n["coordinator_kills"]),
            "drivers": ("driver kills", kill_driver, n["driver_trials"], n["driver_kills"]),
        }  # fmt: skip
        for scenario in chosen:
            if scenario == "journal":
                verdicts += damage_journal(home / scenario, n["records"], n["flips"])
            else:
                name, strike, trials, blows = strikes[scenario]
                verdicts.append(endure(name, strike, home / scenario, trials, blows))
            console.print(f"{scenario}: {'good' if verdicts[-1].good else 'BAD'}")
    print_verdicts(verdicts, console)
    if folder is None:
        shutil.rmtree(home)
    if not all(verdict.good for verdict in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    command()
