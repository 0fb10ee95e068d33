"""RPP-GP-UCB and PP-GP-UCB: additive Bayesian optimisation along learnt directions.

Li, Kandasamy, Poczos, Schneider (2016), "High dimensional Bayesian optimization via restricted
projection pursuit models", Algorithms 2 and 3. Both are Algorithm 1, Add-GP-UCB
(raybo/methods/addgp/published.py), on projected rows.

Paper            Code                  Meaning
W                W                     (D, D) directions of high marginal likelihood
W-hat, alpha     blend, alpha          (1 - alpha) W + alpha I (eq. 7)
delta            delta                 bound on the outer box: volume ratio <= 1 + delta (eq. 8)
outer(X_W)       outer_box             box around the projected cube, where z is searched
Z = XW           X @ W                 projected rows, of the points that were evaluated
N_init, N_cyc    N_INIT, N_CYC         as in Algorithm 1

An infinite `delta` is Algorithm 2, projection pursuit without restriction: alpha is 0.

What the paper leaves open. W is learnt group by group, by marginal likelihood of all groups
together, from the last W on and from I at first; its columns have length 1. Before W is mixed with
I its columns get the order and the signs nearest to those of I: the model knows neither, and
without this the mixture is no model between the two. In Algorithm 2 too W is learnt every N_cyc
rows. A point outside the cube is moved to the nearest one inside, and the model is told of that
one. The rest is as in Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.addgp.groups import Learnt, check_groups
from raybo.methods.addgp.published import N_INIT, PublishedAddGp, is_due
from raybo.methods.addgp.search import exploration_of, maximize_by_group
from raybo.methods.base import Data, Proposal
from raybo.methods.options import check_count, require_ordered
from raybo.methods.rpp.projection import (
    DIGITS,
    Projection,
    align,
    blend,
    checked_delta,
    least_mixing,
    likeliest_columns,
    outer_box,
    unprojected,
)
from raybo.space.any_space import AnySpace
from raybo.space.design import random
from raybo.surrogate.gp import GP, NOISE, add_noise
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import negative_log_likelihood
from raybo.surrogate.outcomes import standardize

DELTA = 0.1  # section 5.1
GRID = 10  # values of alpha tried; the paper gives no number
ITERATIONS = 30  # of L-BFGS-B for each group's directions; they go on from there N_cyc rows later


@dataclass(frozen=True)
class PublishedRpp:
    """Additive Gaussian process over groups of learnt directions, searched one by one."""

    space: AnySpace
    n_init: int | None = None  # N_INIT unless given
    group_size: int | None = None  # d, columns or directions of a group
    groups: Any = None  # lists of columns whose directions make a group, instead of learning them
    decomposition: str | None = None  # "learnt", or "random": drawn anew for every proposal
    delta: float | str | None = None  # DELTA unless given; inf: Algorithm 2

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        require_ordered("rpp", self.space, "projects numbers")
        check_groups(self.space, self.group_size, self.groups, self.decomposition)
        object.__setattr__(self, "delta", checked_delta(self.delta))

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Next point of Algorithm 3."""
        if data.needs_design(self.n_init or N_INIT):
            return Proposal(x=random(self.space, 1, data.seed, data.number)[0])  # D_0
        data = data.with_failures_as_worst()
        X, y = torch.as_tensor(data.X), torch.as_tensor(standardize(data.loss))
        with one_thread():
            learnt, projection = Learnt.last(data), Projection.last(data)
            memo: dict[str, Any] = {}
            if learnt is None or projection is None or is_due(data, learnt):  # t mod N_cyc = 1
                learnt, projection = self.learn(X, y, learnt, projection, rng)  # step 1
                memo = {**learnt.to_memo(), **projection.to_memo()}
            W = projection.restricted
            groups = self._additive.groups_for(learnt, rng)
            gp = GP.of(self._additive.kernel(groups), learnt.theta, X @ torch.as_tensor(W), y)
            gp = gp.condition_on_mean(torch.as_tensor(data.pending @ W))
            beta = exploration_of(gp, len(y))
            z = maximize_by_group(gp, beta, outer_box(W), rng)  # step 2
            x = unprojected(z, W)  # step 2
        return Proposal(x=self.space.snap(x[None])[0], memo=memo)

    def learn(
        self,
        X: Tensor,
        y: Tensor,
        learnt: Learnt | None,
        projection: Projection | None,
        rng: np.random.Generator,
    ) -> tuple[Learnt, Projection]:
        """Projection, then groups and hyperparameters of the projected rows (step 1)."""
        additive = self._additive
        learnt = learnt or additive.learn(X, y, None, rng)
        W = np.eye(X.shape[1]) if projection is None else projection.W
        kernel, theta = additive.kernel(learnt.groups), dict(learnt.theta)
        for group in learnt.groups:
            W, theta = likeliest_columns(kernel, X, y, W, theta, group, ITERATIONS)
        W, order = align(W)
        place = np.argsort(order).tolist()
        groups = tuple(tuple(place[c] for c in group) for group in learnt.groups)
        delta = DELTA if self.delta is None else float(self.delta)
        alpha = 0.0  # Algorithm 2
        if not math.isinf(delta):
            limit = math.log1p(delta)
            alpha = likeliest_mixing(limit, additive.kernel(groups), X, y, W, theta)  # eq. 8
        projection = Projection(np.round(W, DIGITS), alpha)
        Z = X @ torch.as_tensor(projection.restricted)
        return additive.learn(Z, y, Learnt(len(y), groups, theta), rng), projection

    @property
    def _additive(self) -> PublishedAddGp:
        """Algorithm 1, whose steps 1 and 2 are taken on the projected rows."""
        return PublishedAddGp(
            self.space, self.n_init, self.group_size, self.groups, self.decomposition
        )


def likeliest_mixing(
    log_limit: float, kernel: Additive, X: Tensor, y: Tensor, W: Array, theta: Theta
) -> float:
    """Alpha of highest likelihood among those that keep the box within its limit (eq. 8).

    By grid search in the feasible range (section 4.1); of equals the nearest to I.
    """

    def loss(alpha: float) -> float:
        Z = X @ torch.as_tensor(blend(W, alpha))
        return negative_log_likelihood(add_noise(kernel(Z, Z, theta), theta[NOISE]), y)

    grid: list[float] = np.linspace(1.0, least_mixing(W, log_limit), GRID).tolist()
    return min(grid, key=loss)
