"""A kernel of learnt linear combinations of the columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from raybo.surrogate.kernels.base import Gradient, Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import Stationary

ROWS = "rows"
LARGEST_ENTRY = 20.0  # bound on the entries of B: standard normal, so no draw comes near


@dataclass(frozen=True)
class Projected:
    """inner(phi(B x), phi(B z)): a stationary kernel on projections, their rows B learnt.

    The entries of B are standard normal before any data. phi is the identity, or, with `clip`,
    half of B x clipped to [-1, 1]: what a coordinate of a clipped random embedding looks like,
    scaled to the width of the unit cube.

    Attributes
    ----------
    inner : Stationary
        Kernel of the projections.
    dim : int
        Columns of x.
    clip : bool
        Whether projections are clipped to [-1, 1] and halved.

    Notes
    -----
    Hyperparameters are positive, so theta["rows"] holds exp(B): a fit, which searches logarithms,
    searches B itself, and LogNormal(1, 1) as a density over exp(b) is the standard normal over b.
    """

    inner: Stationary
    dim: int
    clip: bool = False

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the inner kernel, and the exponentials of the entries of B."""
        low, high = math.exp(-LARGEST_ENTRY), math.exp(LARGEST_ENTRY)
        shape = (self.inner.dim, self.dim)
        return (*self.inner.hypers, Hyper(ROWS, shape, low, high, 1.0, LogNormal(1.0, 1.0)))

    def project(self, X: Tensor, theta: Theta) -> Tensor:
        """Projections phi(B x) of the rows of X: (n, inner.dim)."""
        P = X @ theta[ROWS].log().T
        return 0.5 * P.clamp(-1.0, 1.0) if self.clip else P

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        return self.inner(self.project(X, theta), self.project(Z, theta), theta)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return self.inner.diag(X, theta)

    def with_gradient(self, X: Tensor, theta: Theta) -> tuple[Tensor, ProjectedGradient]:
        """Covariances (n, n) of the rows of X, and their gradient."""
        K, inner = self.inner.with_gradient(self.project(X, theta), theta)
        return K, ProjectedGradient(X, theta[ROWS].log(), self.clip, inner)


@dataclass(frozen=True)
class ProjectedGradient:
    """Gradient of the covariances of a projected kernel."""

    X: Tensor  # (n, d)
    B: Tensor  # (e, d)
    clip: bool
    inner: Gradient

    def hypers(self, weights: Tensor) -> Tensor:
        """In the log-hyperparameters: those of the inner kernel, and the entries of B."""
        by_B = self._by_products(weights).T @ self.X
        return torch.cat([self.inner.hypers(weights), by_B.reshape(-1)])

    def rows(self, weights: Tensor) -> Tensor:
        """In the rows X."""
        return self._by_products(weights) @ self.B

    def _by_products(self, weights: Tensor) -> Tensor:
        """Gradient (n, e) in B x."""
        by_projection = self.inner.rows(weights)
        if not self.clip:
            return by_projection
        return 0.5 * by_projection * ((self.X @ self.B.T).abs() < 1.0)
