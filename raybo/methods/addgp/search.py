"""The search of Add-GP-UCB: every group of columns by itself, all groups in one batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from raybo.acquisition.functions import ucb
from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.parts import Parts, maximize_parts
from raybo.acquisition.maximizers.timed import Timed
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array
from raybo.methods.addgp.groups import best_rows
from raybo.methods.base import Data
from raybo.methods.model import grid_of, search_region, unordered_columns, untried
from raybo.space.any_space import AnySpace
from raybo.space.nodes import Column
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import GroupPosteriors, Groups

PAPER = 0.2  # c of beta_t in the authors' code (Kandasamy et al. 2015)
CAUTIOUS = 0.05  # of rpp-50 after 150 evaluations: regret 32 in place of 53, one seed
DIRECT_EVALUATIONS = 1000  # of a proposal, divided among its groups; section 5.2
N_SPREAD = 64  # starts all over a group's box
N_NEAR = 32  # and near the best points so far
N_AROUND = 64  # starts of the climbs of the whole


def exploration(groups: Groups, t: int, paper: bool) -> float:
    """Weight beta_t = c d ln(2t) of the variance after t evaluations; c is CAUTIOUS or PAPER."""
    return (PAPER if paper else CAUTIOUS) * max(map(len, groups)) * math.log(2.0 * t)


def refine(
    f: Acquisition,
    x: Array,
    space: AnySpace,
    data: Data,
    rng: Generator,
    seconds: float | None = None,
) -> Array:
    """Best point (D,) found by climbs of f in the cube, from x and from the best rows so far.

    With `seconds`, climbs from other points near the latter follow for so long.
    """
    best = best_rows(data)

    def starts() -> Array:
        near = around(best, N_AROUND, rng, unordered_columns(space))
        return space.snap(np.concatenate([x[None], best, near]))

    region = replace(search_region(space, data, rng, "cpu"), starts=starts())
    climb: Maximizer = Lbfgsb(4 >> data.haste)
    if seconds is not None:
        climb = Timed(climb, starts, seconds)
    return climb(untried(f, space, data), region, rng)


@dataclass(frozen=True)
class GroupSearch:
    """Search for the best point of every group (eq. 5).

    Attributes
    ----------
    posteriors : GroupPosteriors
        Of the groups.
    groups : tuple of tuples of int
        Columns of each.
    beta : float
        Weight of the variance.
    lower, upper : ndarray (D,)
        Box to search.
    grids : dict
        Allowed positions of the discrete columns, where the box is the unit cube.
    snapped : dict
        Columns whose positions must be moved to allowed ones.
    """

    posteriors: GroupPosteriors
    groups: Groups
    beta: float
    lower: Array
    upper: Array
    grids: Mapping[int, Array] = field(default_factory=dict)
    snapped: Mapping[int, Column] = field(default_factory=dict)

    @classmethod
    def in_box(cls, gp: GP, groups: Groups, beta: float, box: tuple[Array, Array]) -> GroupSearch:
        """Search of a box."""
        return cls(GroupPosteriors.of(gp), groups, beta, *box)

    @classmethod
    def in_space(cls, gp: GP, groups: Groups, beta: float, space: AnySpace) -> GroupSearch:
        """Search of the unit cube, discrete columns on their grids."""
        columns = {c.index: c for c in space.columns if c.parameter.grid is not None}
        grids = {i: g for i in columns if (g := grid_of(space, i)) is not None}
        return cls(
            GroupPosteriors.of(gp),
            groups,
            beta,
            np.zeros(space.dim),
            np.ones(space.dim),
            grids,
            columns,
        )

    def acquisition(self, Z: Tensor) -> Tensor:
        """Upper confidence bounds (g, s) at s points of each group, Z (g, s, c) (eq. 4)."""
        return ucb(self.posteriors(Z), self.beta)

    def climb(self, near: Array, rng: Generator, haste: int = 0) -> Array:
        """Best point (D,) found by a batch of climbs from all over the box and near some rows."""
        index, used = self._layout
        lower, width = (v[index][:, None] for v in (self.lower, self.upper - self.lower))
        places = (near.T[index].swapaxes(1, 2) - lower) / np.where(width > 0, width, 1.0)
        n, c = N_SPREAD >> haste, index.shape[1]
        starts = np.empty((len(index), n + N_NEAR, c))
        starts[:, :n] = spread(c, n, rng)
        starts[:, n:] = [around(np.clip(rows, 0.0, 1.0), N_NEAR, rng) for rows in places]
        low, scale = torch.as_tensor(lower), torch.as_tensor(width)
        parts = Parts(self._snap(starts), used & self._free, self._grids(), self._snap)
        found, _ = maximize_parts(
            lambda U: self.acquisition(low + scale * U), parts, n_starts=4 >> haste
        )
        return self._join((lower + width * found[:, None])[:, 0])

    def direct(self, rng: Generator) -> Array:
        """Best point (D,) found by DIRECT in each group, of one budget for all (section 5)."""
        index, _ = self._layout
        maximize = Direct(max(1, DIRECT_EVALUATIONS // len(self.groups)))
        found = np.zeros(index.shape)
        for g, group in enumerate(self.groups):
            own = list(group)
            lower, upper = self.lower[own], self.upper[own]
            region = Region(lower, upper, ((lower + upper) / 2)[None])
            found[g, : len(own)] = maximize(self._only(g), region, rng)
        return self._join(found)

    def _only(self, group: int) -> Acquisition:
        """Upper confidence bound of one group, (m, c) -> (m,)."""
        posterior = self.posteriors.only(group)
        padding = posterior.X.new_zeros(posterior.X.shape[2] - len(self.groups[group]))

        def f(Z: Tensor) -> Tensor:
            rows = torch.cat([Z, padding.expand(len(Z), -1)], 1)
            return ucb(posterior(rows[None]), self.beta)[0]

        return f

    def _join(self, parts: Array) -> Array:
        """Point (D,) of the points (g, c) of the groups."""
        index, used = self._layout
        x = np.empty(len(self.lower))
        x[index[used]] = parts[used]
        return x

    def _snap(self, Z: Array) -> Array:
        """Points (g, s, c) with the discrete columns at positions of theirs."""
        index, used = self._layout
        Z = Z.copy()
        for column in self.snapped.values():
            g, c = np.argwhere((index == column.index) & used)[0]
            Z[g, :, c] = column.snap(Z[g, :, c])
        return Z

    def _grids(self) -> dict[int, Array]:
        """Grids by place in the group, as `Parts` wants them."""
        index, used = self._layout
        grids: dict[int, Array] = {}
        longest = max((len(g) for g in self.grids.values()), default=0)
        for column, grid in self.grids.items():
            g, c = np.argwhere((index == column) & used)[0].tolist()
            place = grids.setdefault(c, np.full((len(index), longest), np.nan))
            place[g, : len(grid)] = grid
        return grids

    @cached_property
    def _free(self) -> NDArray[np.bool_]:
        """Places (g, c) searched as continuous."""
        index, _ = self._layout
        return ~np.isin(index, list(self.grids))

    @cached_property
    def _layout(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Column of each place (g, c), as in `Additive.split`, and whether it is one."""
        width = max(map(len, self.groups))
        index = np.zeros((len(self.groups), width), dtype=np.intp)
        used = np.zeros(index.shape, dtype=bool)
        for g, group in enumerate(self.groups):
            index[g, : len(group)], used[g, : len(group)] = group, True
        return index, used
