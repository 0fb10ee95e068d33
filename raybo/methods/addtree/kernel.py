"""Add-Tree covariance: a kernel per vertex of a conditional space, added where both points go.

Ma & Blaschko (2021), Definition 5 and Algorithm 1: k(x, z) = sum over the vertices v of
delta_v(x, z) k_v(x_v, z_v), where delta_v is 1 if both points pass through v and 0 otherwise.
The posterior of the function of one vertex is `gp.posterior(X, part=v)`. A term of the whole
point, which is not the paper's, takes up what does not add up, and columns have scales of their
own, which it has not either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from raybo.methods.addtree.interaction import Whole
from raybo.methods.addtree.log_warp import stretch, stretch_hypers
from raybo.methods.addtree.vertex import AtVertex, chosen_branch
from raybo.space.any_space import AnySpace
from raybo.space.tree import Vertex
from raybo.surrogate.gp import NOISE
from raybo.surrogate.kernels.base import Hyper, LogNormal, Prior, Theta
from raybo.surrogate.kernels.stationary import matern52, squared_exponential

UNORDERED = ("categorical", "choice")
LOOSE, TIGHT = 0.3, 0.1  # spreads of one vertex about the others
COLUMN_SPREAD = 0.5  # of one column about the others of its vertex
NOISE_HYPER = Hyper(NOISE, (), 1e-8, 1.0, 1e-3, LogNormal(-7.5, 2.0))  # exact values
_FEW = 200_000  # covariances of vertices: to compute all is faster than to pick those needed
_CENTRE = 0.5  # subtracted from positions, so that squared distances lose few digits


@dataclass(frozen=True)
class Alike:
    """Prior of a hyperparameter of n vertices: as `own` says, and none far from the others.

    Few observations pass through most vertices. What the others learn of the scale of their
    functions is then the best guess, and without it a branch that was tried once or twice is
    thought to be flat and never tried again. So with the columns of a vertex: each of the 18 of
    `blocks` by itself takes 60 evaluations to learn, to a gap of 0.03; near the others, 0.001.
    A tree of many parameters has its vertices held closer together, to learn from all of them
    what it cannot from each.
    """

    own: Prior | None
    n: int
    spread: float = LOOSE

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log densities, to be summed: normal about the means of logarithms."""
        rows = log_value.reshape(self.n, -1)
        level = rows.mean(1, keepdim=True)
        apart = 0.5 * ((level - level.mean()) / self.spread).square().sum() / log_value.numel()
        uneven = 0.5 * ((rows - level) / COLUMN_SPREAD).square().reshape(log_value.shape)
        own = self.own.log_density(log_value) if self.own else log_value * 0.0
        return own - apart - uneven


@dataclass(frozen=True)
class TreeKernel:
    """Sum of the kernels of all vertices, in breadth-first order; make one with `tree_kernel`.

    The same function as `Sum(terms)`, computed in one batch, or where that is large in a few:
    vertices that about as many points pass through go together, and only those points are
    touched. The hyperparameters are stacked: those of all vertices with 2 ordered columns are
    rows of "lengthscale.2".
    """

    terms: tuple[AtVertex, ...]
    whole: Whole | None = None
    stretched: tuple[int, ...] = ()  # columns on scales of their own, those that have an order
    spread: float = LOOSE  # of a vertex about the others, as in `Alike`

    @cached_property
    def hypers(self) -> tuple[Hyper, ...]:
        """Variances of all vertices, and by their numbers of columns length-scales and weights."""
        stacks: dict[str, list[Hyper]] = {}
        for term in self.terms:
            for h in term.hypers:
                stacks.setdefault(_stack(term, h.name), []).append(h)
        stacked = (
            replace(
                s[0],
                name=name,
                shape=(len(s), *s[0].shape),
                prior=Alike(s[0].prior, len(s), self.spread),
            )
            for name, s in stacks.items()
        )
        return (
            *stacked,
            *(stretch_hypers(len(self.stretched)) if self.stretched else ()),
            *(self.whole.hypers if self.whole else ()),
        )

    def term(self, index: int, theta: Theta) -> tuple[AtVertex, Theta]:
        """Kernel of vertex `index`, and its own hyperparameters."""
        term = self.terms[index]
        place = {
            h.name: sum(_stack(term, h.name) in self._stacks[i] for i in range(index))
            for h in term.hypers
        }
        own = {name: theta[_stack(term, name)][k] for name, k in place.items()}
        if self.stretched:
            own["stretch"] = theta["stretch"][[self.stretched.index(c) for c in term.ordered]]
        return term, own

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        same = Z is X
        X = self.stretch(X, theta)
        Z = X if same else self.stretch(Z, theta)
        K = self._vertices(X, Z, theta)
        return K + self.whole(X, Z, theta) if self.whole else K

    def stretch(self, X: Tensor, theta: Theta) -> Tensor:
        """Rows (n, d), every column on its own scale."""
        if not self.stretched:
            return X
        columns = torch.tensor(self.stretched)
        return X.index_copy(1, columns, stretch(X[:, columns], theta["stretch"]))

    def stretch_own(self, Z: Tensor, theta: Theta) -> Tensor:
        """Own columns (V, s, c) of all vertices, every column on its own scale."""
        if not self.stretched:
            return Z
        ratios = torch.ones(1 + max(*self.stretched, int(self._columns.max())), dtype=Z.dtype)
        ratios[list(self.stretched)] = theta["stretch"]
        return stretch(Z, ratios[self._columns][:, None, :])

    def _vertices(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        scale, weight, variance = self.tables(theta)
        if len(self.terms) * len(X) * len(Z) <= _FEW:
            A, B = (rows[:, self._columns].transpose(0, 1) for rows in (X, Z))
            both = self.active(X).T[:, :, None] & self.active(Z).T[:, None, :]
            every = self.correlations(A, B, scale, weight)
            return (every * (variance[:, None, None] * both)).sum(0)
        rows, n_rows = self.passing(X)
        columns, n_columns = (rows, n_rows) if Z is X else self.passing(Z)
        K = variance.new_zeros(len(X) * len(Z))
        for vertices in buckets(n_rows, n_columns):
            r, r_valid = _padded(rows, n_rows, vertices)
            c, c_valid = _padded(columns, n_columns, vertices)
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
        variance = self.active(X).to(X.dtype) @ theta["variance"]
        return variance + theta["whole.variance"] if self.whole else variance

    def stacked(self, name: str) -> tuple[Tensor, int]:
        """Vertices (r,) of the rows of a stack of length-scales, and their number of columns."""
        vertices, places = self._places[name]
        return vertices[:, 0], places.shape[1]

    def active(self, X: Tensor) -> Tensor:
        """Which rows of X pass through which vertex (n, V)."""
        choices, sizes, wanted = self._branches
        if not len(choices):
            return torch.ones(len(X), len(self.terms), dtype=torch.bool)
        met = chosen_branch(X[:, choices], sizes)[:, None, :] == wanted
        return (met | (wanted < 0)).all(2)

    def passing(self, X: Tensor) -> tuple[Tensor, list[int]]:
        """Rows of X in the order (V, n) that puts those first which pass, and how many do."""
        active = self.active(X)
        order = torch.argsort(active.T.to(torch.uint8), dim=1, descending=True, stable=True)
        return order, active.sum(0).tolist()

    def own(self, X: Tensor, vertices: Sequence[int], rows: Tensor) -> Tensor:
        """Own columns (b, k, c) of the vertices (b) in the rows (b, k) of X."""
        return X[rows[:, :, None], self._columns[vertices][:, None, :]]

    def tables(self, theta: Theta) -> tuple[Tensor, Tensor, Tensor]:
        """1 / length-scale (V, c) and weight (V, c) by place, 0 where there is none; variances."""
        variance = theta["variance"]
        scale, weight = variance.new_zeros(self._columns.shape), variance.new_zeros(())
        weight = weight.expand(self._columns.shape)
        for name, (vertices, places) in self._places.items():
            value = theta[name] if theta[name].ndim > 1 else theta[name][:, None]
            value = value.expand(places.shape)
            if name.startswith("lengthscale"):
                scale = scale.index_put((vertices, places), 1.0 / value)
            else:
                weight = weight.index_put((vertices, places), value)
        return scale, weight, variance

    def correlations(self, A: Tensor, B: Tensor, scale: Tensor, weight: Tensor) -> Tensor:
        """Correlations (b, s, k) of own columns A (b, s, c) and B (b, k, c)."""
        P, Q = (A - _CENTRE) * scale[:, None, :], (B - _CENTRE) * scale[:, None, :]
        sq = torch.baddbmm(Q.square().sum(2)[:, None, :], P, Q.mT, alpha=-2.0)
        sq = (sq + P.square().sum(2, keepdim=True)).clamp_min(0.0)
        K = matern52(sq) if self.terms[0].shape == "matern52" else squared_exponential(sq)
        for c in self._unordered:
            differs = (A[:, :, None, c] != B[:, None, :, c]).to(K.dtype)
            K = K * torch.exp(-weight[:, c, None, None] * differs)
        return K

    @cached_property
    def _stacks(self) -> list[set[str]]:
        """Names of the stacks that each vertex has a row in."""
        return [{_stack(term, h.name) for h in term.hypers} for term in self.terms]

    @cached_property
    def _columns(self) -> Tensor:
        """Columns of every vertex (V, c), filled up with column 0."""
        width = max(1, *(len(term.columns) for term in self.terms))
        return torch.tensor([(*t.columns, *[0] * (width - len(t.columns))) for t in self.terms])

    @cached_property
    def _places(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Where the rows of each stack go in a table (V, c)."""
        found: dict[str, tuple[list[list[int]], list[list[int]]]] = {}
        for v, term in enumerate(self.terms):
            k, n = len(term.ordered), len(term.columns)
            for name, places in (("lengthscale", range(k)), ("weight", range(k, n))):
                if places:
                    at, where = found.setdefault(_stack(term, name), ([], []))
                    at.append([v])
                    where.append(list(places))
        return {name: (torch.tensor(a), torch.tensor(w)) for name, (a, w) in found.items()}

    @cached_property
    def _unordered(self) -> list[int]:
        """Places of own columns where some vertex has an unordered one."""
        ends = [(len(term.ordered), len(term.columns)) for term in self.terms]
        return sorted({c for start, end in ends for c in range(start, end)})

    @cached_property
    def _branches(self) -> tuple[list[int], Tensor, Tensor]:
        """Choice columns, their sizes, and the branch of each that a vertex wants; -1: any."""
        sizes = {column: size for term in self.terms for column, _, size in term.condition}
        choices = sorted(sizes)
        wanted = torch.full((len(self.terms), len(choices)), -1.0, dtype=torch.float64)
        for v, term in enumerate(self.terms):
            for column, branch, _ in term.condition:
                wanted[v, choices.index(column)] = branch
        return choices, torch.tensor([float(sizes[c]) for c in choices]), wanted


def tree_kernel(
    space: AnySpace,
    tree: Sequence[Vertex],
    shape: str = "se",
    ard: bool = True,
    whole: bool = False,
    stretched: bool = False,
    spread: float = LOOSE,
) -> TreeKernel:
    """Add-Tree covariance of a space (Algorithm 1): one term per vertex of `tree`, in its order.

    The variance of a whole point is thought to divide evenly among the vertices it passes. With
    `whole` there is a term of all columns besides, with `stretched` columns have their own scales;
    `spread` is that of a vertex about the others.
    """
    share = 1.0 / _most_passed(tree)
    sizes = {c.index: c.parameter.cardinality or 1 for c in space.columns if c.kind == "choice"}
    terms = (
        AtVertex(
            tuple((column, branch, sizes[column]) for column, branch in vertex.condition),
            *_by_order(space, vertex.columns),
            shape,
            ard,
            share,
        )
        for vertex in tree
    )
    columns = tuple(c.index for c in space.columns)
    ordered, others = _by_order(space, columns)
    return TreeKernel(
        tuple(terms),
        Whole(ordered, others) if whole else None,
        ordered if stretched else (),
        spread,
    )


def _by_order(
    space: AnySpace, columns: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Those columns that are ordered, and the others."""
    others = tuple(c for c in columns if space.columns[c].kind in UNORDERED)
    return tuple(c for c in columns if c not in others), others


def buckets(*counts: Sequence[int]) -> list[list[int]]:
    """Vertices by the magnitudes of their counts of points, those with none left out.

    Up to 63 points are one magnitude: padding costs less than more batches, by 40 % of an ask at
    n = 30.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for v, numbers in enumerate(zip(*counts, strict=True)):
        if all(numbers):
            groups.setdefault(tuple(max(6, n.bit_length()) for n in numbers), []).append(v)
    return list(groups.values())


def _padded(order: Tensor, counts: Sequence[int], vertices: list[int]) -> tuple[Tensor, Tensor]:
    """First rows (b, k) of the vertices, k the most that any of them has, and which are meant."""
    numbers = torch.tensor([counts[v] for v in vertices])
    k = int(numbers.max())
    return order[vertices, :k], torch.arange(k) < numbers[:, None]


def _stack(term: AtVertex, name: str) -> str:
    if name == "variance":
        return name
    return f"{name}.{len(term.ordered if name == 'lengthscale' else term.unordered)}"


def _most_passed(tree: Sequence[Vertex]) -> int:
    """Number of vertices that a point passes through at most."""
    below = [1] * len(tree)
    for vertex in reversed(tree):  # children come after their parents
        below[vertex.index] += sum(max(below[c] for c in group) for group in vertex.children)
    return below[0]
