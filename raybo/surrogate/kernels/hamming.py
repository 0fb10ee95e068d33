"""Kernel for categorical columns: it only asks whether two values are the same."""

from __future__ import annotations

from dataclasses import dataclass

from raybo.lazy import Tensor, torch
from raybo.surrogate.kernels.base import Hyper, LogNormal, Theta


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
