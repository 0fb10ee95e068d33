"""Many points from one model: each where the acquisition is highest given those before it.

Points that are proposed one after another, with no result between them, differ only in the pending
points that they are given. So one search serves all of them:

1. The starts are chosen in turn from one set of rows. A point at its posterior mean takes
   k(z, x) k(x, z') / (k(x, x) + noise) from the posterior covariances k, and no other solve is
   needed.
2. The starts are appended to the Cholesky factor of the model. It is triangular: its first n + j
   rows are the factor of what point j is given. All points climb together, each on its own
   acquisition, and solves with one matrix on the right cost a fifth of as many with one vector.

A point is given the starts of the points before it, not where they have climbed to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from raybo.acquisition.closed_form import SCORES, ClosedForm
from raybo.acquisition.functions import ACQUISITIONS
from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.lbfgsb import ByRow, Lbfgsb
from raybo.arrays import Array, Indices
from raybo.lazy import torch
from raybo.methods.base import Data
from raybo.methods.feasibility import Feasibility, Sum
from raybo.methods.model import incumbent
from raybo.methods.search import acquisition_of, level_of, named, untried
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP, LEAST_VARIANCE, NOISE

# Sets of starts that the points of one search share. Hartmann6, 64 in flight, results and points
# 16 at a time, 300 evaluations, least effort, ten seeds: mean log10 regret -2.9 with four sets,
# -3.2 with eight, and -3.2 where each point has a search of its own.
MOST_REGIONS = 8


def best_in_turn(
    gp: GP,
    name: str,
    data: Data,
    success: Feasibility,
    space: AnySpace,
    region_of: Callable[[np.random.Generator], Region],
    rngs: Sequence[np.random.Generator],
) -> Array:
    """Points (k, d), one for each generator or fewer where no more are left.

    Parameters
    ----------
    gp
        The model with its pending rows.
    name
        Of the acquisition.
    data, success, space
        What the model is of, where trials succeed, and what can be evaluated.
    region_of
        Where to search, with its starts; those of several generators are put together.
    """
    regions = [region_of(rng) for rng in rngs[:MOST_REGIONS]]
    region = replace(regions[0], starts=np.concatenate([r.starts for r in regions]))
    name = named(name, success)
    level = float(level_of(gp, name, incumbent(gp, data), len(data.loss)))
    rest = untried(Sum(success.parts), space, data)
    falls = name != "ucb" and not data.excess.size  # pending points count as incumbents
    chosen, found, levels = choose(gp, name, level, rest, region, len(rngs), falls)
    X = region.starts[chosen]
    f = each_given_those_before(gp, name, levels, rest, X, len(data.loss))
    search = Lbfgsb(max_evaluations=data.effort.max_evaluations)
    return search.search_each(f, region, X, found, rngs[0])


def choose(
    gp: GP, name: str, level: float, rest: Acquisition, region: Region, k: int, falls: bool
) -> tuple[Indices, Array, Array]:
    """Which starts are best in turn, at most k, their values, and the level of each.

    The level falls to the means of the points before where it `falls`.
    """
    others = values(rest, region.starts, region.device)
    with torch.no_grad():
        Z = torch.as_tensor(region.starts, device=region.device)
        K = gp.kernel(gp.X, Z, gp.theta)
        half = torch.linalg.solve_triangular(gp.chol, K, upper=False)
        left = (gp.kernel(Z, Z, gp.theta) - half.mT @ half).cpu().numpy()
        mean = (K.mT @ gp.alpha + gp.mean).cpu().numpy()
    noise, variance = float(gp.theta[NOISE]), left.diagonal().copy()
    taken = np.empty((0, len(mean)))  # rows of the factor of what the points take from `left`
    chosen: list[int] = []
    found, levels = np.empty(k), np.empty(k)
    for i in range(min(k, len(mean))):
        gain = SCORES[name](mean, np.maximum(variance, LEAST_VARIANCE), level).value + others
        best = int(np.argmax(gain))
        if chosen and gain[best] == -np.inf:
            break
        chosen.append(best)
        found[i], levels[i] = gain[best], level
        row = left[best] - taken[:, best] @ taken
        row /= math.sqrt(max(row[best], LEAST_VARIANCE) + noise)
        taken = np.vstack([taken, row])
        variance -= row**2
        others[(region.starts == region.starts[best]).all(axis=1)] = -np.inf
        level = min(level, mean[best]) if falls else level
    return np.array(chosen), found[: len(chosen)], levels[: len(chosen)]


def each_given_those_before(
    gp: GP, name: str, levels: Array, rest: Acquisition, X: Array, n_told: int
) -> ByRow:
    """The acquisitions of points, the j-th given the first j rows of X (k, d) as pending ones."""
    n = len(gp.X)
    extended = gp.condition_on_mean(torch.as_tensor(X, device=gp.X.device))
    f = acquisition_of(extended, name, torch.as_tensor(levels[0]), n_told)

    def of(rows: Indices) -> Acquisition:
        if isinstance(f, ClosedForm):
            return Sum((f.giving_first(n + rows, levels[rows]), rest))
        plain, level, seen = ACQUISITIONS[name], *map(torch.as_tensor, (levels[rows], n + rows))
        return Sum((lambda Z: plain(extended.posterior(Z, seen=seen), level.to(Z.device)), rest))

    return of
