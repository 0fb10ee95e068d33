"""Where Add-Tree searches: the columns of every vertex, and whole points leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from raybo.acquisition.functions import ucb
from raybo.acquisition.maximizers.base import Acquisition, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.parts import Parts, maximize_parts
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array
from raybo.methods.addtree.posteriors import VertexPosteriors
from raybo.methods.addtree.vertex import AtVertex
from raybo.methods.base import Data
from raybo.methods.search import grid_of, search_region
from raybo.space.any_space import AnySpace
from raybo.space.nodes import Column
from raybo.space.tree import Vertex, paths
from raybo.surrogate.gp import GP

# Numbers of points that trade the time of a proposal for the quality of its search.
LONGEST_GRID = 256  # positions of a discrete column tried in a round; of a longer one a sample
PER_LEAF = 16  # least number of starts of a leaf that is searched by itself

Path = frozenset[int]  # vertices that are active together


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
            path |= {
                max(group, key=lambda child: float(total[child])) for group in vertex.children
            }
    return frozenset(path)


def place(space: AnySpace, terms: Sequence[AtVertex], path: Iterable[int], rows: Array) -> Array:
    """Copy of `rows` (k, d) with the choices that lead through the vertices of `path`."""
    rows = rows.copy()
    for v in path:
        for column, branch, size in terms[v].condition:
            rows[:, column] = (branch + 0.5) / size
    return space.snap(rows)


def assemble(space: AnySpace, terms: Sequence[AtVertex], path: Path, X: Array) -> Array:
    """Point (d,) that has the columns X (V, c) of the vertices of `path` (Algorithm 2, line 9)."""
    row = np.full((1, space.dim), 0.5)
    for v in path:
        own = list(terms[v].columns)
        row[0, own] = X[v, : len(own)]
    result: Array = place(space, terms, path, row)[0]
    return result


def vertex_parts(
    space: AnySpace, terms: Sequence[AtVertex], data: Data, rng: np.random.Generator
) -> Parts:
    """The columns of every vertex, with starts spread over them and around its best rows so far.

    A vertex has a few of the columns of a point, and a quarter of the starts of a whole search.
    """
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


def _table(n: int, by_vertex: dict[int, Array]) -> Array:
    table = np.full((n, max(map(len, by_vertex.values()))), np.nan)
    for v, grid in by_vertex.items():
        table[v, : len(grid)] = grid
    return table


def maximize_vertices(
    gp: GP,
    beta: float,
    space: AnySpace,
    terms: Sequence[AtVertex],
    data: Data,
    rng: np.random.Generator,
    *,
    n_starts: int,
    max_evaluations: int,
) -> tuple[Array, Array]:
    """Columns (V, c) and values (V,) of the largest bound of each vertex (Alg. 2, lines 3 to 5).

    The paper lets the vertices be searched in parallel; here they are one batch.
    """
    posteriors = VertexPosteriors.of(gp)
    return maximize_parts(
        lambda Z: ucb(posteriors(Z), beta),
        vertex_parts(space, terms, data, rng),
        n_starts=n_starts,
        max_evaluations=max_evaluations,
    )


def maximize_by_leaf(
    f: Acquisition,
    space: AnySpace,
    tree: Sequence[Vertex],
    terms: Sequence[AtVertex],
    columns: Array,
    u: Array,
    data: Data,
    rng: np.random.Generator,
) -> Array:
    """Best whole point (d,) found for f, the leaves searched one by one.

    The starts of a search of the cube are dealt out to the leaves, and the `columns` (V, c) of the
    vertices, of values `u` (V,), make one more for each. All are screened in one evaluation, and
    the best of each leaf climbed from in one batch. Where independent choices make more leaves than
    that, the best path is one more start of a search of the cube, which moves the choices too.
    """
    effort = data.effort
    region = search_region(space, data, rng)
    most = len(region.starts) // PER_LEAF
    leaves = [frozenset(leaf) for leaf in islice(paths(tree), most + 1)]
    if len(leaves) > most:
        made = assemble(space, terms, best_path(tree, u), columns)
        region = replace(region, starts=np.concatenate([made[None], region.starts]))
        return Lbfgsb(effort.n_starts, effort.max_evaluations)(f, region, rng)
    active = space.active(region.starts)
    drawn = rng.permutation(np.where(active, region.starts, rng.random(active.shape)))
    drawn = drawn[: len(drawn) // len(leaves) * len(leaves)].reshape(len(leaves), -1, space.dim)
    rows = np.stack(
        [
            np.vstack([assemble(space, terms, leaf, columns), place(space, terms, leaf, some)])
            for leaf, some in zip(leaves, drawn, strict=True)
        ]
    )
    found = values(f, rows.reshape(-1, space.dim)).reshape(rows.shape[:2])
    best = rows[np.arange(len(leaves)), found.argmax(axis=1)]
    grids = {c: g for c, g in region.grids.items() if space.columns[c].kind != "choice"}
    region = replace(region, starts=best, grids=grids)
    return Lbfgsb(len(best), effort.max_evaluations)(f, region, rng)
