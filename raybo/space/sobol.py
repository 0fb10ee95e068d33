"""Sobol sequences: points that fill the unit cube evenly.

The very points of scipy.stats.qmc.Sobol, of its direction numbers (Joe & Kuo 2008) and with its
scrambling (Matousek 1998), without importing scipy.stats: that takes a second, which the first
proposal of a search must not wait for.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

BITS = 30
MAX_DIM = 21201  # for which there are direction numbers


def sobol_rows(dim: int, start: int, n: int, rng: np.random.Generator | None = None) -> Array:
    """Points start .. start + n of a sequence, shape (n, dim); scrambled if there is an `rng`."""
    directions, shift = _directions(dim), np.zeros(dim, dtype=np.int64)
    if rng is not None:
        directions, shift = _scrambled(directions, rng)
    index = np.arange(start, start + n)
    gray = index ^ (index >> 1)
    points = np.broadcast_to(shift, (n, dim)).copy()
    for bit in range(int(gray.max(initial=0)).bit_length()):
        points ^= np.where((gray >> bit & 1)[:, None] == 1, directions[:, bit], 0)
    return points / 2.0**BITS


def _scrambled(directions: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Directions under random lower triangular matrices over GF(2), and a random shift."""
    dim, rng = len(directions), rng.spawn(1)[0]
    shift = rng.integers(2, size=(dim, BITS), dtype=np.uint32) @ 2 ** np.arange(BITS)
    mixing = np.tril(rng.integers(2, size=(dim, BITS, BITS), dtype=np.uint32), -1)
    falling = np.arange(BITS - 1, -1, -1)  # the highest bit comes first
    bits = directions[:, None, :] >> falling[:, None] & 1
    mixed = (mixing.astype(np.float32) @ bits.astype(np.float32)).astype(np.int64) + bits
    return np.einsum("dij,i->dj", mixed & 1, 2**falling), shift


@lru_cache(maxsize=4)
def _directions(dim: int) -> Integers:
    """Direction numbers, shape (dim, BITS), by the recurrence of Bratley & Fox (1988)."""
    import scipy  # noqa: PLC0415  (building a space must not wait for it)

    table = np.load(Path(scipy.__file__).parent / "stats" / "_sobol_direction_numbers.npz")
    polynomials, initial = table["poly"][:dim], table["vinit"][:dim]
    degrees = np.array([int(p).bit_length() - 1 for p in polynomials])
    m = np.ones((dim, BITS), dtype=np.int64)  # dimension 0: all ones
    for degree in range(1, int(degrees.max(initial=0)) + 1):
        rows = degrees == degree
        odd, polynomial = m[rows], polynomials[rows]
        odd[:, :degree] = initial[rows, :degree]
        for j in range(degree, BITS):
            value = odd[:, j - degree].copy()
            for k in range(1, degree + 1):
                value ^= (polynomial >> (degree - k) & 1) * (odd[:, j - k] << k)
            odd[:, j] = value
        m[rows] = odd
    directions: Integers = m << np.arange(BITS - 1, -1, -1)
    directions.flags.writeable = False
    return directions
