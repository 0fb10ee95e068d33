"""Real tuning tasks by searchers of Ray Tune: best value and wall time.

    raybo bench tune-tasks --trials 40 --seconds 0.5 --seeds 3

Each trial looks up, or computes, the value of a problem of the suite `real`, without its noise,
and sleeps. Runs are those of a user: a Tuner, two trials at a time, actors reused, one local Ray
for all.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import click
import ray
from ray import tune
from ray.tune.search.hyperopt import HyperOptSearch
from ray.tune.search.optuna import OptunaSearch

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.timing.tuner import fit
from raybo.benchmarks.tuners.columns import Dimension, Flat
from raybo.study.objective import Objective
from raybo.tune.searcher import RayBOSearch

# Of each kind in the suite: tables of small networks, of architectures, a surrogate, a pool.
PROBLEMS = (
    "hpobench-vehicle",
    "fcnet-protein",
    "nb201-cifar100",
    "yahpo-lcbench-3945",
    "hpob-5970-14951",
)
SLOTS = 2  # trials at a time

SEARCHERS: dict[str, Callable[[int], Any]] = {
    "RayBOSearch": lambda seed: RayBOSearch(seed=seed),
    "OptunaSearch": lambda seed: OptunaSearch(seed=seed),
    "HyperOptSearch": lambda seed: HyperOptSearch(random_state_seed=seed),
}


def domain(dimension: Dimension) -> Any:
    """Return the domain of Tune for a parameter; values with an index are given by it."""
    low, high = dimension.low, dimension.high
    if dimension.kind == "category":
        return tune.choice(list(range(dimension.size)))
    if dimension.kind == "int":
        kind = tune.lograndint if dimension.log else tune.randint
        return kind(int(low), int(high) + 1)
    return (tune.loguniform if dimension.log else tune.uniform)(low, high)


def trainable(problem: Problem, seconds: float) -> Callable[[dict[str, Any]], dict[str, float]]:
    """Return a trainable that reports the loss of a problem after a while."""

    def train(config: Mapping[str, Any]) -> dict[str, float]:
        time.sleep(seconds)
        value = problem.objective(Flat(problem.space).config(config))
        return {"loss": Objective(problem.mode).loss(float(value))}

    return train


@click.command()
@click.option("--trials", default=40, show_default=True)
@click.option("--seconds", default=0.5, show_default=True, help="that a trial sleeps")
@click.option("--seeds", default=3, show_default=True, help="runs per searcher and problem")
@click.option("--first-seed", default=0, show_default=True, help="seeds start here")
@click.option("--problems", default=",".join(PROBLEMS), show_default=True)
def command(trials: int, seconds: float, seeds: int, first_seed: int, problems: str) -> None:
    """Print best losses and wall times of Ray Tune's searchers on real problems."""
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    ray.init(address="local", num_cpus=SLOTS, include_dashboard=False, log_to_driver=False)
    rows: list[dict[str, Any]] = []
    for seed in range(first_seed, first_seed + seeds):
        for name in problems.split(","):
            problem = get_problem(name)
            space = {d.name: domain(d) for d in Flat(problem.space).dimensions}
            for searcher, build in SEARCHERS.items():
                losses, wall = fit(trainable(problem, seconds), space, build(seed), trials, SLOTS)
                cell = {"problem": name, "searcher": searcher, "seed": seed}
                rows.append({**cell, "loss": min(losses), "wall": round(wall, 1)})
                click.echo(json.dumps(rows[-1]))
    for name in problems.split(","):
        for searcher in SEARCHERS:
            own = [r for r in rows if (r["problem"], r["searcher"]) == (name, searcher)]
            loss, wall = (statistics.median(r[key] for r in own) for key in ("loss", "wall"))
            click.echo(f"{name:20} {searcher:15} median best loss {loss:.6g}, {wall:.1f} s")
