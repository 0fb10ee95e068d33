"""Points at which the search for the next proposal starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from raybo.arrays import Array, Bools
from raybo.space.design import sobol_rows

_SOBOL_LIMIT = 1024  # columns; beyond it uniform points fill as well and cost less


@lru_cache(maxsize=8)
def _sobol(dim: int, n: int) -> Array:
    points = sobol_rows(dim, 0, n)
    points.setflags(write=False)
    return points


def spread(dim: int, n: int, rng: np.random.Generator) -> Array:
    """Points (n, dim) that fill the cube: a Sobol set under a random shift, n a power of two."""
    if dim > _SOBOL_LIMIT:
        return rng.random((n, dim))
    shifted: Array = (_sobol(dim, n) + rng.random(dim)) % 1.0
    return shifted


def around(
    centres: Array, n: int, rng: np.random.Generator, unordered: Sequence[int] = ()
) -> Array:
    """Points (n, d) near the rows of `centres`, each with a random subset of coordinates moved.

    They move by steps of scales from 0.001 to 0.3 of the cube; the `unordered` ones move anywhere.
    """
    k, d = centres.shape
    points = centres[np.arange(n) % k]
    moves = _subsets(n, d, rng)
    scale = 10.0 ** rng.uniform(-3.0, -0.5, size=(n, 1))
    moved = points + scale * rng.standard_normal((n, d))
    moved = np.abs(moved)  # reflected at 0, then at 1
    moved = np.clip(np.where(moved > 1.0, 2.0 - moved, moved), 0.0, 1.0)
    anywhere = list(unordered)
    moved[:, anywhere] = rng.random((n, len(anywhere)))
    return np.asarray(np.where(moves, moved, points))


def inside(centre: Array, lower: Array, upper: Array, n: int, rng: np.random.Generator) -> Array:
    """Points (n, d) of a box: half fill it, half are its `centre` with some coordinates moved."""
    points = lower + (upper - lower) * spread(len(centre), n, rng)
    moves = _subsets(n, len(centre), rng)
    moves[: n // 2] = True
    return np.asarray(np.where(moves, points, centre))


def _subsets(n: int, d: int, rng: np.random.Generator) -> Bools:
    """Which coordinates move: about min(1, 20/d) of them (Regis & Shoemaker 2013), or one."""
    chance = np.full((n, 1), min(1.0, 20.0 / d))
    chance[::2] = min(1.0, 3.0 / d)  # half of them move few coordinates
    moves = rng.random((n, d)) < chance
    moves[np.arange(n), rng.integers(d, size=n)] = True
    return moves
