"""Evaluations per second, and how busy many workers are kept.

    raybo bench throughput
    raybo bench throughput --only use --use-workers 16

Rates: instant evaluations under raybo (method random, every result fsynced before it is
acknowledged), as bare Ray tasks, and under Ray Tune with actors reused, one after the other on one
local Ray, each after a short run that starts its processes. Compare the ratios, not the rates.

Use: evaluations that sleep, under method bo. The busy share of the workers is computed from the
times that the trials record, up to the start of the last trial: after it there is nothing left to
start. A run before it starts the worker processes and has each evaluate once, so that the time to
start them is not counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import ray
from ray import tune
from rich.table import Table

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import wide_console
from raybo.benchmarks.timing.tuner import fit
from raybo.result import Result
from raybo.runtime.optimize import optimize
from raybo.space.parameters import Float
from raybo.study.trial import Trial

_SLOTS = 8  # evaluations in flight, for all three
_CPUS = 4  # of the Ray that they share
_START_SECONDS = 300.0
# Processes beside the workers, for the actors of a study. Ray starts others while it counts fewer
# idle ones than tasks wait, which with 4 of them took a core for the first second of the study.
_SPARE = 16
_PROBLEM = "hartmann6"


def rate_of_raybo(trials: int, folder: Path) -> dict[str, float]:
    """Return evaluations per second: of the whole call, and between first and last result."""

    def objective(config: Mapping[str, Any]) -> float:
        return float(config["x"])

    clock = time.perf_counter()
    result = optimize(
        objective,
        {"x": Float(0, 1)},
        method="random",
        max_trials=trials,
        workers=_SLOTS,
        resources={"num_cpus": _CPUS / _SLOTS},
        storage=folder,
        progress=False,
    )
    wall = time.perf_counter() - clock
    ends = sorted(trial.finished or 0.0 for trial in result.trials)
    if len(ends) != trials:
        raise BenchmarkError(f"{len(ends)} of {trials} trials ended: {result.stop_reason}")
    return {"whole call": trials / wall, "steady": (trials - 1) / (ends[-1] - ends[0])}


def rate_of_ray(trials: int) -> float:
    """Return bare Ray tasks per second, all submitted at once."""

    @ray.remote(num_cpus=_CPUS / _SLOTS)
    def task(x: float) -> float:
        return x

    clock = time.perf_counter()
    ray.get([task.remote(i) for i in range(trials)], timeout=600)
    return trials / (time.perf_counter() - clock)


def rate_of_tune(trials: int) -> float:
    """Return trials per second of Ray Tune with its random search."""

    def train(config: Mapping[str, Any]) -> dict[str, float]:
        return {"loss": config["x"]}

    trainable = tune.with_resources(train, {"cpu": _CPUS / _SLOTS})
    return trials / fit(trainable, {"x": tune.uniform(0, 1)}, None, trials, _SLOTS)[1]


def measure_rates(trials: int, tune_trials: int, repeats: int) -> None:
    """Run all three, and print their rates and ratios."""
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    table = Table(
        title=f"instant evaluations per second, {_SLOTS} in flight, {os.cpu_count()} cores"
    )
    headings = ("", "Ray Tune", "raybo, whole call", "raybo, steady", "bare Ray", "raybo : Tune")
    for heading in (*headings, "raybo : Ray", "load"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _start(_CPUS)
        rate_of_ray(200)
        rate_of_raybo(50, folder)
        for repeat in range(repeats):
            bare = rate_of_ray(trials)
            own = rate_of_raybo(trials, folder)
            tuned = rate_of_tune(tune_trials)
            whole = own["whole call"]
            numbers = (tuned, whole, own["steady"], bare, whole / tuned)
            cells = [f"{number:.4g}" for number in numbers]
            load = f"{os.getloadavg()[0]:.1f}"
            table.add_row(f"run {repeat + 1}", *cells, f"{whole / bare:.2f}", load)
        ray.shutdown()
    wide_console().print(table)


def busy_share(trials: Sequence[Trial], workers: int, begin: float, end: float) -> float:
    """Return the share of the time from `begin` to `end` that the workers spent evaluating."""
    busy = sum(
        max(0.0, min(trial.finished or end, end) - max(trial.started or end, begin))
        for trial in trials
    )
    return busy / (workers * (end - begin))


def measure_use(workers: int, trials: int, seconds: float) -> None:
    """Start many workers, run a study on them, and print how busy they were."""
    problem = get_problem(_PROBLEM)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        processes = workers + _SPARE
        _start(processes)  # Ray keeps as many idle processes as there are CPUs

        def study(objective: Callable[[Any], Any], method: str, n_trials: int, n: int) -> Result:
            return optimize(
                objective,
                problem.space,
                method=method,
                metric="loss",
                max_trials=n_trials,
                workers=n,
                resources={"num_cpus": 0.01},
                storage=folder,
                progress=False,
            )

        def meet(config: Any) -> dict[str, float]:  # returns when all workers have started
            loss = problem.objective(config)  # its imports belong to the start of a process
            (folder / f"pid-{os.getpid()}").touch()
            deadline = time.monotonic() + _START_SECONDS
            while (
                len(list(folder.glob("pid-*"))) < workers + _SPARE and time.monotonic() < deadline
            ):
                time.sleep(0.2)
            return {"loss": loss}

        def evaluate(config: Any) -> dict[str, float]:
            time.sleep(seconds)
            return {"loss": problem.objective(config)}

        clock = time.perf_counter()
        study(meet, "random", processes, processes)
        met = time.perf_counter() - clock
        began = time.time()
        result = study(evaluate, "bo", trials, workers)
        ray.shutdown()
    _print_use(result, workers, seconds, began, met)


def _print_use(result: Result, workers: int, seconds: float, began: float, met: float) -> None:
    table = Table(
        title=f"busy share of {workers} workers, evaluations of {seconds:g} s, method bo, "
        f"{len(result.trials)} trials, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    for heading in ("from", "seconds", "busy"):
        table.add_column(heading, justify="right")
    trials = result.trials
    last = max(trial.started or 0.0 for trial in trials)
    first = min(trial.started or 0.0 for trial in trials)
    moments = {
        "all workers have a trial": sorted(t.started or 0.0 for t in trials)[workers - 1],
        "the first trial": first,
        "the call of optimize": began,
    }
    for name, begin in moments.items():
        share = busy_share(trials, workers, begin, last)
        table.add_row(name, f"{last - begin:.2f}", f"{share:.1%}")
    console = wide_console()
    console.print(table)
    console.print(f"the {workers} processes took {met:.0f} s to start, before that")


def _start(cpus: int) -> None:
    # Ray lowers the priority of workers by 15, and any other program would then take their time.
    os.environ.setdefault("RAY_worker_niceness", "0")
    init: Any = ray.init
    init(address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False,
         logging_level="ERROR")  # fmt: skip


@click.command()
@click.option("--only", type=click.Choice(["rates", "use"]), help="one of the two parts")
@click.option("--trials", default=1000, help="instant evaluations of raybo and bare Ray")
@click.option("--tune-trials", default=40, help="instant evaluations of Ray Tune, which is slower")
@click.option("--repeats", default=1)
@click.option("--use-workers", default=64)
@click.option("--use-trials", default=300)
@click.option("--seconds", default=1.0, help="duration of an evaluation in the part `use`")
def command(
    only: str | None,
    trials: int,
    tune_trials: int,
    repeats: int,
    use_workers: int,
    use_trials: int,
    seconds: float,
) -> None:
    """Measure evaluations per second against bare Ray and Ray Tune, and the use of workers."""
    if only != "use":
        measure_rates(trials, tune_trials, repeats)
    if only != "rates":
        measure_use(use_workers, use_trials, seconds)
