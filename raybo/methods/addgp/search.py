"""Searches of every group of columns by itself, by the posterior of its term of the sum."""

from __future__ import annotations

import numpy as np

from raybo.acquisition.functions import exploration, ucb
from raybo.acquisition.maximizers.base import Acquisition, Region
from raybo.acquisition.maximizers.direct import Direct
from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.lazy import Tensor, torch
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive, Groups

DIRECT_EVALUATIONS = 1000  # of a proposal, divided among its groups; section 5.2


def groups_of(gp: GP) -> Groups:
    """Groups of the columns of an additive process."""
    if not isinstance(gp.kernel, Additive):
        raise SurrogateError(f"a search by group needs an Additive kernel, not {gp.kernel}")
    return gp.kernel.groups


def maximize_by_group(
    gp: GP, beta: float, box: tuple[Array, Array], rng: np.random.Generator
) -> Array:
    """Point (D,) of a box each of whose groups has the highest bound that DIRECT finds (eq. 5).

    Li, Kandasamy, Poczos, Schneider (2016), section 5: one budget is divided among the groups.
    """
    groups = groups_of(gp)
    search = Direct(max(1, DIRECT_EVALUATIONS // len(groups)))
    lower, upper = box
    x = (lower + upper) / 2
    for part, group in enumerate(groups):
        columns = list(group)
        region = Region(lower[columns], upper[columns], x[None, columns])
        x[columns] = search(_bound(gp, beta, part, columns), region, rng)
    return x


def _bound(gp: GP, beta: float, part: int, columns: list[int]) -> Acquisition:
    """Upper confidence bound of one group at points (m, c) of its columns (eq. 4)."""

    def f(Z: Tensor) -> Tensor:
        rows = Z.new_zeros(len(Z), gp.X.shape[1])
        rows[:, columns] = Z
        return ucb(gp.posterior(rows, part), beta)

    return f


def best_of_each_group(gp: GP, rows: Array, beta: float) -> Array:
    """Row (D,) each of whose groups is that of the row (n, D) where its bound is highest (eq. 4).

    The sum of the bounds is highest where that of every group is, so no row has a higher one.
    """
    points, best = torch.as_tensor(rows), np.array(rows[0])
    for part, group in enumerate(groups_of(gp)):
        columns, bounds = list(group), ucb(gp.posterior(points, part), beta)
        best[columns] = rows[int(bounds.argmax()), columns]
    return best


def exploration_of(gp: GP, t: int) -> float:
    """beta_t = 0.2 d ln(2t) for groups of d columns."""
    return exploration(max(map(len, groups_of(gp))), t)
