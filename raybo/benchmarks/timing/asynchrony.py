"""Regret with many workers against one, after the same number of evaluations.

    raybo bench asynchrony --workers 8 --seeds 10
    raybo bench asynchrony --workers 8 --seeds 10 --seconds 1

Workers are simulated by a heap of finish times, so a run is deterministic and takes no longer
than its proposals. With `--seconds`, studies on Ray whose evaluations take that long are held
against them: what `optimize` loses by points that were proposed before the last results.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import single_thread
from raybo.runtime.optimize import optimize
from raybo.study.optimizer import Optimizer


def simulate(
    opt: Optimizer,
    objective: Callable[[Mapping[str, Any]], float],
    n_trials: int,
    workers: int,
    seed: int = 0,
) -> list[float]:
    """Return the best value after each of `n_trials` results, with `workers` in flight.

    An evaluation takes 1/2 to 3/2 units of time, drawn from the seed.
    """
    rng = np.random.default_rng([seed, workers])
    running: list[tuple[float, int, float]] = []
    history: list[float] = []
    now, asked = 0.0, 0
    while len(history) < n_trials:
        while len(running) < workers and asked < n_trials:
            trial = opt.ask()
            asked += 1
            finish = now + float(rng.uniform(0.5, 1.5))
            heapq.heappush(running, (finish, trial.number, objective(trial.config)))
        now, number, value = heapq.heappop(running)
        opt.tell(number, value)
        history.append(float(opt.best.value))  # type: ignore[union-attr,arg-type]
    return history


def in_turn(problem: Problem, method: str, n_trials: int, workers: int, seed: int) -> float:
    """Return the best value of a simulated study."""
    opt = Optimizer(problem.build_space(), method, problem.mode, seed)
    return simulate(opt, problem.objective, n_trials, workers, seed)[-1]


def on_ray(
    problem: Problem, method: str, n_trials: int, workers: int, seed: int, seconds: float
) -> float:
    """Return the best value of a study on Ray whose evaluations take 1/2 to 3/2 of `seconds`."""

    def objective(config: Mapping[str, Any]) -> float:
        time.sleep(seconds * float(np.random.default_rng().uniform(0.5, 1.5)))
        return problem.objective(config)

    with tempfile.TemporaryDirectory() as storage:
        result = optimize(
            objective,
            problem.build_space(),
            problem.mode,
            method=method,
            max_trials=n_trials,
            workers=workers,
            resources={"num_cpus": 1 / workers},  # the evaluations sleep
            seed=seed,
            storage=storage,
            progress=False,
        )
    return float(result.best_value)  # type: ignore[arg-type]


@click.command()
@click.option("--problems", default="branin,hartmann6", help="comma-separated")
@click.option("--method", default="bo")
@click.option("--workers", default=8)
@click.option("--seeds", default=10)
@click.option("--first-seed", default=0, help="seeds start here")
@click.option("--trials", default=100)
@click.option("--seconds", type=float, help="mean time of an evaluation of the studies on Ray")
def command(
    problems: str,
    method: str,
    workers: int,
    seeds: int,
    first_seed: int,
    trials: int,
    seconds: float | None,
) -> None:
    """Print the median regret of one worker and of many after the same evaluations.

    With --seconds: of ask/tell with as many in flight, and of `optimize`.
    """
    single_thread()
    if seconds is None:
        headings = "1 worker", f"{workers} workers"
    else:
        headings = f"ask/tell, {workers} in flight", f"optimize, {seconds:g} s"
    table = Table(title=f"{method}: median regret after {trials} evaluations, {seeds} seeds")
    for heading in ("problem", *headings, "log10 ratio", "log10 shift"):
        table.add_column(heading, justify="right")
    for name in problems.split(","):
        problem = get_problem(name)
        best = []
        for seed in track(range(first_seed, first_seed + seeds), name, transient=True):
            if seconds is None:
                one = in_turn(problem, method, trials, 1, seed)
                many = in_turn(problem, method, trials, workers, seed)
            else:
                one = in_turn(problem, method, trials, workers, seed)
                many = on_ray(problem, method, trials, workers, seed, seconds)
            best.append((one, many))
        regrets = np.abs(np.array(best) - float(problem.optimum or 0.0))
        medians = np.median(regrets, axis=0)
        logs = np.log10(np.maximum(medians, 1e-12))
        table.add_row(
            name,
            *(f"{m:.3g}" for m in medians),
            f"{logs[1] / logs[0]:.3f}",
            f"{logs[1] - logs[0]:+.2f}",
        )
    Console().print(table)
