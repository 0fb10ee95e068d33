"""Regret with many workers against one, after the same number of evaluations.

    raybo bench asynchrony --workers 8 --seeds 10

Workers are simulated by a heap of finish times, so a run is deterministic and takes no longer
than its proposals.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from raybo.benchmarks.problems.registry import get_problem
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


@click.command()
@click.option("--problems", default="branin,hartmann6", help="comma-separated")
@click.option("--method", default="bo")
@click.option("--workers", default=8)
@click.option("--seeds", default=10)
@click.option("--trials", default=100)
def command(problems: str, method: str, workers: int, seeds: int, trials: int) -> None:
    """Print the median regret of one worker and of many after the same evaluations."""
    table = Table(title=f"{method}: median regret after {trials} evaluations, {seeds} seeds")
    for heading in ("problem", "1 worker", f"{workers} workers", "log10 ratio", "log10 shift"):
        table.add_column(heading, justify="right")
    for name in problems.split(","):
        problem = get_problem(name)
        medians = []
        for count in (1, workers):
            regrets = []
            for seed in track(range(seeds), f"{name}, {count} in flight", transient=True):
                opt = Optimizer(problem.build_space(), method, problem.mode, seed)
                best = simulate(opt, problem.objective, trials, count, seed)[-1]
                regrets.append(abs(best - float(problem.optimum or 0.0)))
            medians.append(float(np.median(regrets)))
        logs = np.log10(np.maximum(medians, 1e-12))
        table.add_row(
            name,
            *(f"{m:.3g}" for m in medians),
            f"{logs[1] / logs[0]:.3f}",
            f"{logs[1] - logs[0]:+.2f}",
        )
    Console().print(table)
