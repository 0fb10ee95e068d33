"""Tune a network with eight workers on two nodes, and kill one node half-way.

    raybo bench node-loss

`chaos` counts losses with an objective made for it; this is the everyday case: a real network
(PyTorch, scikit-learn's digits), method `bo`, and a node that does not come back.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from raybo.benchmarks.faults.cluster import LocalCluster
from raybo.benchmarks.problems.networks.digits import validation_loss
from raybo.benchmarks.terminal import wide_console
from raybo.result import Result, load_result
from raybo.runtime.optimize import optimize
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.study.trial import State, Trial

WORKERS = 8
NODES, CPUS = 2, 2
STUDY = "node-loss"


def network_space() -> Space:
    """Return the space of the network's hyperparameters, as in `raybo bench tune-digits`."""
    return Space(
        {
            "lr": Float(1e-4, 1.0, log=True),
            "momentum": Float(0.0, 0.99),
            "weight_decay": Float(1e-6, 1e-1, log=True),
            "width": Int(8, 256, log=True),
            "layers": Int(1, 3),
            "dropout": Float(0.0, 0.7),
            "batch": Categorical([16, 32, 64, 128]),
        }
    )


def objective(config: Mapping[str, Any]) -> float:
    """Return the validation loss of the network, at most 10: a diverged one has a finite loss."""
    loss = validation_loss(config)
    return min(loss, 10.0) if loss == loss else 10.0


@dataclass
class KillOneNode:
    """Callback that keeps the trials it receives, and kills a node after half of them."""

    cluster: LocalCluster
    trials: int
    received: list[tuple[int, float | None]] = field(default_factory=list)
    killed: bool = False

    def on_trial(self, trial: Trial) -> None:
        """Take an acknowledged trial."""
        self.received.append((trial.number, trial.value))
        if len(self.received) >= self.trials // 2 and not self.killed:
            self.killed = True
            self.cluster.kill()


def faults(result: Result, kept: Result, received: list[tuple[int, float | None]]) -> list[str]:
    """Return what is wrong with a study that should have lost nothing, in words.

    Parameters
    ----------
    result, kept
        What the driver returned, and what the journal says afterwards.
    received
        Numbers and values of the trials as they were acknowledged.
    """
    found = [f"trial {t.number} is {t.state.value}" for t in kept.trials if t.state != State.DONE]
    counts = Counter(number for number, _ in received)
    found += [f"trial {number} was received {n} times" for number, n in counts.items() if n > 1]
    values = {t.number: t.value for t in kept.trials}
    found += [
        f"trial {n} was {value}, is {values.get(n)}"
        for n, value in received
        if values.get(n) != value
    ]
    found += [f"trial {number} was not received" for number in values if number not in counts]
    if {t.number: t.value for t in result.trials} != values:
        found.append("the result differs from the journal")
    return found


@click.command()
@click.option("--trials", default=60)
def command(trials: int) -> None:
    """Tune a network with 8 workers on 2 nodes, kill one half-way; exit with 1 if any is lost."""
    console, clock = wide_console(), time.monotonic()
    with LocalCluster(NODES, CPUS) as cluster, tempfile.TemporaryDirectory() as folder:
        watch = KillOneNode(cluster, trials)
        result = optimize(
            objective,
            network_space(),
            max_trials=trials,
            workers=WORKERS,
            resources={
                "num_cpus": NODES * CPUS / WORKERS
            },  # it takes both nodes to run all of them
            storage=folder,
            name=STUDY,
            callbacks=[watch],
        )
        found = faults(result, load_result(STUDY, folder), watch.received)
        alive = cluster.n_alive()
    again = sum(trial.attempts > 1 for trial in result.trials)
    console.print(
        f"{len(result.trials)} trials, {WORKERS} workers, {NODES} nodes and in the end {alive}; "
        f"{again} trials interrupted, {len(found)} faults, best {result.best_value:.4f}, "
        f"{time.monotonic() - clock:.0f} s"
    )
    if not again:
        found.append("the kill interrupted no evaluation and so shows nothing: run it again")
    for fault in found:
        console.print(fault)
    if found or alive != NODES - 1:
        sys.exit(1)
