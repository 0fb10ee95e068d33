"""HEBO: heteroscedastic evolutionary Bayesian optimisation, with its defaults."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

from raybo.benchmarks.tuners.columns import Dimension, Flat
from raybo.space.any_space import AnySpace


@dataclass
class HeboMace:
    """HEBO on a space without conditional parameters.

    The seed fixes its initial design only: its evolutionary search seeds itself.
    """

    space: AnySpace
    seed: int
    evaluations: int

    def __post_init__(self) -> None:
        self._flat = Flat(self.space)
        self._flat.need_unconditional("hebo")
        space = DesignSpace().parse([_parameter(d) for d in self._flat.dimensions])
        self._hebo = HEBO(space, scramble_seed=self.seed)

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = self._hebo.suggest(1).iloc[0]
        return self._flat.config(row.to_dict())

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        row = pd.DataFrame([self._flat.values(config)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._hebo.observe(row, np.array([[loss]]))


def _parameter(d: Dimension) -> dict[str, Any]:
    if d.kind == "category":
        return {"name": d.name, "type": "cat", "categories": list(range(d.size))}
    if d.kind == "int":
        kind = "pow_int" if d.log else "int"
        return {"name": d.name, "type": kind, "lb": int(d.low), "ub": int(d.high), "base": 10}
    kind = "pow" if d.log else "num"
    return {"name": d.name, "type": kind, "lb": d.low, "ub": d.high, "base": 10}
