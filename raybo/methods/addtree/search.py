"""Where Add-Tree searches: the columns of every vertex, and whole points leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from raybo.acquisition.functions import ucb
from raybo.acquisition.maximizers.base import Acquisition, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array
from raybo.lazy import torch
from raybo.methods.addtree.parts import Parts, maximize_parts
from raybo.methods.addtree.posteriors import VertexPosteriors
from raybo.methods.addtree.vertex import AtVertex
from raybo.methods.base import Data
from raybo.methods.search import grid_of, search_region
from raybo.space.any_space import AnySpace
from raybo.space.columns import Column
from raybo.space.tree import Vertex, paths
from raybo.surrogate.gp import GP

# Numbers of points that trade the time of a proposal for the quality of its search.
LONGEST_GRID = 256  # positions of a discrete column tried in a round; of a longer one a sample
PER_LEAF = 16  # least number of starts of a leaf that is searched by itself

Path = frozenset[int]  # vertices that are active together


class VertexMaxima(NamedTuple):
    """Best point found in every vertex."""

    columns: Array  # (V, c): own columns of each vertex, ordered ones first, padded
    u: Array  # (V,): bounds there


@dataclass(frozen=True)
class TreeSearch:
    """Searches in a conditional space for one proposal."""

    space: AnySpace
    tree: Sequence[Vertex]
    terms: Sequence[AtVertex]  # kernels of the vertices
    data: Data
    rng: np.random.Generator

    def maximize_vertices(
        self, gp: GP, beta: float, *, n_starts: int, max_evaluations: int
    ) -> VertexMaxima:
        """Largest upper confidence bound of each vertex (Algorithm 2, lines 3 to 5).

        The paper lets the vertices be searched in parallel; here they are one batch.
        """
        posteriors = VertexPosteriors.of(gp)
        return VertexMaxima(
            *maximize_parts(
                lambda Z: ucb(posteriors(Z), beta),
                self.vertex_parts(),
                n_starts=n_starts,
                max_evaluations=max_evaluations,
            )
        )

    def maximize_leaves(self, f: Acquisition, maxima: VertexMaxima) -> Array:
        """Best whole point (d,) found for f, the leaves searched one by one.

        The starts of a search of the cube are dealt out to the leaves, and the maxima of the
        vertices make one more for each. All are screened in one evaluation, and the best of each
        leaf climbed from in one batch. Where independent choices make too many leaves for that,
        the best path makes one more start of a search of the cube, which moves the choices too.
        """
        space, effort = self.space, self.data.effort
        region = search_region(space, self.data, self.rng)
        most = len(region.starts) // PER_LEAF
        leaves = [frozenset(leaf) for leaf in islice(paths(self.tree), most + 1)]
        if len(leaves) > most:
            made = self.assemble(best_path(self.tree, maxima.u), maxima.columns)
            region = replace(region, starts=np.concatenate([made[None], region.starts]))
            return Lbfgsb(effort.n_starts, effort.max_evaluations)(f, region, self.rng)
        active = space.active(region.starts)
        drawn = np.where(active, region.starts, self.rng.random(active.shape))
        each = len(drawn) // len(leaves)
        dealt = self.rng.permutation(drawn)[: each * len(leaves)].reshape(len(leaves), each, -1)
        rows = np.stack(
            [
                np.vstack([self.assemble(leaf, maxima.columns), self.place(leaf, some)])
                for leaf, some in zip(leaves, dealt, strict=True)
            ]
        )
        found = values(f, rows.reshape(-1, space.dim)).reshape(rows.shape[:2])
        best = rows[np.arange(len(leaves)), found.argmax(axis=1)]
        grids = {c: g for c, g in region.grids.items() if space.columns[c].kind != "choice"}
        region = replace(region, starts=best, grids=grids)
        return Lbfgsb(len(best), effort.max_evaluations)(f, region, self.rng)

    def assemble(self, path: Path, columns: Array) -> Array:
        """Point (d,) with the columns (V, c) of the vertices of `path` (Algorithm 2, line 9)."""
        row = np.full((1, self.space.dim), 0.5)
        for v in path:
            own = list(self.terms[v].columns)
            row[0, own] = columns[v, : len(own)]
        return np.asarray(self.place(path, row)[0])

    def place(self, path: Iterable[int], rows: Array) -> Array:
        """Copy of `rows` (k, d) with the choices that lead through the vertices of `path`."""
        rows = rows.copy()
        for v in path:
            for column, branch, size in self.terms[v].condition:
                rows[:, column] = (branch + 0.5) / size
        return self.space.snap(rows)

    def vertex_parts(self) -> Parts:
        """The columns of every vertex, with starts over all of them and around its best rows.

        A vertex has a few of the columns of a point, and a quarter of the starts of its search.
        """
        space, terms, data, rng = self.space, self.terms, self.data, self.rng
        n = data.effort.n_screened // 4
        width = max(1, *(len(term.columns) for term in terms))
        starts = np.full((len(terms), 2 * n, width), 0.5)
        starts[:, :n] = spread(width, n, rng)
        free = np.zeros((len(terms), width), dtype=bool)
        grids: dict[int, dict[int, Array]] = {}
        snapped: list[tuple[int, int, Column]] = []
        ranked = data.best_rows(len(data.X))
        for v, term in enumerate(terms):
            own = term.columns
            passing = ranked[term.passes(torch.as_tensor(ranked)).numpy()][:3, list(own)]
            if own and len(passing):
                starts[v, n:, : len(own)] = around(passing, n, rng)
            starts[v, :, len(own) :] = 0.5
            for j, column in enumerate(own):
                grid = grid_of(space, column)
                free[v, j] = grid is None
                if grid is not None:
                    few = grid if len(grid) <= LONGEST_GRID else rng.choice(grid, LONGEST_GRID)
                    grids.setdefault(j, {})[v] = few
                if space.columns[column].parameter.grid is not None:
                    snapped.append((v, j, space.columns[column]))

        def snap(X: Array) -> Array:
            X = X.copy()
            for v, j, column in snapped:
                X[v, :, j] = column.snap(X[v, :, j])
            return X

        table = {j: _table(len(terms), by_vertex) for j, by_vertex in grids.items()}
        return Parts(snap(starts), free, table, snap)


def best_path(tree: Sequence[Vertex], u: Array) -> Path:
    """Vertices of the largest sum of `u` (Algorithm 2, lines 6 to 8), by one pass over the tree.

    Where several choices are independent, each takes its best branch.
    """
    total = np.array(u, dtype=np.float64)
    for vertex in reversed(tree):  # children come after their parents
        total[vertex.index] += sum(total[list(group)].max() for group in vertex.children)
    path = {0}
    for vertex in tree:
        if vertex.index in path:
            path |= {group[int(np.argmax(total[list(group)]))] for group in vertex.children}
    return frozenset(path)


def _table(n: int, by_vertex: dict[int, Array]) -> Array:
    """Grids of some of n vertices as rows, filled up with NaN."""
    table = np.full((n, max(map(len, by_vertex.values()))), np.nan)
    for v, grid in by_vertex.items():
        table[v, : len(grid)] = grid
    return table
