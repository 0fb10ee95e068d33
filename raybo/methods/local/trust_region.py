"""A trust region: the part of the cube around the best point where the next one is searched.

Eriksson, Pearce, Gardner, Turner, Poloczek (2019), "Scalable global optimization via local
Bayesian optimization", section 2. A region grows after successes and shrinks after failures, at
rates in balance where one proposal in five is a success (the one-fifth rule, Rechenberg 1973). One
that has shrunk too far starts again at its first length. The model keeps all results, so it then
looks elsewhere by itself, and needs no new design.

The length is noted with every point proposed in the region. It follows from these notes and the
losses, in the order of the trials, so points of other methods move the centre and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.starts import inside
from raybo.arrays import Array
from raybo.methods.base import Data

LENGTH = "length"  # entry of the memo of a point proposed in the region
LONGEST, SHORTEST = 1.0, 0.5**7  # sides: the cube's, and the shortest of TuRBO's code
SUCCESSES = 3  # until the length doubles, as in TuRBO
FAILURES = 4 * SUCCESSES  # until it halves: the one-fifth rule


def length_of(data: Data) -> float:
    """Side of the region, by what came of the points proposed in it; failed trials count last."""
    told = data.with_failures_as_worst()
    length, best = LONGEST, np.inf
    for memo, loss in zip(told.memos, told.loss, strict=True):
        if LENGTH in memo:
            length *= 2.0 ** (1.0 / SUCCESSES if loss < best else -1.0 / FAILURES)
            length = LONGEST if length < SHORTEST else min(length, LONGEST)
        best = min(best, float(loss))
    return length


def confine(
    region: Region,
    centre: Array,
    length: float,
    unordered: Sequence[int],
    rng: np.random.Generator,
) -> Region:
    """The part of `region` around the row `centre` (d,), with sides of `length`.

    Of the `unordered` columns, that share may change.
    """
    lower, upper = np.clip([centre - length / 2, centre + length / 2], region.lower, region.upper)
    if region.listed:
        ordered = [i for i in range(region.dim) if i not in unordered]
        rows = region.starts[:, ordered]
        near = ((lower[ordered] <= rows) & (rows <= upper[ordered])).all(axis=1)
        return replace(region, starts=region.starts[near]) if near.any() else region
    starts = inside(centre, lower, upper, len(region.starts), rng)
    changes = rng.random(region.dim) < length
    grids = {}
    for i, grid in region.grids.items():
        near = changes[i] if i in unordered else (lower[i] <= grid) & (grid <= upper[i])
        grids[i] = grid[near | (grid == nearest(grid, centre[i]))]
        starts[:, i] = nearest(grids[i], starts[:, i])
    return replace(region, lower=lower, upper=upper, starts=region.snap(starts), grids=grids)


def nearest(grid: Array, x: Array) -> Array:
    """Values of the grid nearest to those of x (n,) or ()."""
    return np.asarray(grid[np.abs(grid - np.asarray(x)[..., None]).argmin(-1)])
