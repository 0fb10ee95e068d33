"""Exact Gaussian process posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from raybo.errors import SurrogateError
from raybo.surrogate.kernels.base import Kernel, Terms, Theta
from raybo.surrogate.linalg import cholesky, extend_cholesky

NOISE = "noise"  # variance of the noise, beside the kernel's own hyperparameters in theta
MEAN = "mean"  # constant mean of the process
LEAST_VARIANCE = 1e-18


class Posterior(NamedTuple):
    """Mean (m,) and variance (m,) of the function at m points."""

    mean: Tensor
    variance: Tensor


@dataclass(frozen=True)
class GP:
    """A Gaussian process given the rows X and their values y; make one with `GP.of`."""

    kernel: Kernel
    theta: Theta
    X: Tensor  # (n, d)
    y: Tensor  # (n,)
    chol: Tensor  # (n, n): of K(X, X) + noise I
    alpha: Tensor  # (n,): (K + noise I)^-1 (y - mean)

    @classmethod
    def of(cls, kernel: Kernel, theta: Theta, X: Tensor, y: Tensor) -> GP:
        """Condition the process on y = f(X) + noise (Rasmussen & Williams 2006, alg. 2.1)."""
        wanted = {h.name for h in kernel.hypers} | {NOISE, MEAN}
        if set(theta) != wanted:
            raise SurrogateError(f"theta holds {sorted(theta)}, the kernel wants {sorted(wanted)}")
        K = kernel(X, X, theta)
        chol = cholesky(K + theta[NOISE] * torch.eye(len(X), dtype=X.dtype, device=X.device))
        return cls(kernel, theta, X, y, chol, _solve(chol, y - theta[MEAN]))

    def posterior(self, X: Tensor, part: int | None = None) -> Posterior:
        """Posterior of the function at X, or of term `part` of a sum of kernels."""
        kernel, theta = self.kernel, self.theta
        if part is not None:
            if not isinstance(kernel, Terms):
                raise SurrogateError(f"part={part} needs a Sum of kernels, this is {kernel}")
            kernel, theta = kernel.term(part, theta)
        K = kernel(self.X, X, theta)
        mean = K.T @ self.alpha
        if part is None:
            mean = mean + self.theta[MEAN]
        half = torch.linalg.solve_triangular(self.chol, K, upper=False)
        variance = kernel.diag(X, theta) - half.square().sum(0)
        return Posterior(mean, variance.clamp_min(LEAST_VARIANCE))

    def fitted(self) -> Tensor:
        """Posterior mean at the rows of the data, without another solve."""
        return self.y - self.theta[NOISE] * self.alpha

    def surprise(self, X: Tensor, y: Tensor) -> float:
        """Negative log density of values y of other rows X, each by itself, summed."""
        found = self.posterior(X)
        variance = found.variance + self.theta[NOISE]
        scaled = (y - found.mean).square() / variance
        return float(0.5 * ((2.0 * math.pi * variance).log() + scaled).sum())

    def condition(self, X: Tensor, y: Tensor) -> GP:
        """The process with more rows and the same hyperparameters."""
        if not len(X):
            return self
        chol = self._extend(X, self.kernel(self.X, X, self.theta))
        all_y = torch.cat([self.y, y])
        alpha = _solve(chol, all_y - self.theta[MEAN])
        return replace(self, X=torch.cat([self.X, X]), y=all_y, chol=chol, alpha=alpha)

    def condition_on_mean(self, X: Tensor) -> GP:
        """The process with pending rows told their own posterior mean (Desautels et al. 2014).

        The variance shrinks around them, the mean does not move: their alpha is 0.
        """
        if not len(X):
            return self
        cross = self.kernel(self.X, X, self.theta)
        return replace(
            self,
            X=torch.cat([self.X, X]),
            y=torch.cat([self.y, cross.T @ self.alpha + self.theta[MEAN]]),
            chol=self._extend(X, cross),
            alpha=torch.cat([self.alpha, self.alpha.new_zeros(len(X))]),
        )

    def _extend(self, X: Tensor, cross: Tensor) -> Tensor:
        eye = torch.eye(len(X), dtype=X.dtype, device=X.device)
        corner = self.kernel(X, X, self.theta) + self.theta[NOISE] * eye
        return extend_cholesky(self.chol, cross, corner)

    def with_theta(self, changes: Theta) -> GP:
        """The process on the same rows with some hyperparameters changed."""
        return GP.of(self.kernel, {**self.theta, **changes}, self.X, self.y)


def _solve(chol: Tensor, y: Tensor) -> Tensor:
    return torch.cholesky_solve(y[:, None], chol)[:, 0]
