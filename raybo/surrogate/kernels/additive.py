"""Additive covariance: a squared exponential kernel per group of columns, added up.

Kandasamy, Schneider, Poczos (2015); eq. 2 of Li, Kandasamy, Poczos, Schneider (2016). A `Sum` of
kernels on columns says the same; here all groups are one batch and share their hyperparameters,
which with dozens of groups is several times faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.surrogate.kernels.base import Arrays, Cross, Gradient, Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import SE, VARIANCE_BOUNDS, squared_exponential

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Additive:
    """variance * sum over groups of exp(-|x_g - z_g|^2 / (2 lengthscale^2)).

    Attributes
    ----------
    groups : tuple of tuples of int
        Columns of each group; groups are disjoint, and columns of no group are ignored.
    unordered : tuple of int
        Columns of categories: two values are at distance 1 or equal.
    """

    groups: Groups
    unordered: tuple[int, ...] = ()

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """One length-scale, under the prior of a kernel of the largest group, and one variance.

        Before any data, the variance of the whole is divided evenly among the groups.
        """
        share = 1.0 / len(self.groups)
        prior = LogNormal(1.0 + math.log(share), 1.0)  # its mode is the share
        variance = Hyper("variance", (), *VARIANCE_BOUNDS, share, prior)
        return *SE(max(map(len, self.groups)), ard=False).hypers, variance

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        sq = self._squared_distances(self._split(X), self._split(Z)) / theta["lengthscale"] ** 2
        return theta["variance"] * squared_exponential(sq).sum(0)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return theta["variance"] * len(self.groups) * X.new_ones(len(X))

    def term(self, index: int, theta: Theta) -> tuple[Additive, Theta]:
        """Kernel of one group, and its hyperparameters."""
        return replace(self, groups=(self.groups[index],)), theta

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient."""
        index, ordered, unordered = (part.numpy() for part in self.layout)
        length = theta["lengthscale"]
        A = X[:, index].transpose(1, 0, 2)  # (g, n, c)
        P = (A - A.mean(1, keepdims=True)) * ordered[:, None, :]
        size = np.square(P).sum(2)
        sq = np.maximum(size[:, :, None] + size[:, None, :] - 2.0 * P @ P.swapaxes(1, 2), 0.0)
        for c in range(unordered.shape[1] if self.unordered else 0):
            differs = A[:, :, None, c] != A[:, None, :, c]
            sq = sq + (differs & unordered[:, c, None, None])
        sq = sq / length**2
        K = theta["variance"] * np.exp(-0.5 * sq)

        def gradient(weights: Array) -> tuple[Array, Array]:
            W = weights * K
            by_hypers = np.array([(W * sq).sum(), W.sum()])  # d K / d log l = K sq
            by_P = 2.0 * (W @ P - W.sum(2)[:, :, None] * P) / length**2
            by_rows = np.zeros_like(X)
            by_rows[:, index[ordered]] = by_P.swapaxes(0, 1)[:, ordered]
            return by_hypers, by_rows

        return K.sum(0), gradient

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X."""
        index, ordered, unordered = (part.numpy() for part in self.layout)
        ordered = ordered[:, None]  # (g, 1, c)
        categories = [(g, index[g, c]) for g, c in np.argwhere(unordered)]
        length, centre = theta["lengthscale"], X.mean(0)  # squared distances lose fewer digits

        def groups(Z: Array) -> Array:  # (g, m, c), 0 where there is no column
            return np.asarray(((Z - centre) / length).T[index].swapaxes(1, 2) * ordered)

        P = groups(X)
        size = np.square(P).sum(2)[:, None]

        def covariances(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
            Q = groups(Z)
            sq = Q @ P.swapaxes(1, 2)
            sq *= -2.0
            sq += size
            sq += np.square(Q).sum(2)[:, :, None]
            np.maximum(sq, 0.0, out=sq)
            for g, column in categories:
                sq[g] += (Z[:, column, None] != X[:, column]) / length**2
            K = theta["variance"] * np.exp(-0.5 * sq)

            def gradient(weights: Array) -> Array:
                W = weights * K
                by_Q = (W @ P - W.sum(2)[:, :, None] * Q) / length
                by_Z = np.zeros_like(Z)
                by_Z[:, index[:, None][ordered]] = by_Q.swapaxes(0, 1)[:, ordered[:, 0]]
                return by_Z

            return K.sum(0), gradient

        return covariances

    def _split(self, X: Tensor) -> Tensor:
        """Columns (g, n, c) of each group of X (n, d), padded to c columns."""
        index, _, _ = self.layout
        return X[:, index].transpose(0, 1)

    def _squared_distances(self, A: Tensor, B: Tensor) -> Tensor:
        """Squared distances (g, n, m) of points A (g, n, c) and B (g, m, c) of each group."""
        _, ordered, unordered = self.layout
        centre = B.mean(1, keepdim=True).detach()  # squared distances lose fewer digits
        P, Q = (A - centre) * ordered[:, None, :], (B - centre) * ordered[:, None, :]
        sq = torch.baddbmm(Q.square().sum(2)[:, None, :], P, Q.mT, alpha=-2.0)
        sq = (sq + P.square().sum(2, keepdim=True)).clamp_min(0.0)
        if not self.unordered:
            return sq
        for c in range(unordered.shape[1]):
            differs = (A[:, :, None, c] != B[:, None, :, c]) & unordered[:, c, None, None]
            sq = sq + differs.to(sq.dtype)
        return sq

    @cached_property
    def layout(self) -> tuple[Tensor, Tensor, Tensor]:
        """Column of each place (g, c), and whether an ordered or an unordered one is there."""
        width = max(map(len, self.groups))
        index = torch.tensor([[*group, *[0] * (width - len(group))] for group in self.groups])
        used = torch.tensor([[c < len(group) for c in range(width)] for group in self.groups])
        unordered = used & torch.isin(index, torch.tensor(self.unordered, dtype=torch.long))
        return index, used & ~unordered, unordered
