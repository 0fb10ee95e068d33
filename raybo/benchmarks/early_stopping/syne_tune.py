"""MOBSTER (Klein et al. 2020) and HyperTune (Li et al. 2022), as Syne Tune 0.13 has them.

Later versions of Syne Tune have neither. That one wants older packages than raybo's:

    pip install --no-deps syne-tune==0.13.0 autograd

Both stop trainings as ASHA does and learn a Gaussian process of config and epoch. They are built
with their defaults, but for the first rung at the third epoch.
"""

from __future__ import annotations

import datetime
import logging
from typing import Any

import syne_tune.config_space as domains
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.baselines import MOBSTER, HyperTune
from syne_tune.optimizer.scheduler import SchedulerDecision

from raybo.benchmarks.tuners.base import Config
from raybo.benchmarks.tuners.columns import Dimension, Flat
from raybo.space.space import Space

SCHEDULERS = {"syne-mobster": MOBSTER, "syne-hypertune": HyperTune}
FIRST_RUNG = 3
REDUCTION = 3
logging.getLogger("syne_tune").setLevel(logging.ERROR)  # it tells of every trial


class SyneTune:
    """A scheduler of Syne Tune, in its stopping variant."""

    def __init__(self, space: Space, seed: int, epochs: int, name: str) -> None:
        self._flat = Flat(space)
        self._flat.need_unconditional(name)
        self._epochs = epochs
        self._trials: dict[int, Trial] = {}
        self._scheduler = SCHEDULERS[name](
            {d.name: _domain(d) for d in self._flat.dimensions} | {"epochs": epochs},
            metric="accuracy",
            mode="max",
            resource_attr="epoch",
            max_resource_attr="epochs",
            grace_period=FIRST_RUNG,
            reduction_factor=REDUCTION,
            type="stopping",
            random_seed=seed,
            search_options={"debug_log": False},
        )

    def ask(self, trial: int) -> Config:
        """Config of the next training, whose number is given."""
        config = dict(self._scheduler.suggest(trial).config)
        self._trials[trial] = Trial(trial, config, datetime.datetime.now(tz=datetime.UTC))
        self._scheduler.on_trial_add(self._trials[trial])
        return self._flat.config({k: v for k, v in config.items() if k != "epochs"})

    def report(self, trial: int, step: int, value: float) -> bool:
        """Take the value of an epoch; return whether the training goes on."""
        known, result = self._trials[trial], {"accuracy": value, "epoch": step}
        goes_on: Any = self._scheduler.on_trial_result(known, result) == SchedulerDecision.CONTINUE
        if step == self._epochs:
            self._scheduler.on_trial_complete(known, result)
        elif not goes_on:
            self._scheduler.on_trial_remove(known)
        return bool(goes_on) and step < self._epochs


def _domain(d: Dimension) -> Any:
    if d.kind == "category":
        return domains.choice(list(range(d.size)))
    if d.kind == "int":
        of = domains.lograndint if d.log else domains.randint
        return of(int(d.low), int(d.high))
    return (domains.loguniform if d.log else domains.uniform)(d.low, d.high)
