"""BoTorch as its documentation uses it: SingleTaskGP, LogExpectedImprovement, optimize_acqf."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import qmc

from raybo.benchmarks.tuners.columns import Flat
from raybo.space.any_space import AnySpace


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
    _rows: list[Any] = field(default_factory=list, init=False)
    _losses: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        Flat(self.space).need_unconditional("botorch")

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        n = len(self._rows)
        if n < self.n_init:
            sobol = qmc.Sobol(self.space.dim, rng=np.random.default_rng(self.seed))
            return self.space.decode(sobol.random_base2(12)[n])
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about failed restarts, which it handles
            torch.manual_seed(self.seed * 1_000_003 + n)  # it draws from the global generator
            return self.space.decode(self._candidate())

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        self._rows.append(self.space.encode(config))
        self._losses.append(loss)

    def _candidate(self) -> Any:
        X = torch.tensor(np.array(self._rows), dtype=torch.float64)
        Y = -torch.tensor(self._losses, dtype=torch.float64).unsqueeze(-1)
        model = SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        bounds = torch.stack([torch.zeros_like(X[0]), torch.ones_like(X[0])])
        candidate, _ = optimize_acqf(
            LogExpectedImprovement(model, best_f=Y.max()),
            bounds,
            q=1,
            num_restarts=self.num_restarts,
            raw_samples=self.raw_samples,
        )
        return candidate[0].numpy()
