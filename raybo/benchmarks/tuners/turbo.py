"""TuRBO: a trust region that grows and shrinks around the best point (Eriksson et al. 2019).

Made of the parts of BoTorch's tutorial on TuRBO-1, with its constants: Thompson sampling over a
perturbed Sobol sequence in a region whose sides follow the length-scales. The tutorial stops when
the region is too small; as in the paper, a new one is then started from another design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gpytorch
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.generation import MaxPosteriorSampling
from botorch.models import SingleTaskGP
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.quasirandom import SobolEngine

from raybo.arrays import Array
from raybo.benchmarks.tuners.columns import Flat
from raybo.benchmarks.tuners.told import Told
from raybo.space.any_space import AnySpace

_LENGTH, _SHORTEST, _LONGEST = 0.8, 0.5**7, 1.6
_SUCCESSES = 10  # before the region doubles; it halves after max(4, d) failures
_PERTURBED = 20  # coordinates of a candidate that differ from the centre, on average


@dataclass
class Region:
    """Side length of the trust region, and what it depends on."""

    first: int  # number of the first row that belongs to it
    length: float = _LENGTH
    best: float = float("inf")
    successes: int = 0
    failures: int = 0

    def update(self, loss: float, dim: int) -> None:
        """Count a loss found in the region as a success or a failure."""
        if loss < self.best - 1e-3 * abs(self.best):
            self.successes, self.failures = self.successes + 1, 0
        else:
            self.successes, self.failures = 0, self.failures + 1
        if self.successes == _SUCCESSES:
            self.length, self.successes = min(2.0 * self.length, _LONGEST), 0
        elif self.failures == max(4, dim):
            self.length, self.failures = self.length / 2.0, 0
        self.best = min(self.best, loss)


@dataclass
class Turbo:
    """TuRBO-1, one config at a time.

    A design has `n_init` points: twice the dimension as in the tutorial, but at most a fifth of
    the run. Discrete columns are searched as if they were continuous.
    """

    space: AnySpace
    seed: int
    evaluations: int
    n_init: int | None = None
    _told: Told = field(init=False)
    _region: Region = field(default_factory=lambda: Region(0), init=False)
    _regions: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        Flat(self.space).need_unconditional("turbo")
        self._told = Told(self.space, self.seed)
        self._n_init = self.n_init or max(2, min(2 * self.space.dim, self.evaluations // 5))

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        if self._in_design():
            return self._told.design(self._regions)
        with self._told.seeded(), gpytorch.settings.max_cholesky_size(float("inf")):
            return self.space.decode(self._candidate())

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        if self._in_design():
            self._region.best = min(self._region.best, loss)
        else:
            self._region.update(loss, self.space.dim)
        self._told.add(config, loss)
        if self._region.length < _SHORTEST:
            self._region = Region(len(self._told.rows))
            self._regions += 1

    def _in_design(self) -> bool:
        return len(self._told.rows) - self._region.first < self._n_init

    def _candidate(self) -> Array:
        X, Y = self._told.tensors(self._region.first)
        Y = (Y - Y.mean()) / (Y.std() if float(Y.std()) > 0 else 1.0)
        d = X.shape[1]
        matern = MaternKernel(nu=2.5, ard_num_dims=d, lengthscale_constraint=Interval(0.005, 4.0))
        likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
        model = SingleTaskGP(
            X, Y, covar_module=ScaleKernel(matern), likelihood=likelihood, outcome_transform=None
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        weights = matern.lengthscale.squeeze(0).detach()
        weights = weights / weights.mean()
        weights = weights / torch.prod(weights.pow(1.0 / d))
        centre = X[Y.argmax()]
        lower = torch.clamp(centre - weights * self._region.length / 2.0, 0.0, 1.0)
        upper = torch.clamp(centre + weights * self._region.length / 2.0, 0.0, 1.0)
        candidates = _candidates(centre, lower, upper, seed=len(self._told.rows))
        with torch.no_grad():
            found = MaxPosteriorSampling(model, replacement=False)(candidates, num_samples=1)
        row: Array = found[0].numpy()
        return row


def _candidates(
    centre: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, seed: int
) -> torch.Tensor:
    """Return points of the region (n, d) that differ from the centre in a few coordinates."""
    d = len(centre)
    n = min(5000, max(2000, 200 * d))
    sobol = SobolEngine(d, scramble=True, seed=seed)  # type: ignore[no-untyped-call]
    points = lower + (upper - lower) * sobol.draw(n).double()
    mask = torch.rand(n, d) <= min(_PERTURBED / d, 1.0)
    none = ~mask.any(dim=1)
    mask[none, torch.randint(0, d, (int(none.sum()),))] = True
    return torch.where(mask, points, centre)
