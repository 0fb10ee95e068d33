"""Workers simulated by a heap of finish times: an asynchronous study without Ray or waiting."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

import numpy as np

from raybo.study.trial import Trial


class AskTell(Protocol):
    """A Study, or an Optimizer."""

    def ask(self) -> Trial: ...

    def tell(self, number: int, value: float) -> Trial: ...

    def fail(self, number: int, reason: str) -> Trial: ...


def run_simulated(
    study: AskTell,
    objective: Callable[[Mapping[str, Any]], float],
    n_trials: int,
    workers: int,
    *,
    fails: Container[int] = (),
    seed: int = 0,
) -> list[int]:
    """Run `n_trials` trials with `workers` of them in flight; return their numbers as they end.

    An evaluation takes 1/2 to 3/2 units of time, drawn from the seed, so the order is the same in
    every run. The trials whose number is in `fails` have no value.
    """
    rng = np.random.default_rng(seed)
    running: list[tuple[float, int, Trial]] = []
    ended: list[int] = []
    now, asked = 0.0, 0
    while len(ended) < n_trials:
        while len(running) < workers and asked < n_trials:
            trial = study.ask()
            asked += 1
            heapq.heappush(running, (now + float(rng.uniform(0.5, 1.5)), trial.number, trial))
        now, number, trial = heapq.heappop(running)
        if number in fails:
            study.fail(number, "simulated")
        else:
            study.tell(number, objective(trial.config))
        ended.append(number)
    return ended
