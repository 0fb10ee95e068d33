"""BoTorch as its documentation uses it: SingleTaskGP, LogExpectedImprovement, optimize_acqf.

Length-scales have BoTorch's default prior, which grows with the square root of the dimension. On
spaces with discrete columns its parts for these are used: MixedSingleTaskGP where a category has
more than two values, and optimize_acqf_mixed_alternating.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.gp_regression_mixed import MixedSingleTaskGP
from botorch.optim.optimize import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from gpytorch.mlls import ExactMarginalLogLikelihood

from raybo.arrays import Array
from raybo.benchmarks.tuners.columns import Flat
from raybo.benchmarks.tuners.told import Told
from raybo.space.any_space import AnySpace

_MOST_VALUES = 1000  # of a discrete column; one with more is searched as if it were continuous


@dataclass
class BotorchLogEi:
    """Sequential search by a Gaussian process and log expected improvement.

    Inputs are rows of the unit cube and outcomes are standardised, as SingleTaskGP expects and
    does by default. BoTorch prescribes no initial design: the first `n_init` points are of a
    scrambled Sobol sequence, as many as Optuna's samplers draw; points told before count.
    """

    space: AnySpace
    seed: int
    evaluations: int
    n_init: int = 10
    num_restarts: int = 10
    raw_samples: int = 512
    _told: Told = field(init=False)

    def __post_init__(self) -> None:
        flat = Flat(self.space)
        flat.need_unconditional("botorch")
        self._told = Told(self.space, self.seed)
        varying = {d.column.index: d for d in flat.dimensions}
        values = {i: d.positions(_MOST_VALUES) for i, d in varying.items()}
        self._constant = {i: 0.5 for i in range(self.space.dim) if i not in varying}
        self._categories = {
            i: found
            for i, found in values.items()
            if varying[i].kind == "category" and len(found) > 2
        }
        self._ordered = {
            i: found for i, found in values.items() if found and i not in self._categories
        }

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        if len(self._told.rows) < self.n_init:
            return self._told.design()
        with self._told.seeded():
            return self.space.decode(self._candidate())

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        self._told.add(config, loss)

    def _candidate(self) -> Array:
        X, Y = self._told.tensors()
        model = (
            MixedSingleTaskGP(X, Y, cat_dims=list(self._categories))
            if self._categories
            else SingleTaskGP(X, Y)
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        function = LogExpectedImprovement(model, best_f=Y.max())
        bounds = torch.stack([torch.zeros_like(X[0]), torch.ones_like(X[0])])
        for i, values in {**self._ordered, **self._categories}.items():
            bounds[0, i], bounds[1, i] = values[0], values[-1]
        effort = {"num_restarts": self.num_restarts, "raw_samples": self.raw_samples}
        fixed = self._constant or None
        if self._categories or self._ordered:
            candidate, _ = optimize_acqf_mixed_alternating(
                function,
                bounds,
                discrete_dims=self._ordered,
                cat_dims=self._categories,
                fixed_features=fixed,
                **effort,
            )
        else:
            candidate, _ = optimize_acqf(function, bounds, q=1, fixed_features=fixed, **effort)
        found: Array = candidate[0].numpy()
        return found
