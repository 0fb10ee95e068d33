"""Draw initial designs: rows of the unit cube to start from, snapped to the space and allowed.

Row i of a design depends on (seed, i) only, so a design can be continued or drawn row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from raybo.arrays import Array, Bools
from raybo.space.any_space import AnySpace

BLOCK = 64
ELEMENTS = 16  # of a sequence looked at for each that is allowed, and for a block more
MAX_DIM = 21201  # scipy.stats.qmc.Sobol has direction numbers for so many columns


def design_size(dim: int) -> int:
    """Points of the initial design: two more than columns, so that a line can be fitted; <= 10."""
    return min(10, dim + 2)


def design_point(space: AnySpace, index: int, seed: int) -> Array:
    """Return point number `index` of an initial design: the middle, then Sobol points.

    Ranges are mostly drawn around what is known to work, and no Sobol point is near the middle of
    many dimensions. On a robot of 102 weights `auto` reached 264 without it (one seed), and
    1,113 with it (median of ten; examples/RESULTS.md). Values without an order have no middle:
    there it is a Sobol point, too.
    """
    if index:
        return sobol_point(space, index, seed)
    middle = np.full(len(space.columns), 0.5)
    unordered = [i for i, column in enumerate(space.columns) if not column.ordered]
    if unordered:
        middle[unordered] = sobol_point(space, 0, seed)[unordered]
    return space.nearest(space.snap(middle[None])[0])


def sobol(space: AnySpace, n: int, seed: int, start: int = 0) -> Array:
    """Return elements start .. start + n of a scrambled Sobol sequence, snapped.

    Where only some points are allowed, the elements are counted that are. If these are too few,
    random points take their place.

    Parameters
    ----------
    space : Space or dense Box
        Space to cover.
    n : int
        Number of rows.
    seed : int
        Seed of the scrambling.
    start : int
        Number of the first element.

    Returns
    -------
    ndarray, shape (n, d)
        Beyond 21,201 columns, where scipy has no Sobol sequence, the rows of `random`.
    """
    if space.constrained:
        rows = [sobol_point(space, i, seed) for i in range(start, start + n)]
        return np.reshape(rows, (n, space.dim))
    return space.snap(_sobol_rows(len(space.columns), n, seed, start))


def sobol_point(space: AnySpace, index: int, seed: int) -> Array:
    """Return element number `index` of the sequence of `sobol`, shape (d,)."""
    if space.constrained:
        dim = space.dim
        row = allowed_element(
            lambda start, n: space.snap(_sobol_rows(dim, n, seed, start)), space.allowed, index
        )
        return random(space, 1, seed, index)[0] if row is None else row
    block, i = divmod(index, BLOCK)
    point: Array = space.snap(_sobol_block(len(space.columns), seed, block)[i : i + 1])[0]
    return point


def random(space: AnySpace, n: int, seed: int, start: int = 0) -> Array:
    """Return uniform random rows start .. start + n of a seed, snapped: shape (n, d)."""
    if space.constrained:
        generators = [np.random.default_rng([seed, i]) for i in range(start, start + n)]
        return np.reshape([space.sample(1, rng)[0] for rng in generators], (n, space.dim))
    return space.snap(_random_rows(len(space.columns), n, seed, start))


def centre(space: AnySpace) -> Array:
    """Return the snapped centre of the cube, or an allowed row near it, shape (d,)."""
    return space.nearest(space.snap(np.full((1, len(space.columns)), 0.5))[0])


def sobol_rows(dim: int, start: int, n: int, rng: np.random.Generator | None = None) -> Array:
    """Return points start .. start + n of a Sobol sequence, shape (n, dim).

    They are scrambled if `rng` is given, and then depend on the state of `rng`.
    """
    from scipy.stats.qmc import Sobol  # noqa: PLC0415  (takes a second, and not all need it)

    sequence = Sobol(dim, scramble=rng is not None, rng=rng)
    if start:
        sequence.fast_forward(start)
    # From the start, scipy warns unless the number of points is a power of two.
    rows: Array = sequence.random(1 << max(0, n - 1).bit_length())[:n]
    return rows


def allowed_element(
    rows: Callable[[int, int], Array], allowed: Callable[[Array], Bools], index: int
) -> Array | None:
    """Return element `index` of those that are allowed of a sequence; None if it is not found.

    Parameters
    ----------
    rows
        Elements start .. start + n of the sequence, as a function of these two.
    allowed
        Which of some elements are allowed.
    index
        Number of the element, not counting those that are not allowed.
    """
    start, n, most = 0, BLOCK, ELEMENTS * (index + BLOCK)
    while start < most:
        elements = rows(start, n)
        elements = elements[allowed(elements)]
        if index < len(elements):
            return np.asarray(elements[index])
        index -= len(elements)
        start, n = start + n, start + n
    return None


def _sobol_rows(dim: int, n: int, seed: int, start: int) -> Array:
    if dim > MAX_DIM:
        return _random_rows(dim, n, seed, start)
    return sobol_rows(dim, start, n, np.random.default_rng(seed))


@lru_cache(maxsize=4)
def _sobol_block(dim: int, seed: int, block: int) -> Array:
    # Scrambling takes as long for one row as for many: rows read one by one come from blocks.
    rows = _sobol_rows(dim, BLOCK, seed, block * BLOCK)
    rows.flags.writeable = False
    return rows


def _random_rows(dim: int, n: int, seed: int, start: int) -> Array:
    rows = [np.random.default_rng([seed, i]).random(dim) for i in range(start, start + n)]
    return np.reshape(rows, (n, dim))
