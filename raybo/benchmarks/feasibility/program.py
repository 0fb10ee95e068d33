"""What failures and bounds cost a search, against other tools.

    raybo bench failures
    raybo bench failures --tasks hartmann6/20%,gramacy --tuners bo,optuna-gp --seeds 3

Failures at random: regret after as many values as without failures. Failures in a place: regret
after as many trials, and the share of failures among those after the 30th. Bounded outcomes:
regret of the best trial that keeps all bounds.
"""

from __future__ import annotations

import csv
import math
import os
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.progress import track
from rich.table import Table

from raybo.benchmarks.feasibility.problems import TASKS, Evaluation, get_task
from raybo.benchmarks.feasibility.tuners import build
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.benchmarks.tuners.base import split_specs

_LATE = 30  # trials before the failures of a run are counted


@dataclass(frozen=True)
class Run:
    """One row of the results file.

    `regret` is infinite where no trial was allowed; `allowed` counts the trials with a value that
    keeps all bounds, `late_failures` is the share of the others after the first 30; `seconds` are
    of the processor, for all asks and tells.
    """

    tuner: str
    task: str
    seed: int
    regret: float
    trials: int
    allowed: int
    late_failures: float
    seconds: float


def run(tuner_spec: str, task_name: str, seed: int, length: int | None = None) -> Run:
    """Return how a tuner does on a task; `length` instead of the task's."""
    task = get_task(task_name)
    wanted = length or task.length
    tuner, rng = build(tuner_spec, task, seed), np.random.default_rng([seed, 7])
    found: list[Evaluation] = []
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peers
        while (sum(e.allowed for e in found) if task.by_values else len(found)) < wanted:
            found.append(task.evaluate(tuner.ask(), rng))
            tuner.tell(found[-1])
    seconds = time.process_time() - clock
    kept = [e.value for e in found if e.allowed and e.value is not None]
    late = [not e.allowed for e in found[_LATE:]]
    return Run(
        tuner_spec,
        task_name,
        seed,
        float(f"{min(kept, default=math.inf) - task.optimum:.4g}"),
        len(found),
        len(kept),
        round(statistics.fmean(late), 3) if late else 0.0,
        round(seconds, 2),
    )


def read(path: Path) -> list[Run]:
    """Return the runs of a results file; none where there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Run(
            row["tuner"],
            row["task"],
            int(row["seed"]),
            float(row["regret"]),
            int(row["trials"]),
            int(row["allowed"]),
            float(row["late_failures"]),
            float(row["seconds"]),
        )
        for row in rows
    ]


def append(path: Path, done: Run) -> None:
    """Add a run to a results file."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Run)], lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(asdict(done))
        file.flush()
        os.fsync(file.fileno())


def table_of(runs: Iterable[Run]) -> Table:
    """Return medians and ranges by tuner and task."""
    groups = defaultdict[tuple[str, str], list[Run]](list)
    for done in runs:
        groups[done.tuner, done.task].append(done)
    table = Table(title="regret of the best allowed trial")
    table.add_column("tuner")
    table.add_column("task")
    for heading in ("seeds", "median", "least", "most", "allowed", "late failures", "seconds"):
        table.add_column(heading, justify="right")
    for (tuner, task), group in groups.items():
        regrets = [done.regret for done in group]
        table.add_row(
            tuner,
            task,
            str(len(group)),
            *(f"{x:.2g}" for x in (statistics.median(regrets), min(regrets), max(regrets))),
            f"{statistics.median(done.allowed for done in group):g}",
            f"{statistics.fmean(done.late_failures for done in group):.0%}",
            f"{statistics.median(done.seconds for done in group):.1f}",
        )
    return table


@click.command()
@click.option("--tasks", default=",".join(TASKS), help="comma-separated  [default: all]")
@click.option("--tuners", default="bo", help="comma-separated methods and peers")
@click.option("--seeds", type=click.IntRange(1), default=10)
@click.option("--first-seed", type=click.IntRange(0), default=0, help="seeds start here")
@click.option("--length", type=click.IntRange(1), help="of a run, instead of the task's")
@click.option("--results", type=click.Path(path_type=Path), help="CSV file; continued if there")
def command(tasks: str, tuners: str, seeds: int, first_seed: int, **options: Any) -> None:
    """Run tuners on tasks; runs that the results file holds are not run again."""
    single_thread()
    length, results = options["length"], options["results"]
    runs = read(results) if results else []
    known = {(done.tuner, done.task, done.seed) for done in runs}
    wanted = [
        (spec, task, seed)
        for spec in split_specs(tuners)
        for task in tasks.split(",")
        for seed in range(first_seed, first_seed + seeds)
    ]
    todo = [key for key in wanted if key not in known]
    console = wide_console()
    for spec, task, seed in track(todo, "runs", console=console, transient=True):
        done = run(spec, task, seed, length)
        runs.append(done)
        if results:
            append(results, done)
    chosen = set(wanted)
    console.print(table_of(d for d in runs if (d.tuner, d.task, d.seed) in chosen))
