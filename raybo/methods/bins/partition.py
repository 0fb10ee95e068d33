"""A partition of all coordinates into bins: the coordinates of a bin share one value.

The coordinates stand in a random order, which is cut into bins, and each has a random sign. A
point is a step function over that order, times the signs. When a bin is split, every point before
has the same value in both halves: the points, their losses and the model of them stay as they are.
Places and signs are pure functions of a seed and a coordinate's number, and are never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array, Bools, Indices
from raybo.methods.base import Data, Memo, Proposal
from raybo.methods.feasibility import MEMO as FEASIBILITY
from raybo.space.allowed import Whole, sample
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.design import allowed_element, centre, sobol, sobol_point
from raybo.space.vector import Binned, permuted, random_signs

MEMO = "bins"  # entry of a memo: where the bins of a point end, and its value in each


@dataclass(frozen=True)
class Partition:
    """Bins of the coordinates of a space, in the random order that a seed draws.

    Points are rows of the unit cube with a column per bin; 1/2 is the middle of every coordinate.
    """

    space: AnySpace
    seed: int
    ends: tuple[int, ...]  # where each bin ends in the order; the last is the dimension

    @classmethod
    def of_lane(cls, space: AnySpace, d: int, study_seed: int, lane: int) -> Partition:
        """Return the d bins with which a lane of a study begins."""
        state = np.random.SeedSequence([study_seed, lane]).generate_state(1, np.uint64)
        ends = tuple(space.dim * (i + 1) // d for i in range(d))
        return cls(space, int(state[0]) >> 1, ends)  # 63 bits, which JSON can hold

    @property
    def d(self) -> int:
        """Number of bins."""
        return len(self.ends)

    @property
    def sizes(self) -> Indices:
        """Number of coordinates (d,) in each bin."""
        return np.diff(self.ends, prepend=0)

    def split(self, bins: Iterable[int]) -> Partition:
        """Return the partition with each of the `bins` halved that has two coordinates or more."""
        starts = (0, *self.ends)
        middles = {(starts[i] + self.ends[i]) // 2 for i in bins if self.sizes[i] > 1}
        return replace(self, ends=tuple(sorted(middles.union(self.ends))))

    def joined(self, memos: Iterable[Memo]) -> Partition:
        """Return the partition with the bins split wherever those of a noted point end."""
        noted = (memo[MEMO]["ends"] for memo in memos if _holds(memo))
        return replace(self, ends=tuple(sorted(set(self.ends).union(*noted))))

    def data(self, data: Data) -> Data:
        """Return the data of points with bins, as points of these, and fits as fits of these."""
        own = data.only(_holds, self._points)
        return replace(
            own,
            memos=self._refined(own.memos),
            failed_memos=self._refined(own.failed_memos),
            pending_memos=self._refined(own.pending_memos),
        )

    def images(self, U: Array) -> Array:
        """Return the rows (n, D) of the unit cube that the rows of U (n, d) map to, snapped."""
        bins, signs = self._of_coordinates
        return self.space.snap((signs * (2.0 * U - 1.0)[:, bins] + 1.0) / 2.0)

    @cached_property
    def _of_coordinates(self) -> tuple[Indices, Array]:
        """The bin and the sign of each coordinate."""
        rows = np.arange(self.space.dim)
        places = permuted(self.seed, rows, self.space.dim)
        return np.searchsorted(self.ends, places, side="right"), random_signs(self.seed, rows)

    def allowed(self, U: Array) -> Bools:
        """Return which points U (n, d) have images that are allowed."""
        return self.space.allowed(self.images(U))

    def design(self, number: int, lanes: int) -> Array:
        """Return the point (d,) of trial `number` of a design: the middle, then a Sobol sequence.

        Where only some points of the space are allowed, only elements with such images count.
        """
        box, index, element = Box(self.d), number // lanes, None
        middle = centre(box)
        if number == 0 and (not self.space.constrained or self.allowed(middle[None])[0]):
            return middle
        if self.space.constrained:
            element = allowed_element(
                lambda start, n: sobol(box, n, self.seed, start), self.allowed, index
            )
        return sobol_point(box, index, self.seed) if element is None else element

    def region(self, data: Data, rng: np.random.Generator) -> Region:
        """Return the cube of the bins, with starts spread over it and near the best of `data`."""
        n = data.effort.n_screened
        near = around(data.best_rows(), n, rng)
        if self.space.constrained:
            over = sample(Whole(self.d, self.allowed), n, rng, data.X)
        else:
            over = spread(self.d, n, rng)
        starts = np.concatenate([over, near])
        return Region(np.zeros(self.d), np.ones(self.d), starts, walled=self.space.constrained)

    def proposal(self, u: Array, memo: Mapping[str, Any]) -> Proposal:
        """Propose the image of u (d,)."""
        z = 2.0 * u - 1.0
        noted = {MEMO: {"ends": list(self.ends), "values": z.tolist()}, **memo}
        if isinstance(self.space, Box):
            config = {"x": self.space.vector(Binned(self.seed, self.ends, tuple(z)))}
            return Proposal(config=config, memo=noted)
        return Proposal(x=self.images(u[None])[0], memo=noted)

    def _points(self, memos: Sequence[Memo]) -> Array:
        rows = [np.array(memo[MEMO]["values"])[self._parents(memo)] for memo in memos]
        return (np.array(rows).reshape(-1, self.d) + 1.0) / 2.0

    def _parents(self, memo: Memo) -> Indices:
        """Number (d,) of the bin of a noted point that holds each bin."""
        return np.searchsorted(memo[MEMO]["ends"], self.ends, side="left")

    def _refined(self, memos: Sequence[Memo]) -> tuple[Memo, ...]:
        return tuple(self._refined_fit(memo) for memo in memos)

    def _refined_fit(self, memo: Memo) -> Memo:
        """The memo with its hyperparameters as those of these bins.

        A bin that is now m bins has sqrt(m) times its length-scale in each of them: distances
        between the points before are the same, and so is their model.
        """
        thetas = memo.get(FEASIBILITY, {}).get("theta", {})
        if "theta" not in memo and not thetas:
            return memo
        parents = self._parents(memo)
        longer = np.sqrt(np.bincount(parents))[parents]

        def refined(theta: Mapping[str, Any]) -> dict[str, Any]:
            return {
                **theta,
                "lengthscale": (np.array(theta["lengthscale"])[parents] * longer).tolist(),
            }

        found = dict(memo)
        if "theta" in memo:
            found["theta"] = refined(memo["theta"])
        if thetas:
            each = {name: refined(theta) for name, theta in thetas.items()}
            found[FEASIBILITY] = {**memo[FEASIBILITY], "theta": each}
        return found


def _holds(memo: Memo) -> bool:
    """Whether a memo is of a point with bins that was evaluated as proposed."""
    return MEMO in memo and not memo.get("replaced", False)
