"""Points of the part of the unit cube that a condition allows.

They are drawn from the whole cube, and those that are not allowed left out. Where that takes too
long, a random walk goes on from allowed points that are known: a step that leads out is not taken,
so its points spread evenly over the part that it can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raybo.arrays import Array, Bools
from raybo.errors import SpaceError

DRAWS = 100_000  # points drawn before a space counts as empty
N_KNOWN = 16  # allowed points, where the walks begin
TRIES, TRIES_PER_ROW = 1000, 16  # points drawn for a sample before the walk: time against evenness
STEPS = 24  # of the walk
SHORTEST, LONGEST = -6.0, -0.3  # steps of the walk are of scales 10^-6 to 1/2 of the cube
HALVINGS = 30  # of the way to the edge of what is allowed


class Cube(Protocol):
    """What a space knows of its rows."""

    @property
    def dim(self) -> int:
        """Number of columns."""

    def snap(self, U: Array) -> Array:
        """Return rows moved to the points they decode to."""

    def active(self, U: Array) -> Bools:
        """Return which columns matter in which row."""

    def allowed(self, U: Array) -> Bools:
        """Return which rows decode to configs that are allowed."""


@dataclass(frozen=True)
class Whole:
    """A cube of its own, of the points of which some are allowed."""

    dim: int
    allowed: Callable[[Array], Bools]

    def snap(self, U: Array) -> Array:
        """Return the rows."""
        return U

    def active(self, U: Array) -> Bools:
        """Return that every column matters in every row."""
        return np.ones(U.shape, dtype=np.bool_)


def find(cube: Cube) -> Array:
    """Return some allowed rows (k, d), always the same.

    Raises
    ------
    SpaceError
        When none of many rows is allowed.
    """
    found, drawn = _draw(cube, N_KNOWN, np.random.default_rng(0), DRAWS)
    if not len(found):
        raise SpaceError(
            f"0 of {drawn:,} points drawn are allowed: where is never true, or too rarely for its "
            "points to be found; widen it, narrow the ranges of the parameters to where it is "
            "true, or leave out a parameter that follows from the others"
        )
    return found


def sample(cube: Cube, n: int, rng: np.random.Generator, known: Array) -> Array:
    """Return allowed rows (n, d), spread evenly; `known` are allowed rows (k, d)."""
    rows, _ = _draw(cube, n, rng, TRIES + TRIES_PER_ROW * n)
    missing = n - len(rows)
    if not missing:
        return rows
    known = np.concatenate([rows, known])
    walked = known[rng.integers(len(known), size=missing)]
    for _ in range(STEPS):
        moved = cube.snap(_step(np.where(cube.active(walked), walked, 0.5), rng))
        walked = np.where(cube.allowed(moved)[:, None], moved, walked)
    return np.concatenate([rows, walked])


def nearest(cube: Cube, row: Array, known: Array) -> Array:
    """Return an allowed row (d,) near a row: on the line to the nearest of some allowed rows."""
    candidates = np.concatenate([known, sample(cube, 64, np.random.default_rng(0), known)])
    inside = candidates[np.square(candidates - row).sum(axis=1).argmin()]
    low, high = 0.0, 1.0  # of the way from inside to the row
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        point = cube.snap(((1.0 - middle) * inside + middle * row)[None])
        low, high = (middle, high) if cube.allowed(point)[0] else (low, middle)
    return np.asarray(cube.snap(((1.0 - low) * inside + low * row)[None])[0])


def _draw(cube: Cube, n: int, rng: np.random.Generator, most: int) -> tuple[Array, int]:
    """At most n allowed rows of at most `most` drawn ones, and how many were drawn."""
    found, count, drawn, size = [np.empty((0, cube.dim))], 0, 0, n
    while count < n and drawn < most:
        size = min(size, most - drawn)
        rows = cube.snap(rng.random((size, cube.dim)))
        found.append(rows[cube.allowed(rows)])
        count += len(found[-1])
        drawn += size
        size *= 2
    return np.concatenate(found)[:n], drawn


def _step(X: Array, rng: np.random.Generator) -> Array:
    """Rows with some columns moved by a random distance, reflected at the sides of the cube."""
    n, d = X.shape
    moves = rng.random((n, d)) < rng.random((n, 1))
    moves[np.arange(n), rng.integers(d, size=n)] = True
    scale = 10.0 ** rng.uniform(SHORTEST, LONGEST, size=(n, 1))
    moved = np.abs(X + scale * rng.standard_normal((n, d)))
    moved = np.clip(np.where(moved > 1.0, 2.0 - moved, moved), 0.0, 1.0)
    return np.where(moves, moved, X)
