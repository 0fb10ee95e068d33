"""The conditional structure of a space: vertices, paths, and which vertices a row activates.

A vertex holds the parameters that become active together: the root those without a condition,
every branch of every choice those directly inside it. Several choices at one vertex are
independent of each other: each has its own group of children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from raybo.arrays import Array, Bools
from raybo.errors import SpaceError
from raybo.space.any_space import AnySpace
from raybo.space.columns import Column, Condition


@dataclass(frozen=True)
class Vertex:
    """One vertex of the tree.

    Attributes
    ----------
    index : int
        Position in breadth-first order; the root is 0.
    parent : int or None
        Parent vertex; None at the root.
    condition : tuple of (choice column, branch)
        The choices that lead here, outermost first; empty at the root.
    columns : tuple of int
        The vertex's own columns, choices excluded.
    children : tuple of tuple of int
        One group of vertices per choice at this vertex, one vertex per branch.
    """

    index: int
    parent: int | None
    condition: Condition
    columns: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]

    @property
    def choice(self) -> int | None:
        """The choice column that leads here; None at the root."""
        return self.condition[-1][0] if self.condition else None

    @property
    def branch(self) -> int | None:
        """Number of the branch of that choice; None at the root."""
        return self.condition[-1][1] if self.condition else None


def vertices(space: AnySpace) -> tuple[Vertex, ...]:
    """Return the vertices of a space in breadth-first order."""
    own: dict[Condition, list[Column]] = {}
    for column in space.columns:
        own.setdefault(column.condition, []).append(column)
    queue: list[tuple[Condition, int | None]] = [((), None)]  # grows while it is walked
    tree: list[Vertex] = []
    for index, (condition, parent) in enumerate(queue):
        columns = own.get(condition, [])
        children = []
        for choice in (column for column in columns if column.kind == "choice"):
            branches = range(choice.parameter.cardinality or 0)
            children.append(tuple(len(queue) + k for k in branches))
            queue += [((*condition, (choice.index, k)), index) for k in branches]
        plain = tuple(column.index for column in columns if column.kind != "choice")
        tree.append(Vertex(index, parent, condition, plain, tuple(children)))
    return tuple(tree)


def expanded(tree: Sequence[Vertex], limit: int = 4096) -> tuple[Vertex, ...]:
    """Return the tree in which independent choices follow each other.

    Every leaf of it decides all choices: below each branch of the first of several choices, the
    next choice is repeated. Vertices multiply, and a column may belong to several vertices, of
    which one is active at a time. A tree with one choice per vertex is returned unchanged.

    Raises
    ------
    SpaceError
        When there would be more than `limit` vertices.
    """
    Groups = tuple[tuple[int, ...], ...]
    queue: list[tuple[int, Condition, int | None, Groups]] = [(0, (), None, ())]
    result: list[Vertex] = []
    for index, (source, condition, parent, waiting) in enumerate(queue):
        groups = (*tree[source].children, *waiting)
        children: Groups = ()
        if groups:
            first, rest = groups[0], groups[1:]
            children = (tuple(range(len(queue), len(queue) + len(first))),)
            queue += [(c, (*condition, tree[c].condition[-1]), index, rest) for c in first]
        if len(queue) > limit:
            raise SpaceError(
                f"expanding the independent choices gives more than {limit} vertices; "
                "leave them independent (expand=False)"
            )
        result.append(Vertex(index, parent, condition, tree[source].columns, children))
    return tuple(result)


def paths(tree: Sequence[Vertex], start: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the sets of vertices that can be active together, each in breadth-first order.

    With one choice per vertex these are the root-to-leaf paths; independent choices multiply.
    """
    groups = [
        [path for child in group for path in paths(tree, child)] for group in tree[start].children
    ]
    for parts in product(*groups):
        yield tuple(sorted((start, *(index for part in parts for index in part))))


def active_vertices(space: AnySpace, U: Array) -> Bools:
    """Return which vertices are active in which row of U (n, d): shape (n, vertices)."""
    U = space.snap(U)
    tree = vertices(space)
    chosen = {c.index: c.indices(U[:, c.index]) for c in space.columns if c.kind == "choice"}
    active = np.ones((len(U), len(tree)), dtype=np.bool_)
    for vertex in tree:
        for choice, branch in vertex.condition:
            active[:, vertex.index] &= chosen[choice] == branch
    return active
