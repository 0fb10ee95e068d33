"""A separate Gaussian process for every leaf of a conditional space.

The baseline of Add-Tree's section 5.1 (after Levesque et al. 2017): each leaf has a squared
exponential kernel with a length-scale per parameter, and the leaf whose expected improvement over
the best value of all leaves is largest is evaluated next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from raybo.acquisition.functions import log_ei
from raybo.acquisition.maximizers.base import Region, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array
from raybo.errors import MethodError
from raybo.methods.addtree.vertex import AtVertex
from raybo.methods.search import grid_of
from raybo.space.any_space import AnySpace
from raybo.space.tree import paths, vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import OnColumns
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import FREE_NOISE, fit, starting_theta

_MOST_LEAVES = 256  # one fit each: an ask takes seconds with as many


@dataclass(frozen=True)
class Leaf:
    """One combination of choices, whose parameters vary while all others are held."""

    columns: tuple[int, ...]  # its parameters
    base: tuple[float, ...]  # row of the cube that makes these choices

    def kernel(self) -> AtVertex | OnColumns:
        """Return the kernel of its parameters, with the priors that Add-Tree gives a vertex."""
        return AtVertex((), self.columns, ())

    def gp(self, X: Array, y: Array) -> GP:
        """Return the process of the rows X (n, d) in this leaf and their standardised values."""
        kernel = self.kernel()
        start = starting_theta(kernel, FREE_NOISE)
        rows, outcomes = torch.as_tensor(X), torch.as_tensor(y)
        theta = fit(kernel, rows, outcomes, [start], noise=FREE_NOISE)
        return GP.of(kernel, theta, rows, outcomes)


def leaves(space: AnySpace) -> list[Leaf]:
    """Return all combinations of choices of a space."""
    tree = vertices(space)
    sizes = {c.index: c.parameter.cardinality or 1 for c in space.columns if c.kind == "choice"}
    found = []
    for path in paths(tree):
        base = np.full(space.dim, 0.5)
        for v in path:
            for column, branch in tree[v].condition:
                base[column] = (branch + 0.5) / sizes[column]
        columns = tuple(c for v in path for c in tree[v].columns)
        found.append(Leaf(columns, tuple(base.tolist())))
        if len(found) > _MOST_LEAVES:
            raise MethodError(
                f"independent-gps needs a model per leaf, this space has over {_MOST_LEAVES}; "
                "use addtree"
            )
    return found


@dataclass
class IndependentGps:
    """One Gaussian process per leaf, two random points each before any model."""

    space: AnySpace
    seed: int
    evaluations: int
    n_init: int = 2  # points of a leaf before it has a model
    _rows: list[Array] = field(default_factory=list, init=False)
    _losses: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._leaves = leaves(self.space)

    def ask(self) -> dict[str, Any]:
        """Return the next config to evaluate."""
        n = len(self._rows)
        rng = np.random.default_rng([self.seed, n])
        rows = np.reshape(self._rows, (n, self.space.dim))
        losses = np.array(self._losses)
        own = [self._in_leaf(leaf, rows) for leaf in self._leaves]
        counts = [int(mask.sum()) for mask in own]
        if min(counts) < self.n_init:
            leaf = self._leaves[int(np.argmin(counts))]
            return self.space.decode(self._place(leaf, rng.random((1, self.space.dim)))[0])
        y = (losses - losses.mean()) / (losses.std() or 1.0)
        best: tuple[float, Array] | None = None
        with one_thread():
            for leaf, mask in zip(self._leaves, own, strict=True):
                gain, x = self._search(leaf, rows[mask], y[mask], float(y.min()), rng)
                if best is None or gain > best[0]:
                    best = gain, x
        return self.space.decode(best[1] if best else rows[0])

    def tell(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        self._rows.append(self.space.encode(config))
        self._losses.append(loss)

    def _search(
        self, leaf: Leaf, X: Array, y: Array, best: float, rng: np.random.Generator
    ) -> tuple[float, Array]:
        gp, incumbent = leaf.gp(X, y), torch.tensor(best).double()
        near = around(X[np.argsort(y)[:3]], 64, rng)
        starts = self._place(leaf, np.concatenate([spread(self.space.dim, 64, rng), near]))
        fixed = np.setdiff1d(np.arange(self.space.dim), leaf.columns)
        lower, upper = np.zeros(self.space.dim), np.ones(self.space.dim)
        lower[fixed] = upper[fixed] = starts[0, fixed]
        grids = {c: g for c in leaf.columns if (g := grid_of(self.space, c)) is not None}
        region = Region(lower, upper, starts, grids, self.space.snap)

        def f(Z: torch.Tensor) -> torch.Tensor:
            return log_ei(gp.posterior(Z), incumbent)

        x = Lbfgsb(4)(f, region, rng)
        return float(values(f, x[None])[0]), x

    def _in_leaf(self, leaf: Leaf, rows: Array) -> Any:
        return np.all(rows == self._place(leaf, rows), axis=1)

    def _place(self, leaf: Leaf, rows: Array) -> Array:
        placed = np.repeat(np.array(leaf.base)[None], len(rows), axis=0)
        columns = list(leaf.columns)
        placed[:, columns] = rows[:, columns]
        return self.space.snap(placed)
