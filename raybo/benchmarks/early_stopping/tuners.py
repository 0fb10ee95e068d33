"""Tuners of trainings that report: raybo's, Syne Tune's, and any sampler with ASHA's rule."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Protocol

import numpy as np

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tuners.base import Config
from raybo.benchmarks.tuners.registry import build_tuner
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer

_FIRST_RUNGS = {"asha": 1, "asha3": 3}  # by the name of the rule
_SYNE_TUNE = ("syne-mobster", "syne-hypertune")


class Tuner(Protocol):
    """Proposes trainings and hears of their epochs; values are maximised."""

    def ask(self, trial: int) -> Config:
        """Config of the next training, whose number is given."""

    def report(self, trial: int, step: int, value: float) -> bool:
        """Take the value of an epoch; return whether the training goes on."""


class Own:
    """A method of raybo, with or without early stopping."""

    def __init__(
        self, space: Space, seed: int, epochs: int, method: str, stop_early: bool
    ) -> None:
        self._optimizer = Optimizer(
            space, method, "max", seed, max_steps=epochs, stop_early=stop_early
        )

    def ask(self, trial: int) -> Config:
        """Config of the next training."""
        asked = self._optimizer.ask()
        if asked.number != trial:
            raise BenchmarkError(f"training {trial} is trial {asked.number}")
        return asked.config

    def report(self, trial: int, step: int, value: float) -> bool:
        """Take the value of an epoch; return whether the training goes on."""
        return self._optimizer.report(trial, step, value)


class Asha:
    """A sampler with the stopping variant of ASHA (Li et al. 2020), as Ray Tune runs them.

    A training goes on from a rung if its value there is among the best third. The sampler is told
    the last value of a training, complete or not, as Ray Tune tells its searchers.
    """

    reduction = 3

    def __init__(self, space: Space, seed: int, epochs: int, sampler: str, first: int) -> None:
        self._sampler = build_tuner(sampler, space, seed)
        self._configs: dict[int, Config] = {}
        self._epochs = epochs
        self._rungs: dict[int, list[float]] = {}
        while first < epochs:
            self._rungs[first] = []
            first *= self.reduction

    def ask(self, trial: int) -> Config:
        """Config of the next training."""
        self._configs[trial] = self._sampler.ask()
        return self._configs[trial]

    def report(self, trial: int, step: int, value: float) -> bool:
        """Take the value of an epoch; return whether the training goes on."""
        goes_on = step < self._epochs
        if step in self._rungs:
            rung = self._rungs[step]
            rung.append(value)
            goes_on = value >= float(np.quantile(rung, 1.0 - 1.0 / self.reduction))
        if not goes_on:
            self._sampler.tell(self._configs.pop(trial), -value)
        return goes_on


def build(name: str, space: Space, seed: int, epochs: int) -> Tuner:
    """Return the tuner of a name.

    METHOD and METHOD+stop are raybo's; TUNER+asha is any tuner of the benchmarks with the rule of
    ASHA from the first epoch on, TUNER+asha3 from the third. syne-mobster and syne-hypertune are
    Syne Tune's.
    """
    if name in _SYNE_TUNE:
        return _syne_tune(space, seed, epochs, name)
    tuner, _, rule = name.partition("+")
    if rule in _FIRST_RUNGS:
        return Asha(space, seed, epochs, tuner, _FIRST_RUNGS[rule])
    if rule in ("", "stop"):
        return Own(space, seed, epochs, tuner, rule == "stop")
    raise BenchmarkError(
        f"{name!r}: the rule {rule!r} is not known; write METHOD, METHOD+stop, TUNER+asha, "
        f"TUNER+asha3, {' or '.join(_SYNE_TUNE)}"
    )


def _syne_tune(space: Space, seed: int, epochs: int, name: str) -> Tuner:
    if find_spec("syne_tune") is None:
        raise BenchmarkError(
            f"{name} needs Syne Tune 0.13, the last version that has it: "
            "pip install --no-deps syne-tune==0.13.0 autograd"
        )
    from raybo.benchmarks.early_stopping.syne_tune import SyneTune  # noqa: PLC0415

    return SyneTune(space, seed, epochs, name)
