"""Initial designs: rows of the unit cube to start from, snapped to the space.

Row i of a design depends on (seed, i) only, so a design can be continued or drawn row by row.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from raybo.space.any_space import AnySpace
from raybo.space.grids import Array
from raybo.space.sobol import MAX_DIM, sobol_rows

BLOCK = 64


def sobol(space: AnySpace, n: int, seed: int, start: int = 0) -> Array:
    """Elements start .. start + n of a scrambled Sobol sequence, snapped.

    Parameters
    ----------
    space : Space or dense Box
        What to cover.
    n : int
        Number of rows.
    seed : int
        Of the scrambling.
    start : int
        Number of the first element.

    Returns
    -------
    ndarray, shape (n, d)
        Beyond 21,201 columns, where no Sobol sequence is known, the rows of `random`.
    """
    return space.snap(_sobol_rows(len(space.columns), n, seed, start))


def sobol_point(space: AnySpace, index: int, seed: int) -> Array:
    """Element number `index` of the sequence of `sobol`, shape (d,)."""
    block, i = divmod(index, BLOCK)
    row: Array = space.snap(_sobol_block(len(space.columns), seed, block)[i : i + 1])[0]
    return row


def random(space: AnySpace, n: int, seed: int, start: int = 0) -> Array:
    """Uniform random rows start .. start + n of a seed, snapped: shape (n, d)."""
    return space.snap(_random_rows(len(space.columns), n, seed, start))


def centre(space: AnySpace) -> Array:
    """Snapped centre of the cube, shape (d,)."""
    row: Array = space.snap(np.full((1, len(space.columns)), 0.5))[0]
    return row


def _sobol_rows(dim: int, n: int, seed: int, start: int) -> Array:
    if dim > MAX_DIM:
        return _random_rows(dim, n, seed, start)
    return sobol_rows(dim, start, n, np.random.default_rng(seed))


@lru_cache(maxsize=4)
def _sobol_block(dim: int, seed: int, block: int) -> Array:
    # Scrambling takes 0.1 ms per dimension, for one row as for many: read one by one, rows
    # come from blocks.
    rows = _sobol_rows(dim, BLOCK, seed, block * BLOCK)
    rows.flags.writeable = False
    return rows


def _random_rows(dim: int, n: int, seed: int, start: int) -> Array:
    rows = [np.random.default_rng([seed, i]).random(dim) for i in range(start, start + n)]
    return np.reshape(rows, (n, dim))
