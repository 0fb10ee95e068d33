"""Add-GP-UCB: Bayesian optimisation with an additive Gaussian process.

Kandasamy, Schneider, Poczos (2015), "High dimensional Bayesian optimisation and bandits via
additive models", as Algorithm 1 of Li, Kandasamy, Poczos, Schneider (2016), sections 3 and 5.

Paper            Code                   Meaning
N_init, N_cyc    N_INIT, N_CYC          points of the random design; rows between two learnings
d, M             group_size, len(...)   columns of a group, number of groups
X_j              groups[j]              disjoint groups of columns
kappa^(j)        Additive               one kernel per group, the same hyperparameters for all
mu, sigma^(j)    GP.posterior(part=j)   posterior of each group (eq. 3)
beta_t           exploration_of         0.2 d ln(2t), as in the authors' code
phi_t            ucb                    upper confidence bound of each group (eq. 4)

What the paper leaves open: the hyperparameters have weak priors, without which they are not
determined by ten data; partitions are compared under the hyperparameters of the last fit. What it
does not have: pending points, discrete columns and constraints (a point is moved to a near one
that the space has), groups that are given, and a partition drawn anew for every proposal
(`decomposition="random"`, Ziomek & Bou Ammar 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.lazy import Tensor, torch
from raybo.methods.addgp.groups import (
    Learnt,
    check_groups,
    first_groups,
    likeliest_groups,
)
from raybo.methods.addgp.search import exploration_of, maximize_by_group
from raybo.methods.base import Data, Proposal
from raybo.methods.model import unordered_columns
from raybo.methods.options import check_count, require_flat
from raybo.space.any_space import AnySpace
from raybo.space.design import random
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive, Groups
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NOISE_HYPER, fit, starting_theta
from raybo.surrogate.outcomes import standardize

N_INIT = 10  # section 5
N_CYC = 25  # section 5


@dataclass(frozen=True)
class PublishedAddGp:
    """Additive Gaussian process whose groups are searched one by one."""

    space: AnySpace
    n_init: int | None = None  # N_INIT unless given
    group_size: int | None = None  # d, columns or directions of a group
    groups: Any = None  # lists of columns, by number or name, instead of learning them
    decomposition: str | None = None  # "learnt", or "random": drawn anew for every proposal

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        require_flat("addgp", self.space)
        check_groups(self.space, self.group_size, self.groups, self.decomposition)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Next point of Algorithm 1."""
        if data.needs_design(self.n_init or N_INIT):
            return Proposal(x=random(self.space, 1, data.seed, data.number)[0])  # D_0
        data = data.with_failures_as_worst()
        X, y = torch.as_tensor(data.X), torch.as_tensor(standardize(data.loss))
        with one_thread():
            learnt = last = Learnt.last(data)
            if learnt is None or is_due(data, learnt):  # t mod N_cyc = 1
                learnt = self.learn(X, y, last, rng)  # step 1
            groups = self.groups_for(learnt, rng)
            gp = GP.of(self.kernel(groups), learnt.theta, X, y)
            gp = gp.condition_on_mean(torch.as_tensor(data.pending))
            beta = exploration_of(gp, len(y))
            cube = np.zeros(self.space.dim), np.ones(self.space.dim)
            x = maximize_by_group(gp, beta, cube, rng)  # step 2
        memo = {} if learnt is last else learnt.to_memo()
        return Proposal(x=self.space.snap(x[None])[0], memo=memo)

    def learn(self, X: Tensor, y: Tensor, last: Learnt | None, rng: np.random.Generator) -> Learnt:
        """Groups and hyperparameters of high marginal likelihood (Algorithm 1, step 1)."""
        groups = self._partition(rng) if last is None else last.groups
        theta = starting_theta(self.kernel(groups), NOISE_HYPER) if last is None else last.theta
        if self.groups is None and self.decomposition != "random":
            candidates = [self._partition(rng) for _ in groups]  # M of them: section 5
            groups = likeliest_groups(candidates, self.kernel, X, y, theta)
        return Learnt(len(y), groups, fit(self.kernel(groups), X, y, [theta]))

    def groups_for(self, learnt: Learnt, rng: np.random.Generator) -> Groups:
        """Groups of one proposal."""
        return self._partition(rng) if self.decomposition == "random" else learnt.groups

    def kernel(self, groups: Groups) -> Additive:
        """One squared exponential kernel for all groups (section 5)."""
        return Additive(groups, unordered_columns(self.space))

    def _partition(self, rng: np.random.Generator) -> Groups:
        return first_groups(self.space, self.groups, self.group_size, rng)


def is_due(data: Data, learnt: Learnt) -> bool:
    """Whether N_cyc rows have been told since groups and hyperparameters were learnt."""
    return len(data.loss) - learnt.fitted >= N_CYC
