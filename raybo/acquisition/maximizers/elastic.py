"""Elastic search: cross the flat ground of an acquisition on models of longer length-scales.

Rana, Li, Gupta, Nguyen, Venkatesh (2017), "High dimensional Bayesian optimization with elastic
Gaussian process", Algorithm 2. At the length-scale of the model an acquisition in many dimensions
is a few peaks in a plain without slope. With longer length-scales the same data slope everywhere
(Lemma 1), and its peaks move little from one length-scale to the next (Lemma 2): a start that
cannot move goes up stairs of length-scales to the first one where it can, and comes back down, the
peak on each stair being the start on the next.

Paper         Code                   Meaning
l_tau         family(1) = f          the model's own length-scales: where the answer counts
l_max         top                    the longest, as a multiple of the model's
delta l       ratio                  step: geometric stairs, each `ratio` times the last
delta l_min   halvings               how often the step down is halved before a start gives up
x_init, x*    X                      a row per start
|| . || = 0   MOVEMENT, SLOPE        when a local search counts as not having moved

All starts climb together; a stair costs one Cholesky factor, made when the first start needs it.

Departures. Steps are even in log l, not in l. The length-scale is restored before a halved step
(as printed it falls twice), the step grows again where it meets a whole stair, and ends at l_tau
(as printed, one step below). A search that stays on a peak has arrived and halves nothing: only
one on flat ground is stuck, which the slope beside it tells. A start that stays stuck is dropped,
at once if it stood on a plain before the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.arrays import Array, Bools, Indices
from raybo.lazy import torch
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import lengthscales

Family = Callable[[float], Acquisition]  # multiple of the length-scales -> acquisition

MOVEMENT = 1e-4  # of the box's diagonal: a local search that ends nearer has not moved
SLOPE = 1e-6  # of |f|: where every partial derivative over the unit cube is below, it is flat
STAIR_EVALUATIONS = 15  # on the way a peak need not be found to the last digit
_BESIDE = 1e-3  # of the box's width: where slopes are taken, as a peak itself has none
_MOST_STEPS = 300  # visits to stairs on the way down, however often steps are halved


@dataclass(frozen=True)
class Elastic:
    """Local searches from a few starts, each led there by models of longer length-scales.

    Attributes
    ----------
    family : callable
        The acquisition of the same data under length-scales multiplied by a number of at least 1.
    top : float
        Largest multiple; 1 leaves a plain multi-start search.
    n_starts, n_screened : int
        Number of starts, and how many of them are the region's best; the others are drawn from
        it, whatever their value.
    max_evaluations : int
        Bound on the batched evaluations of each local search at the model's own length-scales;
        those on the way there stop at `STAIR_EVALUATIONS`.
    """

    family: Family
    top: float
    n_starts: int = 6
    n_screened: int = 3
    max_evaluations: int = 40
    ratio: float = 1.5
    halvings: int = 5

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        """Best point found (d,), the region's starts included."""
        found = values(f, region.starts, region.device)
        stairs = _Stairs(f, self.family, self.top, self.ratio, self.halvings)
        X = region.starts[self._choose(found, rng)]
        climbers = _Climbers(stairs, region, X, self.max_evaluations, rng)
        climbers.rise()
        climbers.descend()
        points = np.concatenate([region.starts[[np.argmax(found)]], climbers.X])
        return np.asarray(points[np.argmax(values(f, points, region.device))])

    def _choose(self, found: Array, rng: np.random.Generator) -> Indices:
        order = np.argsort(-found, kind="stable")
        n_screened = min(self.n_screened, self.n_starts)
        others = rng.permutation(order[n_screened:])[: self.n_starts - n_screened]
        return np.concatenate([order[:n_screened], others])


class _Stairs:
    """Acquisitions by height: 0 is the model's own, a whole stair is `stair` heights."""

    def __init__(
        self, f: Acquisition, family: Family, top: float, ratio: float, halvings: int
    ) -> None:
        self.stair = 2**halvings
        n_stairs = math.ceil(math.log(top) / math.log(ratio)) if top > 1.0 else 0
        self.top = n_stairs * self.stair
        self.unit = math.log(top) / self.top if n_stairs else 0.0
        self.family = family
        self.made = {0: f}

    def at(self, height: int) -> Acquisition:
        """The acquisition at a height, made once."""
        if height not in self.made:
            self.made[height] = self.family(math.exp(height * self.unit))
        return self.made[height]


class _Climbers:
    """All starts, each at its own height; those bound for the same one search together."""

    def __init__(
        self,
        stairs: _Stairs,
        region: Region,
        X: Array,
        max_evaluations: int,
        rng: np.random.Generator,
    ) -> None:
        self.stairs, self.region, self.rng = stairs, region, rng
        self.last = Lbfgsb(max_evaluations=max_evaluations, flat=SLOPE)
        self.between = Lbfgsb(max_evaluations=STAIR_EVALUATIONS, rounds=1, flat=SLOPE)
        self.X = X.copy()
        self.height = np.zeros(len(X), dtype=np.intp)
        self.width = region.upper - region.lower

    def rise(self) -> None:
        """Algorithm 2, step 1: each start to the first stair where a local search moves it."""
        rows = np.arange(len(self.X))
        for height in range(0, self.stairs.top + 1, self.stairs.stair):  # line 2
            new, moved = self._search(height, rows)  # line 3
            self.X[rows], self.height[rows] = new, height  # lines 4 to 7
            rows = rows[~moved]
            if not len(rows):
                break

    def descend(self) -> None:
        """Algorithm 2, step 2: down to height 0, each peak the start of the next search."""
        step = np.full(len(self.X), self.stairs.stair)
        for _ in range(_MOST_STEPS):
            aim = np.where(step > 0, np.maximum(self.height - step, 0), -1)  # line 12
            aim[self.height == 0] = -1
            height = int(aim.max(initial=-1))
            if height < 0:  # line 11
                break
            rows = np.flatnonzero(aim == height)
            new, moved = self._search(height, rows)  # line 13
            stuck = ~moved
            stuck[stuck] = self._is_flat(height, rows[stuck])  # line 14
            step[rows[stuck]] //= 2  # line 15
            step[self._on_a_plain(rows[stuck])] = 0
            on = rows[~stuck]
            self.X[on], self.height[on] = new[~stuck], height  # line 17
            aligned = height & -height or self.stairs.stair  # the largest step that meets a stair
            step[on] = min(aligned, self.stairs.stair)

    def _search(self, height: int, rows: Indices) -> tuple[Array, Bools]:
        """Where local searches at a height end, and which of them moved."""
        f, start = self.stairs.at(height), self.X[rows]
        before = values(f, start, self.region.device)
        local = self.between if height else self.last
        new, _ = local.search(f, self.region, start, before, self.rng)
        distance = np.linalg.norm(new - start, axis=1)
        return new, distance > MOVEMENT * np.linalg.norm(self.width)

    def _on_a_plain(self, rows: Indices) -> Indices:
        """Those of the rows with no slope at their own height either: no step can be too long."""
        heights = np.unique(self.height[rows])
        groups = [rows[self.height[rows] == height] for height in heights]
        flat = [self._is_flat(int(h), group) for h, group in zip(heights, groups, strict=True)]
        kept = [group[f] for group, f in zip(groups, flat, strict=True)]
        return np.concatenate([rows[:0], *kept])

    def _is_flat(self, height: int, rows: Indices) -> Bools:
        """Whether there is no slope right beside the points, as there is beside a peak."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        signs = self.rng.choice([-1.0, 1.0], size=(len(rows), self.region.dim))
        beside = self.X[rows] + _BESIDE * self.width * signs
        inside = np.clip(beside, self.region.lower, self.region.upper)
        Z = torch.as_tensor(inside, device=self.region.device).requires_grad_()
        value = self.stairs.at(height)(Z)
        (slope,) = torch.autograd.grad(value.sum(), Z)
        return np.asarray((slope.abs().amax(1) <= SLOPE * value.abs()).detach().cpu().numpy())


def scale_lengthscales(gp: GP, multiple: float) -> GP:
    """The process with every length-scale multiplied, on the same rows."""
    return gp.with_theta({k: v * multiple for k, v in lengthscales(gp.theta).items()})


def largest_multiple(gp: GP) -> float:
    """Multiple at which the length-scales reach sqrt(d) in the geometric mean (section 4)."""
    lengths = [v.reshape(-1) for v in lengthscales(gp.theta).values()]
    if not lengths:
        return 1.0
    mean = float(torch.cat(lengths).log().mean().exp())
    return max(1.0, math.sqrt(gp.X.shape[1]) / mean)
