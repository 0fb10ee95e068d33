"""Hyperopt's tree-structured Parzen estimator, with its defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperopt import JOB_STATE_DONE, STATUS_OK, Trials, hp, tpe
from hyperopt.base import Domain

from raybo.benchmarks.tuners.columns import Dimension, Flat
from raybo.space.any_space import AnySpace


@dataclass
class HyperoptTpe:
    """TPE on Hyperopt's nested space; points it did not propose become finished trials."""

    space: AnySpace
    seed: int
    evaluations: int
    _pending: dict[bytes, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._flat = Flat(self.space)
        self._trials = Trials()
        self._domain = Domain(lambda _: 0.0, self._branch(None))

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        [tid] = self._trials.new_trial_ids(1)
        self._trials.refresh()
        seed = (self.seed * 1_000_003 + tid) % 2**31
        [document] = tpe.suggest([tid], self._domain, self._trials, seed, verbose=False)
        values = {name: found[0] for name, found in document["misc"]["vals"].items() if found}
        config = self._flat.config(values)
        self._pending[self._flat.key(config)] = document
        return config

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        document = self._pending.pop(self._flat.key(config), None)
        if document is None:
            document = self._document(config)
        document["state"] = JOB_STATE_DONE
        document["result"] = {"status": STATUS_OK, "loss": loss}
        self._trials.insert_trial_docs([document])
        self._trials.refresh()

    def _document(self, config: Mapping[str, Any]) -> Any:
        [tid] = self._trials.new_trial_ids(1)
        values = self._flat.values(config)
        names = [d.name for d in self._flat.dimensions]
        misc = {
            "tid": tid,
            "cmd": ("domain_attachment", "FMinIter_Domain"),  # what Hyperopt itself writes
            "workdir": None,
            "idxs": {name: [tid] if name in values else [] for name in names},
            "vals": {name: [values[name]] if name in values else [] for name in names},
        }
        [document] = self._trials.new_trial_docs([tid], [None], [{"status": STATUS_OK}], [misc])
        return document

    def _branch(self, parent: tuple[str, int] | None) -> dict[str, Any]:
        """Return the expression of the dimensions under one branch of one choice."""
        return {d.name: self._expression(d) for d in self._flat.dimensions if d.parent == parent}

    def _expression(self, d: Dimension) -> Any:
        if d.kind == "float":
            if d.log:
                return hp.loguniform(d.name, math.log(d.low), math.log(d.high))
            return hp.uniform(d.name, d.low, d.high)
        if d.kind == "int":
            if d.log:
                return hp.qloguniform(d.name, math.log(d.low), math.log(d.high), 1)
            return hp.quniform(d.name, d.low - 0.5, d.high + 0.5, 1)
        return hp.choice(d.name, [self._branch((d.name, k)) for k in range(d.size)])
