"""A trust region: the part of a box around the best point where the next one is searched.

Eriksson, Pearce, Gardner, Turner, Poloczek (2019), "Scalable global optimization via local
Bayesian optimization", section 2. A region grows after successes and shrinks after failures, at
rates in balance where one proposal in five is a success (the one-fifth rule, Rechenberg 1973). One
that has shrunk too far starts again at its first length, and the model keeps all results: noise
shrinks a region, too. Whether a search has ended is asked in raybo/study/restarts.py.

It goes around any model: `local` always has one, `rembo` and `bins` unless told otherwise, `bo`,
`addgp` and `bock` with `trust_region=True`. The length is noted with every point proposed in the
region. It follows from these notes and the losses, in the order of the trials, so points of other
methods move the centre and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.starts import inside
from raybo.arrays import Array
from raybo.methods.base import Data, Memo
from raybo.methods.search import Bars

LENGTH = "length"  # entry of the memo of a point proposed in the region
LONGEST, SHORTEST = 1.0, 0.5**7  # sides, as shares of the box's; the shortest of TuRBO's code
SUCCESSES = 3  # until the length doubles, as in TuRBO
FAILURES = 4 * SUCCESSES  # until it halves: the one-fifth rule


@dataclass(frozen=True)
class TrustRegion:
    """The part of a box around a row `centre` (d,), with sides of the share `length` of the box's.

    Of the `unordered` columns, that share may change. Points may be `barred`.
    """

    centre: Array
    length: float
    unordered: Sequence[int]
    barred: Bars

    @property
    def memo(self) -> Memo:
        """What to note with every point proposed in the region."""
        return {LENGTH: self.length}

    def confine(self, region: Region, rng: np.random.Generator) -> Region:
        """The part of `region` that is in the trust region, or all if no start is left in it."""
        half = self.length / 2 * (region.upper - region.lower)
        lower, upper = np.clip(
            [self.centre - half, self.centre + half], region.lower, region.upper
        )
        if region.listed:
            ordered = [i for i in range(region.dim) if i not in self.unordered]
            rows = region.starts[:, ordered]
            near = ((lower[ordered] <= rows) & (rows <= upper[ordered])).all(axis=1)
            return self._unless_all_barred(replace(region, starts=region.starts[near]), region)
        starts = inside(self.centre, lower, upper, len(region.starts), rng)
        changes = rng.random(region.dim) < self.length
        grids = {}
        for i, grid in region.grids.items():
            near = changes[i] if i in self.unordered else (lower[i] <= grid) & (grid <= upper[i])
            grids[i] = grid[near | (grid == nearest(grid, self.centre[i]))]
            starts[:, i] = nearest(grids[i], starts[:, i])
        starts = region.snap(starts)
        part = replace(region, lower=lower, upper=upper, starts=starts, grids=grids)
        return self._unless_all_barred(part, region)

    def _unless_all_barred(self, part: Region, whole: Region) -> Region:
        return whole if self.barred(part.starts).all() else part


class Everywhere:
    """No trust region: the whole box is searched, and nothing noted."""

    memo: ClassVar[Memo] = {}

    def confine(self, region: Region, rng: np.random.Generator) -> Region:  # noqa: ARG002
        """`region` itself."""
        return region


def trusted(
    wanted: bool, data: Data, unordered: Sequence[int], barred: Bars
) -> TrustRegion | Everywhere:
    """The trust region around the best told row where one is `wanted`, else everywhere."""
    if not wanted:
        return Everywhere()
    return TrustRegion(data.best_rows(1)[0], length_of(data), unordered, barred)


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


def nearest(grid: Array, x: Array) -> Array:
    """Values of the grid nearest to those of x (n,) or ()."""
    return np.asarray(grid[np.abs(grid - np.asarray(x)[..., None]).argmin(-1)])
