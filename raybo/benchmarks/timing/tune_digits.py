"""A real tuning task: a small network on scikit-learn's digits, by searchers of Ray Tune.

    raybo bench tune-digits --trials 40 --seeds 3

By default the searchers are driven directly, one trial at a time, through the calls that Tune
makes; with --tune in real runs of Ray Tune, two trials at a time. Random search is Ray's sampler.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch
from ray.tune.search.variant_generator import generate_variants

from raybo.benchmarks.problems.networks.digits import validation_loss
from raybo.benchmarks.timing.tuner import fit
from raybo.tune.searcher import RayBOSearch

SPACE = {
    "lr": tune.loguniform(1e-4, 1.0),
    "momentum": tune.uniform(0.0, 0.99),
    "weight_decay": tune.loguniform(1e-6, 1e-1),
    "width": tune.lograndint(8, 257),
    "layers": tune.randint(1, 4),
    "dropout": tune.uniform(0.0, 0.7),
    "batch": tune.choice([16, 32, 64, 128]),
}

SEARCHERS: dict[str, Callable[[int], Any]] = {
    "random": lambda seed: None,  # noqa: ARG005
    "OptunaSearch": lambda seed: OptunaSearch(seed=seed, metric="loss", mode="min"),
    "RayBOSearch": lambda seed: RayBOSearch(seed=seed, metric="loss", mode="min"),
}


def trial(config: dict[str, Any]) -> dict[str, float]:
    """Return the validation loss, as a trainable of Tune."""
    return {"loss": validation_loss(config)}


def direct(searcher: Any, trials: int, seed: int) -> list[float]:
    """Return the losses of trials made one after the other."""
    rng = np.random.default_rng(seed)
    if searcher is not None:
        searcher.set_search_properties("loss", "min", SPACE)
    losses = []
    for i in range(trials):
        if searcher is None:
            config = next(iter(generate_variants({"config": SPACE}, random_state=rng)))[1][
                "config"
            ]
        else:
            config = searcher.suggest(f"t{i}")
        result = trial(config)
        losses.append(result["loss"])
        if searcher is not None:
            searcher.on_trial_complete(f"t{i}", result)
    return losses


def in_tune(searcher: Any, trials: int, seed: int) -> list[float]:
    """Return the losses of trials made by Ray Tune, two at a time."""
    np.random.seed(seed)  # noqa: NPY002  (where Ray's random search draws from)
    return fit(trial, SPACE, searcher, trials, 2)[0]


def best(losses: list[float]) -> float:
    """Return the smallest loss that is a number."""
    return min(value for value in losses if np.isfinite(value))


@click.command()
@click.option("--trials", default=40, show_default=True)
@click.option("--seeds", default=3, show_default=True, help="runs per searcher")
@click.option("--first-seed", default=0, show_default=True, help="seeds start here")
@click.option("--tune", "tuner", is_flag=True, help="real runs of Ray Tune, two at a time")
def command(trials: int, seeds: int, first_seed: int, tuner: bool) -> None:
    """Print the best validation loss on digits that each searcher of Ray Tune finds."""
    if tuner:
        os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    found: dict[str, list[float]] = {name: [] for name in SEARCHERS}
    for seed in range(first_seed, first_seed + seeds):
        for name, build in SEARCHERS.items():
            losses = (in_tune if tuner else direct)(build(seed), trials, seed)
            found[name].append(best(losses))
            row = {"seed": seed, "searcher": name, "halfway": best(losses[: trials // 2])}
            click.echo(json.dumps({**row, "best": found[name][-1]}))
    for name, values in found.items():
        click.echo(f"{name:14} median best loss {statistics.median(values):.4f}")
