"""Kernel for categorical columns: it only asks whether two values are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.surrogate.kernels.base import Arrays, Cross, Gradient, Hyper, LogNormal, Theta


@dataclass(frozen=True)
class Hamming:
    """exp(-sum over the columns of weight_j * [x_j != z_j])."""

    dim: int

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """A weight per column: how much it matters that the values differ."""
        # exp(-0.5): before any data, another category is thought to be much alike.
        return (Hyper("weight", (self.dim,), 1e-4, 1e2, 0.5 / self.dim, LogNormal(-0.5, 1.5)),)

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        differs = (X[:, None, :] != Z[None, :, :]).to(X.dtype)
        return torch.exp(-(differs @ theta["weight"]))

    def diag(self, X: Tensor, theta: Theta) -> Tensor:  # noqa: ARG002
        """Variances (n,)."""
        return X.new_ones(len(X))

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient, which is 0 in the rows."""
        differs = (X[:, None, :] != X[None, :, :]).astype(float)
        K = np.exp(-(differs @ theta["weight"]))

        def gradient(weights: Array) -> tuple[Array, Array]:
            by_weight = -np.einsum("ij,ijk->k", weights * K, differs)
            return by_weight * theta["weight"], np.zeros_like(X)

        return K, gradient

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X."""

        def covariances(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
            differs = (Z[:, None, :] != X[None, :, :]).astype(float)
            return np.exp(-(differs @ theta["weight"])), lambda _: np.zeros_like(Z)

        return covariances
