"""Trainings of networks in simulated time: recorded curves, recorded seconds, several workers."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.early_stopping.tuners import Tuner
from raybo.benchmarks.tuners.base import Config
from raybo.space.space import Space

_DRAWS = 200  # random configs whose mean time is that of a full training
_SHORTEST = 0.1  # of that mean: surrogates predict times down to 0 for configs unlike the recorded


class Networks(Protocol):
    """Recorded trainings."""

    def curve(self, config: Config) -> tuple[Array, Array]:
        """Accuracy and seconds since the start after each epoch."""


@dataclass(order=True)
class _Step:
    """The end of an epoch; those of one time come in the order of their trials."""

    at: float
    trial: int
    epoch: int = field(compare=False)
    started: float = field(compare=False)
    accuracy: Array = field(compare=False)  # (epochs,)
    seconds: Array = field(compare=False)  # (epochs,) since the start


@dataclass(frozen=True)
class Trace:
    """How a run went.

    Attributes
    ----------
    best : list of pairs
        Times, in full trainings, at which the best accuracy grew, and that accuracy.
    trials, complete : int
        Trainings started, and those that ran all epochs.
    cpu : float
        Seconds of the processor for all asks and reports.
    """

    best: list[tuple[float, float]]
    trials: int
    complete: int
    cpu: float

    def at(self, trainings: float) -> float:
        """The best accuracy after the time of so many trainings; NaN before the first."""
        return max((value for t, value in self.best if t <= trainings), default=float("nan"))

    def reaches(self, value: float) -> float:
        """Time, in full trainings, of the first accuracy this good; infinite if there is none."""
        return next((t for t, found in self.best if found >= value), float("inf"))


def full_training(networks: Networks, space: Space) -> float:
    """Mean seconds of a full training of a random config."""
    rows = space.sample(_DRAWS, np.random.default_rng(0))
    return float(np.mean([networks.curve(space.decode(row))[1][-1] for row in rows]))


def simulate(
    tuner: Tuner, networks: Networks, space: Space, workers: int, trainings: float
) -> Trace:
    """Run a tuner until its workers have had the time of so many full trainings."""
    mean = full_training(networks, space)
    unit = mean / workers
    steps: list[_Step] = []
    best: list[tuple[float, float]] = []
    trials = complete = 0
    clock = time.process_time()

    def start(now: float) -> None:
        nonlocal trials
        accuracy, seconds = networks.curve(tuner.ask(trials))
        seconds = np.maximum(seconds, np.linspace(0, _SHORTEST * mean, len(seconds) + 1)[1:])
        heapq.heappush(steps, _Step(now + seconds[0], trials, 1, now, accuracy, seconds))
        trials += 1

    for _ in range(workers):
        start(0.0)
    while steps[0].at <= trainings * unit:
        step = heapq.heappop(steps)
        value = float(step.accuracy[step.epoch - 1])
        if not best or value > best[-1][1]:
            best.append((step.at / unit, value))
        goes_on = tuner.report(step.trial, step.epoch, value)
        ends = step.epoch == len(step.accuracy)
        complete += ends
        if goes_on and not ends:
            step.at = step.started + float(step.seconds[step.epoch])
            step.epoch += 1
            heapq.heappush(steps, step)
        else:
            start(step.at)
    return Trace(best, trials, complete, time.process_time() - clock)
