"""What early stopping saves: trainings of recorded problems tuned in simulated time.

    raybo bench early-stopping --tuners auto,auto+stop,random+asha,optuna-tpe+asha
    raybo bench early-stopping --tasks 7593,34539 --seeds 3 --results runs.jsonl
    raybo bench early-stopping --tasks xgboost-1489 --tuners auto,auto+stop,random+asha3

A task is a network of LCBench on an OpenML task, trained for 52 epochs, or XGBoost on a data set
of OpenML, trained with more and more of the data: 27 steps, which take as long as the training
with so much data. Accuracies and seconds are those of YAHPO Gym's surrogates, and 8 trainings run
at a time. The task "cifar10-cnn" is a network that is trained on a GPU (`live.py`).

A table has the best accuracy after the time of 10, 30 and 100 full trainings, and the share of
that time after which a tuner is as good as the first one at the end.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import warnings
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import click
from rich.progress import track
from rich.table import Table

from raybo.benchmarks.early_stopping.simulator import Trace, simulate
from raybo.benchmarks.early_stopping.tuners import build
from raybo.benchmarks.problems.base import one_of
from raybo.benchmarks.problems.recorded.yahpo import (
    SCENARIOS,
    Surrogate,
    folder_of,
    instances,
    parameters,
)
from raybo.benchmarks.terminal import single_thread, wide_console

_LCBENCH, _XGBOOST = "yahpo-lcbench", "yahpo-xgboost"
_BOOSTED = "xgboost-"  # tasks that begin so are of the latter
_LIVE = "cifar10-cnn"  # see live.py
_SHOWN = (0.1, 0.3, 1.0)  # shares of the budget


@dataclass(frozen=True)
class Run:
    """One line of the results file."""

    tuner: str
    task: str
    seed: int
    trainings: float
    workers: int
    trace: Trace

    @property
    def key(self) -> tuple[str, str, int, float, int]:
        """What makes it a run of its own."""
        return self.tuner, self.task, self.seed, self.trainings, self.workers


def run(tuner: str, task: str, seed: int, trainings: float, workers: int) -> Run:
    """Run a tuner on a task: the number of one of LCBench, or "xgboost-" and a data set."""
    name = _XGBOOST if task.startswith(_BOOSTED) else _LCBENCH
    instance = one_of(task.removeprefix(_BOOSTED), instances(name))
    folder, steps = folder_of(SCENARIOS[name]), SCENARIOS[name].steps
    space, surrogate = parameters(name, folder), Surrogate(name, instance, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peers
        trace = simulate(build(tuner, space, seed, steps), surrogate, space, workers, trainings)
    return Run(tuner, task, seed, trainings, workers, trace)


class _LiveRuns:
    """Runs of the network that is trained, by processes that are started for the first of them."""

    def __init__(self, workers: int, device: str, stack: ExitStack) -> None:
        self._workers, self._device, self._stack = workers, device, stack
        self._ends: Sequence[Connection] = ()
        self._unit = 0.0

    def __call__(self, tuner: str, task: str, seed: int, trainings: float, workers: int) -> Run:
        from raybo.benchmarks.early_stopping import live  # noqa: PLC0415  (it trains with torch)
        from raybo.benchmarks.problems.networks.small_cnn import EPOCHS, SPACE  # noqa: PLC0415

        if not self._ends:
            self._ends = self._stack.enter_context(live.trainers(self._workers, self._device))
            self._unit = live.full_training(self._ends)
        built = build(tuner, SPACE, seed, EPOCHS)
        trace = live.tune(built, self._ends, self._unit, trainings)
        return Run(tuner, task, seed, trainings, workers, trace)


def read(path: Path) -> list[Run]:
    """Return the runs of a results file; none where there is none."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        best = [(t, value) for t, value in item["trace"].pop("best")]
        found.append(Run(**{**item, "trace": Trace(best, **item["trace"])}))
    return found


def append(path: Path, done: Run) -> None:
    """Add a run to a results file."""
    item = asdict(done)
    item["trace"]["best"] = [(round(t, 3), round(v, 4)) for t, v in done.trace.best]
    item["trace"]["cpu"] = round(done.trace.cpu, 1)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(item) + "\n")
        file.flush()
        os.fsync(file.fileno())


def table_of(runs: Sequence[Run], tuners: Sequence[str]) -> Table:
    """Return a row per tuner: means over the data sets and seeds that all tuners have."""
    by_cell = defaultdict[tuple[str, int], dict[str, Run]](dict)
    for done in runs:
        by_cell[done.task, done.seed][done.tuner] = done
    cells = [cell for cell in by_cell.values() if all(tuner in cell for tuner in tuners)]
    budget = runs[0].trainings if runs else 0.0
    title = f"{len(cells)} runs each; accuracy after the time of full trainings"
    table = Table(title=title)
    table.add_column("tuner")
    for heading in (
        *(f"after {share * budget:g}" for share in _SHOWN),
        f"time to {tuners[0]}'s end",
        "better : worse",
        "trials",
        "complete",
        "s per ask",
    ):
        table.add_column(heading, justify="right")
    for tuner in tuners if cells else ():
        own = [cell[tuner].trace for cell in cells]
        first = [cell[tuners[0]].trace for cell in cells]
        means = [statistics.fmean(trace.at(share * budget) for trace in own) for share in _SHOWN]
        pairs = list(zip(own, first, strict=True))
        shares = [a.reaches(b.at(budget)) / b.reaches(b.at(budget)) for a, b in pairs]
        better = sum(a.at(budget) > b.at(budget) for a, b in pairs)
        worse = sum(a.at(budget) < b.at(budget) for a, b in pairs)
        middle = statistics.median(shares)
        table.add_row(
            tuner,
            *(f"{mean:.2f}" for mean in means),
            "never" if math.isinf(middle) else f"{middle:.2f}",
            f"{better} : {worse}",
            f"{statistics.fmean(trace.trials for trace in own):.0f}",
            f"{statistics.fmean(trace.complete for trace in own):.0f}",
            f"{statistics.fmean(trace.cpu / trace.trials for trace in own):.3f}",
        )
    return table


@click.command()
@click.option("--tasks", help="comma-separated  [default: the 34 of LCBench]")
@click.option("--tuners", default="auto,auto+stop,random+asha3", help="comma-separated")
@click.option("--seeds", type=click.IntRange(1), default=10)
@click.option("--first-seed", type=click.IntRange(0), default=0, help="seeds start here")
@click.option("--trainings", type=float, default=100.0, help="time of a run, in full trainings")
@click.option("--workers", type=click.IntRange(1), default=8)
@click.option("--device", default="cuda", show_default=True, help=f"that trains {_LIVE}")
@click.option("--results", type=click.Path(path_type=Path), help="JSON lines; continued if there")
def command(
    tasks: str | None,
    tuners: str,
    seeds: int,
    first_seed: int,
    trainings: float,
    workers: int,
    device: str,
    results: Path | None,
) -> None:
    """Run tuners on data sets; runs that the results file holds are not run again."""
    single_thread()
    names, runs = tuners.split(","), read(results) if results else []
    known = {done.key for done in runs}
    wanted = [
        (tuner, task, seed, trainings, workers)
        for seed in range(first_seed, first_seed + seeds)
        for task in (tasks.split(",") if tasks else instances(_LCBENCH))
        for tuner in names
    ]
    console = wide_console()
    todo = [key for key in wanted if key not in known]
    with ExitStack() as stack:
        run_live = _LiveRuns(workers, device, stack)
        for key in track(todo, "runs", console=console, transient=True):
            runs.append((run_live if key[1] == _LIVE else run)(*key))
            if results:
                append(results, runs[-1])
    chosen = set(wanted)
    console.print(table_of([done for done in runs if done.key in chosen], names))
