"""A network is tuned by eight workers on two nodes, and one node is killed half-way.

`chaos` counts losses with an objective made for it; this is the everyday case: a real network
(PyTorch, scikit-learn's digits), method `bo`, and a node that does not come back.
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from raybo.benchmarks.faults.raylets import Raylets, restart_with_token
from raybo.benchmarks.run import wide_console
from raybo.benchmarks.timing.tune_digits import trial as train
from raybo.result import Result, load_result
from raybo.runtime.optimize import optimize
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.study.trial import State, Trial

WORKERS = 8
NODES, CPUS = 2, 2
STUDY = "node-loss"


def network_space() -> Space:
    """The hyperparameters of `tune_digits`."""
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
    """Validation loss of the network; one that diverged is as bad as one that knows nothing."""
    loss = train(dict(config))["loss"]
    return min(loss, 10.0) if loss == loss else 10.0


@dataclass
class KillOneNode:
    """Callback that keeps what it is handed and kills a node when half of the trials are done."""

    raylets: Any  # Raylets
    trials: int
    handed: list[tuple[int, float | None]] = field(default_factory=list)
    killed: bool = False

    def on_trial(self, trial: Trial) -> None:
        """Take an acknowledged trial."""
        self.handed.append((trial.number, trial.value))
        if len(self.handed) >= self.trials // 2 and not self.killed:
            self.killed = True
            self.raylets.kill(0)


def faults(result: Result, kept: Result, handed: list[tuple[int, float | None]]) -> list[str]:
    """What is wrong with a study that should have lost nothing, in words.

    Parameters
    ----------
    result, kept
        What the driver returned, and what the journal says afterwards.
    handed
        Numbers and values of the trials as they were acknowledged.
    """
    found = [f"trial {t.number} is {t.state.value}" for t in kept.trials if t.state != State.DONE]
    counts = Counter(number for number, _ in handed)
    found += [f"trial {number} was handed over {n} times" for number, n in counts.items() if n > 1]
    values = {t.number: t.value for t in kept.trials}
    found += [
        f"trial {n} was {value}, is {values.get(n)}"
        for n, value in handed
        if values.get(n) != value
    ]
    found += [f"trial {number} was not handed over" for number in values if number not in counts]
    if {t.number: t.value for t in result.trials} != values:
        found.append("the result differs from the journal")
    return found


@click.command()
@click.option("--trials", default=60)
def command(trials: int) -> None:
    """Tune a network with 8 workers on 2 nodes, kill one half-way; exits with 1 if any is lost."""
    restart_with_token()
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
    console, clock = wide_console(), time.monotonic()
    with Raylets(NODES, CPUS) as raylets, tempfile.TemporaryDirectory() as folder:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Ray's own would leave the nodes
        watch = KillOneNode(raylets, trials)
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
        found = faults(result, load_result(STUDY, folder), watch.handed)
        alive = raylets.n_alive()
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


if __name__ == "__main__":
    command()
