"""Add-Tree covariance: a kernel per vertex of a conditional space, added where both points go.

Ma & Blaschko (2021), Definition 5 and Algorithm 1: k(x, z) = sum over the vertices v of
delta_v(x, z) k_v(x_v, z_v), where delta_v is 1 if both points pass through v and 0 otherwise.
The posterior of the function of one vertex is `gp.posterior(X, part=v)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from raybo.lazy import Tensor, torch
from raybo.methods.addtree.vertex import AtVertex, chosen_branch
from raybo.methods.model import unordered_columns
from raybo.space.any_space import AnySpace
from raybo.space.tree import Vertex
from raybo.surrogate.kernels.base import Hyper, Prior, Theta
from raybo.surrogate.kernels.stationary import squared_exponential

CENTRE = 0.5  # subtracted from positions, so that squared distances lose few digits
SMALL_BATCH = 63  # rows of a vertex: padding up to them costs less than one more batch


@dataclass(frozen=True)
class PooledPrior:
    """Prior of a vector of hyperparameters: each as `own` says, and none far from the others.

    Few observations pass through most vertices. What the others learn about the scale of their
    functions is then the best guess; without it a branch that was tried once or twice is taken to
    be flat and never tried again.
    """

    own: Prior
    spread: float  # deviation of logarithms about their mean

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log densities, to be summed."""
        apart = (log_value - log_value.mean()) / self.spread
        return self.own.log_density(log_value) - 0.5 * apart.square()


@dataclass(frozen=True)
class TreeKernel:
    """Sum of the kernels of all vertices, in breadth-first order; make one with `tree_kernel`.

    The same function as `Sum(terms)`, computed in batches of vertices that about as many points
    pass through, of which only those points are touched. The hyperparameters of all vertices stand
    in one vector for each name, in the order of the vertices.
    """

    terms: tuple[AtVertex, ...]
    spread: float | None = None  # of the `PooledPrior`; the priors of the terms unless given

    @cached_property
    def hypers(self) -> tuple[Hyper, ...]:
        """Length-scales and weights of all vertices, and variances where these are fitted."""
        found = {h.name: h for term in self.terms for h in term.hypers}
        return tuple(
            replace(h, shape=(len(self.owners(name)),), prior=self._pooled(h.prior))
            for name, h in found.items()
        )

    def _pooled(self, prior: Prior | None) -> Prior | None:
        return prior if prior is None or self.spread is None else PooledPrior(prior, self.spread)

    def term(self, index: int, theta: Theta) -> tuple[AtVertex, Theta]:
        """Kernel of vertex `index`, and its hyperparameters."""
        term = self.terms[index]
        own = {h.name: theta[h.name][self.owners(h.name) == index] for h in term.hypers}
        return term, {h.name: own[h.name].reshape(h.shape) for h in term.hypers}

    def owners(self, name: str) -> Tensor:
        """Vertex of each element of the vector of a hyperparameter."""
        sizes = [
            sum(math.prod(h.shape) for h in term.hypers if h.name == name) for term in self.terms
        ]
        return torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        rows, n_rows = self.passing(X)
        columns, n_columns = (rows, n_rows) if Z is X else self.passing(Z)
        scale, weight, variance = self.tables(theta)
        K = variance.new_zeros(len(X) * len(Z))
        for vertices in batches(n_rows, n_columns):
            r, r_valid = padded(rows, n_rows, vertices)
            c, c_valid = padded(columns, n_columns, vertices)
            inside = self.correlations(
                self.own(X, vertices, r),
                self.own(Z, vertices, c),
                scale[vertices],
                weight[vertices],
            )
            valid = r_valid[:, :, None] & c_valid[:, None, :]
            inside = inside * (variance[vertices][:, None, None] * valid)
            places = r[:, :, None] * len(Z) + c[:, None, :]
            K = K.index_add(0, places.reshape(-1), inside.reshape(-1))  # Algorithm 1, line 9
        return K.reshape(len(X), len(Z))

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return self.active(X).to(X.dtype) @ self.variances(theta)

    def active(self, X: Tensor) -> Tensor:
        """Which rows of X pass through which vertex (n, V)."""
        choices, sizes, wanted = self._branches
        if not len(choices):
            return torch.ones(len(X), len(self.terms), dtype=torch.bool)
        met = chosen_branch(X[:, choices], sizes)[:, None, :] == wanted
        return (met | (wanted < 0)).all(2)

    def passing(self, X: Tensor) -> tuple[Tensor, list[int]]:
        """Rows of X for each vertex, those that pass first (V, n), and how many these are."""
        active = self.active(X)
        order = torch.argsort(active.T.to(torch.uint8), dim=1, descending=True, stable=True)
        return order, active.sum(0).tolist()

    def own(self, X: Tensor, vertices: Sequence[int], rows: Tensor) -> Tensor:
        """Columns (b, k, c) of the vertices (b) in the rows (b, k) of X."""
        return X[rows[:, :, None], self.columns[vertices][:, None, :]]

    def tables(self, theta: Theta) -> tuple[Tensor, Tensor, Tensor]:
        """1 / length-scale (V, c) and weight (V, c) by place, 0 where there is none; variances."""
        variance = self.variances(theta)
        scale = weight = variance.new_zeros(self.columns.shape)
        elements, *places = self._lengthscale_places
        if len(elements):
            scale = scale.index_put(tuple(places), 1.0 / theta["lengthscale"][elements])
        if len(self._weight_places[0]):
            weight = weight.index_put(self._weight_places, theta["weight"])
        return scale, weight, variance

    def variances(self, theta: Theta) -> Tensor:
        """Variances (V,) of all vertices, which are given or fitted."""
        given = [term.variance for term in self.terms]
        if None in given:
            return theta["variance"]
        return torch.tensor(given, dtype=torch.float64)

    def correlations(self, A: Tensor, B: Tensor, scale: Tensor, weight: Tensor) -> Tensor:
        """Correlations (b, s, k) of own columns A (b, s, c) and B (b, k, c)."""
        P, Q = (A - CENTRE) * scale[:, None, :], (B - CENTRE) * scale[:, None, :]
        sq = torch.baddbmm(Q.square().sum(2)[:, None, :], P, Q.mT, alpha=-2.0)
        K = squared_exponential((sq + P.square().sum(2, keepdim=True)).clamp_min(0.0))
        for c in sorted(set(self._weight_places[1].tolist())):
            differs = (A[:, :, None, c] != B[:, None, :, c]).to(K.dtype)
            K = K * torch.exp(-weight[:, c, None, None] * differs)
        return K

    @cached_property
    def columns(self) -> Tensor:
        """Columns of every vertex (V, c), ordered ones first, filled up with column 0."""
        width = max(1, *(len(term.columns) for term in self.terms))
        return torch.tensor([(*t.columns, *[0] * (width - len(t.columns))) for t in self.terms])

    @cached_property
    def _lengthscale_places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Element of the vector, vertex and place in its columns of every length-scale."""
        found = [(v, j) for v, term in enumerate(self.terms) for j in range(len(term.ordered))]
        rows, places = torch.tensor(found).reshape(-1, 2).T
        elements = torch.arange(len(rows))
        if not self.terms[0].ard:  # one element for all columns of a vertex
            elements = torch.unique_consecutive(rows, return_inverse=True)[1]
        return elements, rows, places

    @cached_property
    def _weight_places(self) -> tuple[Tensor, Tensor]:
        """Vertex and place in its columns of every weight."""
        found = [
            (v, j)
            for v, term in enumerate(self.terms)
            for j in range(len(term.ordered), len(term.columns))
        ]
        rows, places = torch.tensor(found, dtype=torch.long).reshape(-1, 2).T
        return rows, places

    @cached_property
    def _branches(self) -> tuple[list[int], Tensor, Tensor]:
        """Choice columns, their sizes, and the branch of each that a vertex needs; -1: any."""
        sizes = {column: size for term in self.terms for column, _, size in term.condition}
        choices = sorted(sizes)
        wanted = torch.full((len(self.terms), len(choices)), -1.0, dtype=torch.float64)
        for v, term in enumerate(self.terms):
            for column, branch, _ in term.condition:
                wanted[v, choices.index(column)] = branch
        return choices, torch.tensor([float(sizes[c]) for c in choices]), wanted


def tree_kernel(
    space: AnySpace, tree: Sequence[Vertex], *, ard: bool = True, spread: float | None = None
) -> TreeKernel:
    """Add-Tree covariance of a space (Algorithm 1): a term for each vertex of `tree`, in order."""
    sizes = {c.index: c.parameter.cardinality or 1 for c in space.columns if c.kind == "choice"}
    unordered = unordered_columns(space)
    return TreeKernel(
        tuple(
            AtVertex(
                tuple((column, branch, sizes[column]) for column, branch in vertex.condition),
                tuple(c for c in vertex.columns if c not in unordered),
                tuple(c for c in vertex.columns if c in unordered),
                ard,
            )
            for vertex in tree
        ),
        spread,
    )


def batches(*counts: Sequence[int]) -> list[list[int]]:
    """Vertices by the magnitudes of their counts of points, those with none left out."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for v, numbers in enumerate(zip(*counts, strict=True)):
        if all(numbers):
            magnitudes = tuple(max(SMALL_BATCH, n).bit_length() for n in numbers)
            groups.setdefault(magnitudes, []).append(v)
    return list(groups.values())


def padded(order: Tensor, counts: Sequence[int], vertices: list[int]) -> tuple[Tensor, Tensor]:
    """First rows (b, k) of the vertices, k the most that any of them has, and which are meant."""
    numbers = torch.tensor([counts[v] for v in vertices])
    k = int(numbers.max())
    return order[vertices, :k], torch.arange(k) < numbers[:, None]
