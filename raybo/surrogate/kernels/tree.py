"""Add-Tree covariance: a kernel per vertex of a conditional space, added where both points go.

Ma & Blaschko (2021), Definition 5 and Algorithm 1: k(x, z) = sum over the vertices v of
delta_v(x, z) k_v(x_v, z_v), where delta_v is 1 if both points pass through v and 0 otherwise.
Vertices in breadth-first order are the terms of a `Sum`, so the posterior of one of them is
`gp.posterior(X, part=v)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from raybo.space.any_space import AnySpace
from raybo.space.tree import Vertex
from raybo.surrogate.kernels.base import Hyper, LogNormal, Sum, Theta
from raybo.surrogate.kernels.hamming import Hamming
from raybo.surrogate.kernels.stationary import VARIANCE_BOUNDS, Stationary

UNORDERED = ("categorical", "choice")


@dataclass(frozen=True)
class AtVertex:
    """variance * correlation of a vertex's own columns, where both points pass through it.

    The correlation is stationary in the ordered columns, times a `Hamming` one in the others; a
    vertex without columns has correlation 1: the effect of having come there.

    Attributes
    ----------
    condition : tuple of (column, branch, number of branches)
        Choices that lead to the vertex.
    ordered, unordered : tuple of int
        Its columns.
    shape, ard : str, bool
        Of the stationary correlation, as in `Stationary`.
    share : float
        Part of the variance of the whole that the vertex is thought to have before any data.
    """

    condition: tuple[tuple[int, int, int], ...]
    ordered: tuple[int, ...]
    unordered: tuple[int, ...]
    shape: str = "se"
    ard: bool = True
    share: float = 1.0

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Length-scales and weights, where there are such columns, and the variance."""
        prior = LogNormal(1.0 + math.log(self.share), 1.0)  # its mode is the share
        variance = Hyper("variance", (), *VARIANCE_BOUNDS, self.share, prior)
        return (
            *(self._stationary.hypers if self.ordered else ()),
            *(Hamming(len(self.unordered)).hypers if self.unordered else ()),
            variance,
        )

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        if not self.condition:
            return self.within(X, Z, theta)
        # Only rows through the vertex are touched: the deeper it lies, the fewer they are.
        rows, columns = self.passes(X).nonzero()[:, 0], self.passes(Z).nonzero()[:, 0]
        inside = self.within(X[rows], Z[columns], theta)
        K = inside.new_zeros(len(X), len(Z))
        return K.index_put((rows[:, None], columns[None, :]), inside)  # Algorithm 1, line 8

    def within(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m) of points that pass through the vertex, which is not checked."""
        K = theta["variance"].expand(len(X), len(Z))
        if self.ordered:
            own = list(self.ordered)
            K = K * self._stationary(X[:, own], Z[:, own], theta)
        if self.unordered:
            own = list(self.unordered)
            K = K * Hamming(len(own))(X[:, own], Z[:, own], theta)
        return K

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return self.passes(X).to(X.dtype) * theta["variance"]

    def passes(self, X: Tensor) -> Tensor:
        """Which rows of X pass through the vertex (n,)."""
        inside = torch.ones(len(X), dtype=torch.bool, device=X.device)
        for column, branch, size in self.condition:
            chosen = (X[:, column].detach() * size).floor().clamp(0, size - 1)
            inside &= chosen == branch
        return inside

    @property
    def _stationary(self) -> Stationary:
        return Stationary(len(self.ordered), self.shape, self.ard)


def tree_kernel(
    space: AnySpace, tree: Sequence[Vertex], shape: str = "se", ard: bool = True
) -> Sum:
    """Add-Tree covariance of a space (Algorithm 1): one term per vertex of `tree`, in its order.

    The variance of a whole point is thought to divide evenly among the vertices it passes.
    """
    share = 1.0 / _most_passed(tree)
    sizes = {c.index: c.parameter.cardinality or 1 for c in space.columns if c.kind == "choice"}
    return Sum(
        tuple(
            AtVertex(
                tuple((column, branch, sizes[column]) for column, branch in vertex.condition),
                tuple(c for c in vertex.columns if space.columns[c].kind not in UNORDERED),
                tuple(c for c in vertex.columns if space.columns[c].kind in UNORDERED),
                shape,
                ard,
                share,
            )
            for vertex in tree
        )
    )


def _most_passed(tree: Sequence[Vertex]) -> int:
    """Number of vertices that a point passes through at most."""
    below = [1] * len(tree)
    for vertex in reversed(tree):  # children come after their parents
        below[vertex.index] += sum(max(below[c] for c in group) for group in vertex.children)
    return below[0]
