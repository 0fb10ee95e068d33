"""The Gaussian process of every model: its posterior given rows and values.

Hyperparameters may have leading batch dimensions, one process for each sample of them: with theta
of shape (s, ...), posteriors are (s, m). Without, the shapes below hold as they are written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from raybo.errors import SurrogateError
from raybo.lazy import Tensor, torch
from raybo.surrogate.kernels.base import Kernel, Terms, Theta
from raybo.surrogate.linalg import cholesky, extend_cholesky

NOISE = "noise"  # variance of the noise, beside the kernel's hyperparameters in theta
LEAST_VARIANCE = 1e-18  # rounding can make a posterior variance negative, and its root is needed


class Posterior(NamedTuple):
    """Mean (m,) and variance (m,) of the function at m points."""

    mean: Tensor
    variance: Tensor


@dataclass(frozen=True)
class GP:
    """A Gaussian process given the rows X and their values y; make one with `GP.of`."""

    kernel: Kernel
    theta: Theta  # hyperparameters of the kernel, and the noise
    X: Tensor  # (n, d)
    y: Tensor  # (n,)
    mean: Tensor  # (): constant mean of the process
    chol: Tensor  # (n, n): of K(X, X) + noise I
    alpha: Tensor  # (n,): (K + noise I)^-1 (y - mean)
    own: Tensor  # (n,): variances that single values have beside the noise of all

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        theta: Theta,
        X: Tensor,
        y: Tensor,
        mean: Tensor | float | None = None,
        own: Tensor | None = None,
    ) -> GP:
        """Condition the process on y = f(X) + noise (Rasmussen & Williams 2006, alg. 2.1).

        The constant mean is the one of highest likelihood unless it is given. `own` are variances
        (n,) that single values have beside the noise of all.
        """
        wanted = {h.name for h in kernel.hypers} | {NOISE}
        if set(theta) != wanted:
            raise SurrogateError(f"theta holds {sorted(theta)}, the kernel wants {sorted(wanted)}")
        own = X.new_zeros(len(X)) if own is None else own
        chol = cholesky(add_noise(kernel(X, X, theta), theta[NOISE], own))
        m = likeliest_mean(chol, y) if mean is None else torch.as_tensor(mean).to(y)
        return cls(kernel, theta, X, y, m, chol, _solve(chol, y - m[..., None]), own)

    def posterior(
        self, X: Tensor, part: int | None = None, seen: Tensor | None = None
    ) -> Posterior:
        """Posterior of the function at X, or of term `part` of a sum of kernels.

        The variance of each point is given the first `seen` rows (m,) or () only, if it is given:
        they have the first rows of the factor. The rows left out must be at their mean. It is
        computed where the data are, and returned where X is.
        """
        where, X = X.device, X.to(self.X.device)
        kernel, theta = self.kernel, self.theta
        if part is not None:
            if not isinstance(kernel, Terms):
                raise SurrogateError(f"part={part} needs a Sum of kernels, this is {kernel}")
            kernel, theta = kernel.term(part, theta)
        K = kernel(self.X, X, theta)
        mean = (K.mT @ self.alpha[..., None])[..., 0]
        if part is None:
            mean = mean + self.mean[..., None]
        half = torch.linalg.solve_triangular(self.chol, K, upper=False)
        if seen is not None:
            half = half * (torch.arange(len(self.X))[:, None] < seen).to(X.device)
        variance = kernel.diag(X, theta) - half.square().sum(-2)
        return Posterior(mean.to(where), variance.clamp_min(LEAST_VARIANCE).to(where))

    def fitted(self) -> Tensor:
        """Posterior mean at the rows of the data, without another solve."""
        return self.y - (self.theta[NOISE][..., None] + self.own) * self.alpha

    def left_out(self) -> Posterior:
        """Each value as the others predict it, noise included (R & W 2006, eqs. 5.10 to 5.12)."""
        precision = torch.cholesky_inverse(self.chol).diagonal(dim1=-2, dim2=-1)
        return Posterior(self.y - self.alpha / precision, 1.0 / precision)

    def negative_log_predictive_density(self, X: Tensor, y: Tensor) -> float:
        """Negative log density of the values y of other rows X, each row by itself, summed."""
        found = self.posterior(X)
        variance = found.variance + self.theta[NOISE]
        scaled = (y - found.mean).square() / variance
        return float(0.5 * ((2.0 * math.pi * variance).log() + scaled).sum())

    def condition(self, X: Tensor, y: Tensor) -> GP:
        """The process with more rows and the same hyperparameters."""
        if not len(X):
            return self
        chol = self._extend(X, self.kernel(self.X, X, self.theta))
        all_y = torch.cat([self.y.expand(*y.shape[:-1], -1), y], -1)
        alpha = _solve(chol, all_y - self.mean[..., None])
        own = torch.cat([self.own, self.own.new_zeros(len(X))])
        return replace(self, X=torch.cat([self.X, X]), y=all_y, chol=chol, alpha=alpha, own=own)

    def condition_on_mean(self, X: Tensor) -> GP:
        """The process with pending rows at their posterior mean (Desautels et al. 2014).

        The variance shrinks around them, the mean does not move: their alpha is 0.
        """
        if not len(X):
            return self
        cross = self.kernel(self.X, X, self.theta)
        values = (cross.mT @ self.alpha[..., None])[..., 0] + self.mean[..., None]
        y = self.y.expand(*values.shape[:-1], -1)
        none = self.alpha.new_zeros(*self.alpha.shape[:-1], len(X))
        return replace(
            self,
            X=torch.cat([self.X, X]),
            y=torch.cat([y, values], -1),
            chol=self._extend(X, cross),
            alpha=torch.cat([self.alpha, none], -1),
            own=torch.cat([self.own, self.own.new_zeros(len(X))]),
        )

    def condition_at_least(self, X: Tensor, level: Tensor) -> GP:
        """The process with rows at their posterior mean, or at `level` where that is higher."""
        if not len(X):
            return self
        return self.condition(X, torch.maximum(self.posterior(X).mean, level[..., None]))

    def _extend(self, X: Tensor, cross: Tensor) -> Tensor:
        corner = add_noise(self.kernel(X, X, self.theta), self.theta[NOISE])
        return extend_cholesky(self.chol, cross, corner)

    def with_theta(self, changes: Theta) -> GP:
        """The process on the same rows, with the same mean, and some hyperparameters changed."""
        theta = {**self.theta, **changes}
        return GP.of(self.kernel, theta, self.X, self.y, self.mean, self.own)


def add_noise(K: Tensor, noise: Tensor, own: Tensor | None = None) -> Tensor:
    """K + noise I, and the variances `own` (n,) of single values."""
    eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    noisy = K + noise[..., None, None] * eye
    return noisy if own is None else noisy + own * eye


def likeliest_mean(chol: Tensor, y: Tensor) -> Tensor:
    """Constant mean under which y is most likely: 1'K^-1 y / 1'K^-1 1 for the factor of K."""
    ones = _solve(chol, torch.ones_like(y))
    return (ones * y).sum(-1) / ones.sum(-1)


def _solve(chol: Tensor, y: Tensor) -> Tensor:
    y = y.expand(chol.shape[:-1])
    return torch.cholesky_solve(y[..., None], chol)[..., 0]
