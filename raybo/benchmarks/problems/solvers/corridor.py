"""Wildlife corridors: the mixed-integer program that solvers are configured on (REMBO, sec. 4.3).

Buy cells of a grid within a budget, so that they connect all reserves, and get the most of their
utility: the connected subgraph problem with node profits and costs of Conrad, Gomes, van Hoeve,
Sabharwal & Suter (2007), in its single-commodity flow encoding. The paper's instance is not
published; these are drawn from a seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from raybo.arrays import Array
from raybo.benchmarks.problems.base import BenchmarkError

RESERVES = 3
HIGHEST = 10  # costs and utilities are whole numbers from 1 to this
SHARE = 0.4  # of the cost of all cells: the budget. At 0.3 most settings of a solver find nothing.


@dataclass(frozen=True)
class Corridor:
    """An instance: cells are numbered row by row.

    Attributes
    ----------
    side : int
        Cells along an edge of the grid.
    cost, utility : tuple of int
        Of each cell; both are 0 at the reserves.
    reserves : tuple of int
        Cells that must be part of the corridor.
    budget : int
        Most that the corridor may cost.
    """

    side: int
    cost: tuple[int, ...]
    utility: tuple[int, ...]
    reserves: tuple[int, ...]
    budget: int

    def neighbours(self, cell: int) -> list[int]:
        """Return the cells that share an edge with a cell."""
        row, column = divmod(cell, self.side)
        steps = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        inside = [(r, c) for r, c in steps if 0 <= r < self.side and 0 <= c < self.side]
        return [r * self.side + c for r, c in inside]

    @property
    def arcs(self) -> list[tuple[int, int]]:
        """Return the pairs of neighbours, in both directions."""
        return [(v, w) for v in range(self.side**2) for w in self.neighbours(v)]

    def utility_of(self, cells: Iterable[int]) -> int | None:
        """Return the utility of a set of cells; None when it is no corridor.

        The definition is checked, not the program: reserves, budget, connection.
        """
        chosen = set(cells)
        if not chosen.issuperset(self.reserves) or not chosen <= set(range(self.side**2)):
            return None
        if sum(self.cost[v] for v in chosen) > self.budget:
            return None
        reached, edge = {self.reserves[0]}, [self.reserves[0]]
        while edge:
            fresh = (set(self.neighbours(edge.pop())) & chosen) - reached
            reached |= fresh
            edge += fresh
        return sum(self.utility[v] for v in chosen) if reached == chosen else None

    def gap(self, corridors: Iterable[Iterable[int]]) -> float:
        """Return 1 - best utility / optimum over the valid corridors; 1 without any."""
        found = [utility for cells in corridors if (utility := self.utility_of(cells)) is not None]
        return 1.0 - max(found, default=0) / optimum(self)


def draw_corridor(side: int, seed: int = 0) -> Corridor:
    """Return a random instance on a grid of side x side cells."""
    rng = np.random.default_rng([side, seed])
    cost, utility = rng.integers(1, HIGHEST + 1, (2, side**2))
    reserves = rng.choice(side**2, RESERVES, replace=False)
    cost[reserves] = utility[reserves] = 0
    return Corridor(
        side,
        tuple(cost.tolist()),
        tuple(utility.tolist()),
        tuple(reserves.tolist()),
        int(SHARE * cost.sum()),
    )


@dataclass(frozen=True)
class Program:
    """max gain x; below <= matrix x <= above; low <= x <= high; the first `whole` columns integer.

    Columns are: whether a cell is bought, the flow of each arc, and what the source sends.
    """

    gain: Array
    matrix: coo_array
    below: Array
    above: Array
    low: Array
    high: Array
    whole: int


@lru_cache(maxsize=4)
def program(instance: Corridor) -> Program:
    """Return the flow encoding: the first reserve sends a unit to each cell bought."""
    n, arcs, root = instance.side**2, instance.arcs, instance.reserves[0]
    source = n + len(arcs)
    entries: list[tuple[int, int, float]] = []  # row, column, value
    entries += [(0, v, c) for v, c in enumerate(instance.cost) if c]  # the budget
    for number, (v, w) in enumerate(arcs):
        row, flow = 1 + n + number, n + number
        entries += [(1 + v, flow, -1.0), (1 + w, flow, 1.0)]  # what flows in is kept or flows out
        entries += [(row, flow, 1.0), (row, w, -float(n))]  # only cells bought receive
    entries += [(1 + v, v, -1.0) for v in range(n)]
    entries.append((1 + root, source, 1.0))
    last = 1 + n + len(arcs)
    entries += [(last, v, -1.0) for v in range(n)]
    entries.append((last, source, 1.0))
    rows, columns, values = zip(*entries, strict=True)
    below, above = np.zeros(last + 1), np.zeros(last + 1)
    below[0], above[0] = -np.inf, instance.budget
    below[1 + n : last] = -np.inf
    low, high = np.zeros(source + 1), np.full(source + 1, float(n))
    high[:n] = 1.0
    low[list(instance.reserves)] = 1.0
    gain = np.zeros(source + 1)
    gain[:n] = instance.utility
    matrix = coo_array((values, (rows, columns)), shape=(last + 1, source + 1))
    return Program(gain, matrix, below, above, low, high, n)


@lru_cache(maxsize=4)
def optimum(instance: Corridor) -> int:
    """Return the utility of the best corridor, by HiGHS, in about a second for 10 x 10 cells."""
    p = program(instance)
    found = milp(
        -p.gain,
        integrality=(np.arange(len(p.gain)) < p.whole).astype(np.int64),
        bounds=Bounds(p.low, p.high),
        constraints=LinearConstraint(p.matrix, p.below, p.above),
    )
    if not found.success:
        raise BenchmarkError(f"no corridor of {instance.side} x {instance.side}: {found.message}")
    utility = instance.utility_of(np.flatnonzero(found.x[: p.whole] > 0.5).tolist())
    if utility is None:
        raise BenchmarkError("the reference solution is no corridor; report this with the seed")
    return utility


def lp_text(instance: Corridor) -> str:
    """Return the program in lp_solve's format."""
    p = program(instance)
    names = [f"x{i}" for i in range(len(p.gain))]
    rows: list[list[str]] = [[] for _ in p.below]
    for row, column, value in zip(p.matrix.row, p.matrix.col, p.matrix.data, strict=True):
        rows[row].append(f"{value:+g} {names[column]}")
    # lp_solve numbers columns in the order in which it meets them: list all, also those of gain 0.
    gains = [f"{g:+g} {name}" for g, name in zip(p.gain, names, strict=True)]
    lines = [f"max: {' '.join(gains)};"]
    for terms, below, above in zip(rows, p.below, p.above, strict=True):
        lines.append(f"{' '.join(terms)} {'=' if below == above else '<='} {above:g};")
    lines += [f"{names[v]} = 1;" for v in instance.reserves]
    lines += [f"{names[v]} <= 1;" for v in range(p.whole) if v not in instance.reserves]
    return "\n".join([*lines, f"int {','.join(names[: p.whole])};", ""])
