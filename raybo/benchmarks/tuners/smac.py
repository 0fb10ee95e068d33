"""SMAC3's facade for hyperparameter optimisation (random forest, log expected improvement)."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ConfigSpace
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from raybo.benchmarks.tuners.columns import Dimension, Flat
from raybo.space.any_space import AnySpace


@dataclass
class SmacForest:
    """SMAC with its defaults, driven by ask and tell."""

    space: AnySpace
    seed: int
    evaluations: int
    _pending: dict[bytes, TrialInfo] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._flat = Flat(self.space)
        self._space = config_space(self._flat.dimensions, self.seed)
        self._folder = tempfile.TemporaryDirectory(prefix="raybo-smac-")  # SMAC needs one
        scenario = Scenario(
            self._space,
            deterministic=True,
            n_trials=self.evaluations,
            seed=self.seed,
            output_directory=Path(self._folder.name),
        )
        self._smac = HyperparameterOptimizationFacade(
            scenario, _unused, overwrite=True, logging_level=False
        )

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            info = self._smac.ask()
        config = self._flat.config(dict(info.config))
        self._pending[self._flat.key(config)] = info
        return config

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        info = self._pending.pop(self._flat.key(config), None)
        if info is None:
            values = self._flat.values(config)
            info = TrialInfo(ConfigSpace.Configuration(self._space, values=values), seed=0)
        self._smac.tell(info, TrialValue(cost=loss), save=False)


def _unused(config: Any, seed: int = 0) -> float:  # noqa: ARG001  (SMAC checks the signature)
    """Stand in for the target function, which ask and tell never call."""
    return 0.0


def config_space(dimensions: tuple[Dimension, ...], seed: int) -> ConfigSpace.ConfigurationSpace:
    """Return the dimensions as a space of SMAC3's, with their scales and conditions."""
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    for d in dimensions:
        space.add(_hyperparameter(d))
        if d.parent is not None:
            choice, branch = d.parent
            space.add(ConfigSpace.EqualsCondition(space[d.name], space[choice], branch))
    return space


def _hyperparameter(d: Dimension) -> Any:
    if d.kind == "float":
        return ConfigSpace.Float(d.name, (d.low, d.high), log=d.log)
    if d.kind == "int":
        return ConfigSpace.Integer(d.name, (int(d.low), int(d.high)), log=d.log)
    return ConfigSpace.Categorical(d.name, list(range(d.size)))
