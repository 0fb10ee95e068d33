"""Where Add-Tree searches: the own columns of every vertex, and whole points leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np
import torch

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.parts import Parts
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array
from raybo.methods.addtree.vertex import AtVertex
from raybo.methods.base import Data
from raybo.methods.model import grid_of, search_region
from raybo.space.any_space import AnySpace
from raybo.space.nodes import Column
from raybo.space.tree import Vertex, paths

_SPREAD, _NEAR = 64, 32  # starts of a vertex: all over its columns, and near its best rows
_LONGEST_GRID = 256  # positions of a discrete column tried in a round; a longer one is sampled
_MOST_LEAVES = 32  # searched one by one; of more than these some are drawn
_PER_LEAF = 32  # starts of a leaf beside the given ones

Path = frozenset[int]


def best_path(tree: Sequence[Vertex], u: Array) -> Path:
    """Vertices of the largest sum of `u` (Algorithm 2, lines 6 to 8), by one pass over the tree.

    Where several choices are independent, each takes its own best branch.
    """
    total = np.array(u, dtype=np.float64)
    for vertex in reversed(tree):  # children come after their parents
        total[vertex.index] += sum(total[list(group)].max() for group in vertex.children)
    return walk(tree, lambda group: int(np.argmax(total[list(group)])))


def walk(tree: Sequence[Vertex], choose: Callable[[Sequence[int]], int]) -> Path:
    """Vertices active together when `choose` picks a place in every group of branches met."""
    path = {0}
    for vertex in tree:
        if vertex.index in path:
            path |= {group[choose(group)] for group in vertex.children}
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
    """The columns of every vertex, with starts spread over them and near its best rows so far."""
    owns = [term.columns for term in terms]
    width = max(1, *map(len, owns))
    near = _NEAR >> data.haste
    starts = np.full((len(terms), _SPREAD + near, width), 0.5)
    starts[:, :_SPREAD] = spread(width, _SPREAD, rng)
    free = np.zeros((len(terms), width), dtype=bool)
    grids: dict[int, dict[int, Array]] = {}
    snapped: list[tuple[int, int, Column]] = []
    rows = data.X[np.argsort(data.loss, kind="stable")]
    for v, (term, own) in enumerate(zip(terms, owns, strict=True)):
        passing = rows[term.passes(torch.as_tensor(rows)).numpy()][:3, list(own)]
        if own and len(passing):
            starts[v, _SPREAD:, : len(own)] = around(passing, near, rng)
        starts[v, :, len(own) :] = 0.5
        for j, column in enumerate(own):
            grid = grid_of(space, column)
            free[v, j] = grid is None
            if grid is not None:
                few = grid if len(grid) <= _LONGEST_GRID else rng.choice(grid, _LONGEST_GRID)
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


def maximize_by_leaf(
    f: Acquisition,
    space: AnySpace,
    tree: Sequence[Vertex],
    terms: Sequence[AtVertex],
    path: Path,
    columns: Array,
    data: Data,
    rng: np.random.Generator,
) -> Array:
    """Best whole point (d,) found for f, the leaves searched one by one.

    The `columns` (V, c) of all vertices make a start for every leaf; more are drawn all over it
    and near the best rows so far. All starts of all leaves are screened in
    one evaluation and the best of each leaf climbed from in one batch. Independent choices have
    more leaves than can be searched: then `path`, those of the best rows and random ones are.
    """
    leaves, complete = _some_leaves(tree, terms, path, data, rng)
    region = search_region(space, data, rng, "cpu")
    starts = []
    for leaf in leaves:
        drawn = region.starts[rng.integers(len(region.starts), size=_PER_LEAF >> data.haste)]
        drawn = np.where(drawn == 0.5, rng.random(drawn.shape), drawn)  # was it inactive?
        made = assemble(space, terms, leaf, columns)
        starts.append(np.concatenate([made[None], place(space, terms, leaf, drawn)]))
    rows = np.stack(starts)
    found = values(f, rows.reshape(-1, space.dim)).reshape(rows.shape[:2])
    top = np.argsort(-found, axis=1, kind="stable")[:, : 2 >> data.haste or 1]
    best = np.take_along_axis(rows, top[:, :, None], axis=1).reshape(-1, space.dim)
    grids = dict(region.grids)
    if complete:  # no choice needs to be moved
        grids = {c: g for c, g in grids.items() if space.columns[c].kind != "choice"}
    region = Region(region.lower, region.upper, best, grids, space.snap)
    return Lbfgsb(len(best), max_evaluations=40 >> data.haste)(f, region, rng)


def _some_leaves(
    tree: Sequence[Vertex],
    terms: Sequence[AtVertex],
    path: Path,
    data: Data,
    rng: np.random.Generator,
) -> tuple[list[Path], bool]:
    """Leaves to search, and whether they are all."""
    most = _MOST_LEAVES >> data.haste
    leaves = [frozenset(path) for path in islice(paths(tree), most + 1)]
    if len(leaves) <= most:
        return leaves, True
    rows = torch.as_tensor(data.X[np.argsort(data.loss, kind="stable")[: most // 2]])
    passes = np.stack([term.passes(rows).numpy() for term in terms])
    seen = [frozenset(np.flatnonzero(column).tolist()) for column in passes.T]
    drawn = [walk(tree, lambda group: int(rng.integers(len(group)))) for _ in range(most // 2)]
    return list(dict.fromkeys([path, *seen, *drawn])), False
