"""Optuna's samplers, and raybo's for Optuna, each with its defaults, in Optuna's loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler

from raybo.benchmarks.tuners.columns import Dimension, Flat
from raybo.errors import MethodError
from raybo.optuna.sampler import RayBOSampler
from raybo.space.any_space import AnySpace

_MOST_GP_TRIALS = 250  # of OptunaHub's AutoSampler


def _auto(seed: int, flat: Flat) -> BaseSampler:
    """Return what OptunaHub's AutoSampler begins with, by its published rule.

    The hub's packages are fetched from the network when they are used, so the rule is written
    here: TPE where there is a category or a condition; else a Gaussian process for 250 trials,
    and CMA-ES, started from them, after that.
    """
    if any(d.kind == "category" or d.parent is not None for d in flat.dimensions):
        return TPESampler(seed=seed, multivariate=True, constant_liar=True)
    return GPSampler(seed=seed)


_SAMPLERS: dict[str, Callable[[int, Flat], BaseSampler]] = {
    "tpe": lambda seed, _: TPESampler(seed=seed),
    "tpe-liar": lambda seed, _: TPESampler(seed=seed, constant_liar=True),
    "gp": lambda seed, _: GPSampler(seed=seed),
    "cmaes": lambda seed, _: CmaEsSampler(seed=seed),
    "auto": _auto,
    "raybo": lambda seed, _: RayBOSampler(seed=seed),
}


@dataclass
class OptunaSampler:
    """One of Optuna's samplers, "tpe", "gp", "cmaes" or "auto", or raybo's for Optuna, "raybo".

    Points it did not propose are added to its study as finished trials.
    """

    space: AnySpace
    seed: int
    evaluations: int
    sampler: str = "tpe"
    _pending: dict[bytes, optuna.trial.Trial] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.sampler not in _SAMPLERS:
            raise MethodError(
                f"sampler must be one of {', '.join(_SAMPLERS)}, got {self.sampler!r}"
            )
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._flat = Flat(self.space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sampler or an argument is experimental
            first = _SAMPLERS[self.sampler](self.seed, self._flat)
            self._study = optuna.create_study(sampler=first)

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._switch()
            trial = self._study.ask()
            config = suggested_config(trial, self._flat)
        self._pending[self._flat.key(config)] = trial
        return config

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        trial = self._pending.pop(self._flat.key(config), None)
        if trial is not None:
            self._study.tell(trial, loss)
            return
        values = self._flat.values(config)
        shapes = {d.name: _distribution(d) for d in self._flat.dimensions if d.name in values}
        self._study.add_trial(
            optuna.trial.create_trial(params=values, distributions=shapes, value=loss)
        )

    def _switch(self) -> None:
        """Go over to CMA-ES where the rule of "auto" says so."""
        if self.sampler == "auto" and isinstance(self._study.sampler, GPSampler):
            done = self._study.get_trials(deepcopy=False)[:_MOST_GP_TRIALS]
            if len(done) == _MOST_GP_TRIALS:
                self._study.sampler = CmaEsSampler(seed=self.seed, source_trials=done)


def suggested_config(trial: optuna.trial.Trial, flat: Flat) -> dict[str, Any]:
    """Return the config that a trial suggests; only the parameters that it has are asked for."""
    values: dict[str, Any] = {}
    for d in flat.dimensions:
        if d.parent is None or values.get(d.parent[0]) == d.parent[1]:
            values[d.name] = _suggest(trial, d)
    return flat.config(values)


def _distribution(d: Dimension) -> BaseDistribution:
    if d.kind == "float":
        return FloatDistribution(d.low, d.high, log=d.log)
    if d.kind == "int":
        return IntDistribution(int(d.low), int(d.high), log=d.log)
    return CategoricalDistribution(range(d.size))


def _suggest(trial: optuna.trial.Trial, d: Dimension) -> Any:
    if d.kind == "float":
        return trial.suggest_float(d.name, d.low, d.high, log=d.log)
    if d.kind == "int":
        return trial.suggest_int(d.name, int(d.low), int(d.high), log=d.log)
    return trial.suggest_categorical(d.name, range(d.size))
