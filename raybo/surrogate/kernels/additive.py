"""Additive covariance: a stationary kernel per group of columns, all of one family, added up.

Kandasamy, Schneider, Poczos (2015); eq. 2 of Li, Kandasamy, Poczos, Schneider (2016). A `Sum` of
kernels on columns says the same; here all groups are one batch, which with dozens of groups is
several times faster, and they may share hyperparameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from raybo.errors import SurrogateError
from raybo.surrogate.gp import GP, Posterior
from raybo.surrogate.kernels.base import Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import (
    VARIANCE_BOUNDS,
    Stationary,
    matern52,
    matern52_and_slope,
    squared_exponential,
)

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Additive:
    """variance * sum over groups of correlation(|x_g - z_g|^2 / lengthscale^2).

    Attributes
    ----------
    groups : tuple of tuples of int
        Columns of each group. Groups are disjoint and hold all columns between them.
    shape : str
        "matern52" or "se".
    ard : bool
        A length-scale per column, or one for all.
    unordered : tuple of int
        Columns of categories: two values are at distance 1 or equal.
    """

    groups: Groups
    shape: str = "se"
    ard: bool = True
    unordered: tuple[int, ...] = ()

    @property
    def dim(self) -> int:
        """Number of columns."""
        return sum(map(len, self.groups))

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Length-scales, under the prior of a kernel of the largest group, and variances.

        Before any data, the variance of the whole is thought to divide evenly among the groups.
        """
        share = 1.0 / len(self.groups)
        (length,) = Stationary(max(map(len, self.groups)), self.shape, ard=False).hypers
        length = replace(length, shape=(self.dim,) if self.ard else ())
        prior = LogNormal(1.0 + math.log(share), 1.0)  # its mode is the share
        return length, Hyper("variance", (), *VARIANCE_BOUNDS, share, prior)

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        return theta["variance"] * self.correlations(self.split(X), self.split(Z), theta).sum(0)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return theta["variance"] * len(self.groups) * X.new_ones(len(X))

    def split(self, X: Tensor) -> Tensor:
        """Columns (g, n, c) of each group of X (n, d), padded to c columns."""
        index, _, _ = self._layout
        return X[:, index].transpose(0, 1)

    def correlations(self, A: Tensor, B: Tensor, theta: Theta) -> Tensor:
        """Correlations (g, n, m) within each group, of points as `split` gives them."""
        sq = squared_distances(A, B, *self.scales(theta))
        return matern52(sq) if self.shape == "matern52" else squared_exponential(sq)

    def scales(self, theta: Theta) -> tuple[Tensor, Tensor | None]:
        """1 / length-scale of the columns as `split` gives them, (g, c), 0 where there is none.

        First those of the ordered columns, then those of the unordered, if there are any.
        """
        index, ordered, unordered = self._layout
        length = theta["lengthscale"]
        length = length[index] if self.ard else length.expand(index.shape)
        return ordered / length, unordered / length if self.unordered else None

    @cached_property
    def _layout(self) -> tuple[Tensor, Tensor, Tensor]:
        """Column of each place (g, c), and whether an ordered or an unordered one is there."""
        width = max(map(len, self.groups))
        index = torch.tensor([[*group, *[0] * (width - len(group))] for group in self.groups])
        used = torch.tensor([[c < len(group) for c in range(width)] for group in self.groups])
        unordered = used & torch.isin(index, torch.tensor(self.unordered, dtype=torch.long))
        return index, used & ~unordered, unordered


def squared_distances(A: Tensor, B: Tensor, scale: Tensor, weight: Tensor | None) -> Tensor:
    """Scaled squared distances (g, n, m) between points A (g, n, c) and B (g, m, c) of each group.

    An unordered column adds the square of its `weight` where the values differ.
    """
    centre = B.mean(1, keepdim=True).detach()  # squared distances lose fewer digits
    P, Q = (A - centre) * scale[:, None, :], (B - centre) * scale[:, None, :]
    sq = torch.baddbmm(Q.square().sum(2)[:, None, :], P, Q.mT, alpha=-2.0)
    sq = (sq + P.square().sum(2, keepdim=True)).clamp_min(0.0)
    if weight is None:
        return sq
    for c in range(weight.shape[1]):
        differs = (A[:, :, None, c] != B[:, None, :, c]).to(sq.dtype)
        sq = sq + weight[:, c, None, None].square() * differs
    return sq


@dataclass(frozen=True)
class GroupPosteriors:
    """Posterior of every group of a Gaussian process with an `Additive` kernel.

    Notes
    -----
    Eq. 3 of Li et al. (2016), the part of the paper's equation that belongs to group j:
    mean_j = k_j(x, X) D^-1 (y - m) and variance_j = k_j(x, x) - k_j(x, X) D^-1 k_j(X, x), where
    D = K + noise I and m is the constant mean, which belongs to no group.
    """

    shape: str
    variance: Tensor  # (): of each group
    scale: Tensor  # (g, c): as Additive.scales
    weight: Tensor | None  # (g, c)
    X: Tensor  # (g, n, c)
    alpha: Tensor  # (n,)
    inverse: Tensor  # (n, n)

    @classmethod
    def of(cls, gp: GP) -> GroupPosteriors:
        """Posteriors of the groups of `gp`."""
        kernel = gp.kernel
        if not isinstance(kernel, Additive):
            raise SurrogateError(f"the posterior of groups needs an Additive kernel, not {kernel}")
        return cls(
            kernel.shape,
            gp.theta["variance"],
            *kernel.scales(gp.theta),
            kernel.split(gp.X),
            gp.alpha,
            torch.cholesky_inverse(gp.chol),
        )

    def only(self, group: int) -> GroupPosteriors:
        """The posterior of one group."""
        g = slice(group, group + 1)
        weight = None if self.weight is None else self.weight[g]
        return replace(self, scale=self.scale[g], weight=weight, X=self.X[g])

    def __call__(self, Z: Tensor) -> Posterior:
        """Mean (g, s) and variance (g, s) at s points of each group, Z (g, s, c)."""
        with torch.no_grad():
            sq = squared_distances(Z, self.X, self.scale, self.weight)
            if self.shape == "matern52":
                K, slope = matern52_and_slope(sq, torch.exp)
            else:
                K = squared_exponential(sq)
                slope = -0.5 * K
            K = K * self.variance
            mean = K @ self.alpha  # eq. 3
            solved = K @ self.inverse
            variance = (self.variance - (K * solved).sum(2)).clamp_min(1e-18)
            if not Z.requires_grad:
                return Posterior(mean, variance)
            slope = slope * self.variance
            rise = self._gradient(Z, slope * self.alpha)
            fall = self._gradient(Z, slope * solved)
        # Derivatives in closed form: autograd through these small tensors takes twice the time.
        moved = Z - Z.detach()
        return Posterior(mean + (rise * moved).sum(2), variance - 2.0 * (fall * moved).sum(2))

    def _gradient(self, Z: Tensor, weight: Tensor) -> Tensor:
        """Gradient in Z of the sum over rows of weight * squared distance, weights held."""
        pull = Z * weight.sum(2, keepdim=True) - weight @ self.X
        return 2.0 * pull * self.scale.square()[:, None, :]
