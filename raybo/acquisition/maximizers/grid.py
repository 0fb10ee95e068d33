"""Coordinate search on the discrete columns of a region."""

from __future__ import annotations

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.arrays import Array

_MOVES = 24  # values of a column tried in a round; a longer grid is sampled, to save time
_ROUNDS = 20  # changes of a row at most: time against optima far from it


def climb_grid(
    f: Acquisition, region: Region, X: Array, best: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Climb from every row of X, one discrete column at a time, until no single change helps.

    Changing a choice changes which columns matter, so each neighbour is snapped before it is
    looked at. All neighbours of all rows go into one evaluation.
    """
    X, best = X.copy(), best.copy()
    climbing = np.ones(len(X), dtype=bool)
    for _ in range(_ROUNDS):
        rows = np.flatnonzero(climbing)
        if not len(rows):
            break
        moves = [_neighbours(region, X[row], rng) for row in rows]
        found = np.split(
            values(f, np.concatenate(moves), region.device),
            np.cumsum([len(m) for m in moves])[:-1],
        )
        for row, neighbours, gain in zip(rows, moves, found, strict=True):
            top = int(np.argmax(gain))
            climbing[row] = gain[top] > best[row]
            if climbing[row]:
                X[row], best[row] = neighbours[top], gain[top]
    return X, best


def _neighbours(region: Region, x: Array, rng: np.random.Generator) -> Array:
    rows = []
    for column, grid in region.grids.items():
        here = int(np.argmin(np.abs(grid - x[column])))
        if len(grid) - 1 <= _MOVES:
            others = np.delete(np.arange(len(grid)), here)
        else:
            near = np.array([here - 2, here - 1, here + 1, here + 2])
            anywhere = rng.integers(len(grid), size=_MOVES - len(near))
            others = np.unique(np.concatenate([near, anywhere]))
            others = others[(others >= 0) & (others < len(grid)) & (others != here)]
        moved = np.repeat(x[None], len(others), axis=0)
        moved[:, column] = grid[others]
        rows.append(moved)
    return region.snap(np.concatenate([*rows, x[None]]))
