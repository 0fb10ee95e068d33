"""raybo's methods as tuners."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from raybo.benchmarks.tuners.base import Config
from raybo.errors import MethodError
from raybo.space.any_space import AnySpace
from raybo.study.optimizer import Optimizer


@dataclass
class OwnMethod:
    """A method of raybo, through its Optimizer."""

    space: AnySpace
    optimizer: Optimizer
    _pending: dict[str, int] = field(default_factory=dict, init=False)

    def ask(self) -> Config:
        """Return the next config to evaluate."""
        trial = self.optimizer.ask()
        self._pending[self._key(trial.config)] = trial.number
        return trial.config

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluated config."""
        number = self._pending.pop(self._key(config), None)
        if number is None:
            self.optimizer.add(config, loss)
        else:
            self.optimizer.tell(number, loss)

    def recommend(self) -> Config:
        """Return the config that the method's model expects to be best."""
        found = self.optimizer.recommend()
        if found is None:
            raise MethodError("no loss has been told yet: there is no config to recommend")
        return found.config

    def _key(self, config: Config) -> str:
        return json.dumps(self.space.to_json(config))
