"""Rpp in practice: the additive model along learnt directions near the columns.

The assumption is that the function is a sum of functions of groups of directions, each near a
column. Groups and hyperparameters are those of the additive model, as in
raybo/methods/addgp/default.py. What differs from RPP-GP-UCB (Algorithm 3 of Li et al. 2016):

- `likeliest_near_identity` learns all of W at once under a normal prior around I, which keeps it
  near I where the data say nothing: (D, D) entries fit any n < D^2 data. So W needs no alignment,
  and it is mixed with I only where `delta` is given.
- Hyperparameters are not learnt together with W: they would fit the data too closely.
- The log expected improvement is maximised in the cube itself, as in addgp, so the size of the box
  around the projected cube does not matter.

`raybo bench rpp-synthetic` compares it with addgp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, with_gradient
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.addgp.default import AddGp
from raybo.methods.addgp.groups import check_groups
from raybo.methods.addgp.search import best_of_each_group, exploration_of
from raybo.methods.base import Data, Proposal
from raybo.methods.model import incumbent, with_pending
from raybo.methods.options import check_count, require_ordered
from raybo.methods.rpp.projection import (
    DIGITS,
    Projection,
    checked_delta,
    least_mixing,
    likeliest_near_identity,
    unprojected,
)
from raybo.methods.search import acquisition_of, search_region, success_of, untried
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NOISE_HYPER, fit, starting_theta
from raybo.surrogate.outcomes import standardize


@dataclass(frozen=True)
class Rpp:
    """Additive Gaussian process over groups of learnt directions, each near a column."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design
    group_size: int | None = None  # directions of a group
    groups: Any = None  # lists of columns whose directions make a group, instead of learning them
    decomposition: str | None = None  # "learnt", or "random": drawn anew for every proposal
    delta: float | str | None = None  # bound on the growth of the projected box; none unless given

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        require_ordered("rpp", self.space, "projects numbers")
        check_groups(self.space, self.group_size, self.groups, self.decomposition)
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the log expected improvement under the projected model of the data."""
        if data.needs_design(self.n_init or design_size(self.space.dim)):
            return Proposal(x=design_point(self.space, data.number, data.seed))
        with one_thread():
            gp, W, memo = self.projected_model(data)
            success = success_of(self.space, data)
            projected = replace(data, X=data.X @ W, pending=data.pending @ W, cache={})
            gp = with_pending(gp, projected, success.walls @ W)
            f = acquisition_of(gp, "log_ei", incumbent(gp, data), len(data.loss))
            region = search_region(self.space, data, rng)
            beta = exploration_of(gp, len(data.loss))
            z = best_of_each_group(gp, region.starts @ W, beta)
            x = self.space.snap(unprojected(z, W)[None])
            region = replace(region, starts=np.concatenate([x, region.starts]))
            search = Lbfgsb(data.effort.n_starts, data.effort.max_evaluations)
            f = success.weigh(AlongDirections(f, W))
            x = search(untried(f, self.space, data), region, rng)
        return Proposal(x=x, memo=memo | success.memo)

    def projected_model(self, data: Data) -> tuple[GP, Array, dict[str, Any]]:
        """The process of the projected rows, the projection, and what to remember of both."""
        additive = AddGp(self.space, self.n_init, self.group_size, self.groups, self.decomposition)
        gp, memo = additive.model(data)
        projection = Projection.last(data)
        if projection is None or memo:
            dim = self.space.dim
            W = np.eye(dim) if projection is None else projection.W
            spread = 1.0 / math.sqrt(dim)  # the columns of W - I have about the length of I's
            # Effects add up in the losses themselves, not in losses whose bad side is drawn in.
            y = torch.as_tensor(standardize(data.loss))
            start = starting_theta(gp.kernel, NOISE_HYPER)
            of_losses = GP.of(gp.kernel, fit(gp.kernel, gp.X, y, [start]), gp.X, y)
            W = likeliest_near_identity(of_losses, W, spread, data.effort.fit_iterations)
            W = np.round(W, DIGITS)
            limit = math.inf if self.delta is None else math.log1p(float(self.delta))
            projection = Projection(W, least_mixing(W, limit))
            memo |= projection.to_memo()
        W = projection.restricted
        return GP.of(gp.kernel, gp.theta, gp.X @ torch.as_tensor(W), gp.y, own=gp.own), W, memo


@dataclass(frozen=True)
class AlongDirections:
    """An acquisition of the projected rows W'x, as one of the rows x."""

    f: Acquisition
    W: Array  # (D, D)

    def __call__(self, X: Tensor) -> Tensor:
        """Values (m,)."""
        return self.f(X @ torch.as_tensor(self.W))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, D)."""
        value, gradient = with_gradient(self.f, X @ self.W)
        return value, gradient @ self.W.T
