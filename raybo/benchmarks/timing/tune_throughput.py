"""Trials per second of Ray Tune under raybo's searcher and under those that Ray ships.

    raybo bench tune-throughput --trials 100 --seconds 0.3

Every trial sleeps, so the runs differ in how long workers wait for suggestions. The searchers run
one after the other on one local Ray, with actors reused, after a short run that warms it up. The
ratio is the wall time of a searcher over that of Ray's random search. Without
max_concurrent_trials (--no-limit) Tune keeps a single trial of a searcher waiting and starts few
actors. With more slots than cores the ratios mean little: actors start one after the other, and
Tune gives the trials of those still starting to those that have finished.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import click
import ray
from ray import tune
from ray.tune.search.hyperopt import HyperOptSearch
from ray.tune.search.optuna import OptunaSearch

from raybo.benchmarks.timing.tuner import fit
from raybo.tune.searcher import RayBOSearch

SPACE = {
    "lr": tune.loguniform(1e-5, 1e-1),
    "momentum": tune.uniform(0.0, 1.0),
    "width": tune.lograndint(16, 513),
    "layers": tune.randint(1, 6),
    "activation": tune.choice(["relu", "gelu", "tanh"]),
}

SEARCHERS: dict[str, Callable[[], Any]] = {
    "Ray random": lambda: None,
    "raybo random": lambda: RayBOSearch(method="random"),
    "raybo bo": lambda: RayBOSearch(method="bo"),
    "OptunaSearch": lambda: OptunaSearch(seed=0),
    "HyperOptSearch": lambda: HyperOptSearch(random_state_seed=0),
}


def trial(config: dict[str, Any]) -> dict[str, float]:
    """Sleep, and return a loss with an optimum inside the space."""
    time.sleep(config["seconds"])
    loss = (config["momentum"] - 0.7) ** 2 + abs(config["layers"] - 3) / 5
    return {"loss": loss + (config["activation"] != "gelu")}


@click.command()
@click.option("--trials", default=100, show_default=True)
@click.option("--seconds", default=0.3, show_default=True, help="Duration of a trial.")
@click.option("--slots", default=os.cpu_count() or 1, show_default=True, help="Trials at a time.")
@click.option("--limit/--no-limit", default=True, help="max_concurrent_trials = slots, or none.")
@click.option("--repeats", default=1, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(SEARCHERS)), help="Default: all.")
def command(
    trials: int, seconds: float, slots: int, limit: bool, repeats: int, only: tuple[str, ...]
) -> None:
    """Print the trials per second of Ray Tune under each searcher, one JSON line each."""
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    ray.init(address="local", num_cpus=slots, include_dashboard=False, log_to_driver=False)
    fit(trial, {**SPACE, "seconds": 0.0}, None, slots, None)
    for repeat in range(repeats):
        base = None
        for name in only or SEARCHERS:
            space, limited = {**SPACE, "seconds": seconds}, slots if limit else None
            losses, wall = fit(trial, space, SEARCHERS[name](), trials, limited)
            base = wall if base is None else base
            row = {"repeat": repeat, "searcher": name, "wall": round(wall, 2)}
            click.echo(json.dumps({**row, "ratio": round(wall / base, 3), "best": min(losses)}))
    ray.shutdown()
