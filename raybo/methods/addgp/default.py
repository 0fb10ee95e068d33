"""Add-GP-UCB: Bayesian optimisation with an additive Gaussian process.

Kandasamy, Schneider, Poczos (2015), "High dimensional Bayesian optimisation and bandits via
additive models", as Algorithm 1 of Li, Kandasamy, Poczos, Schneider (2016), section 3.

Paper          Code            Meaning
x^(j)          groups[j]       disjoint groups of at most d columns
kappa^(j)      Additive        one kernel per group, the same for all of them
mu, sigma^(j)  GroupPosteriors posterior of each group (eq. 3)
beta_t         exploration     0.2 d ln(2t), as in the authors' code
N_init, N_cyc  N_INIT, N_CYC   10 points to begin with; learn every 25

Departures. Pending points; integers and categories are searched on their own grid; weak priors
over the hyperparameters; the constant mean is the best for the data at hand, not that of the last
fit. By default beta_t is a quarter of it; groups are improved by exchanges of columns, from the
last ones on, rather than drawn anew; they are learnt more often while there are few data; and the
groups are searched by climbing from many starts, all at once. What they find is then where a climb
of the whole function's log expected improvement starts: no datum tells the groups' shares of a
value apart, so their bounds stay high where the sum is known, and Add-GP-UCB goes on asking for
points next to known ones (on rpp-50 from 150 evaluations on; regret after 200, two seeds: 28 and
17 without the climb, 13 and 22 with it; of `rpp` 23 and 31, 9 and 19). `preset="paper"` has none
of this: it begins at random points, draws as many partitions as there are groups, keeps the best,
and takes what DIRECT
finds in each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raybo.arrays import Array
from raybo.methods.addgp.groups import (
    N_INIT,
    Learnt,
    best_groups,
    best_rows,
    centred,
    check_groups,
    default_size,
    first_theta,
    given_groups,
    partition,
    swap_columns,
)
from raybo.methods.addgp.search import GroupSearch, exploration, refine
from raybo.methods.base import Data, Proposal
from raybo.methods.model import acquisition_of, unordered_columns
from raybo.methods.options import PRESETS, check_choice, check_count, check_seconds, require_flat
from raybo.space.any_space import AnySpace
from raybo.space.design import random, sobol_point
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive, Groups
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import fit
from raybo.surrogate.outcomes import standardize


@dataclass(frozen=True)
class AddGp:
    """Additive Gaussian process over groups of columns, searched group by group."""

    space: AnySpace
    preset: str = "default"
    n_init: int | None = None  # points of the initial design
    group_size: int | None = None  # columns of a group
    groups: Any = None  # lists of columns, by number or name, instead of learning them
    decomposition: str | None = None  # "learnt", or "random": drawn anew for every proposal
    seconds: float | None = None  # of search for each proposal, in place of one search

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_count("n_init", self.n_init)
        check_seconds(self.seconds, self.preset)
        require_flat("addgp", self.space)
        check_groups(self.space, self.group_size, self.groups, self.decomposition)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Best point of every group by itself (Algorithm 1, step 2)."""
        paper = self.preset == "paper"
        if data.needs_design(self.n_init or N_INIT):
            return Proposal(x=self._design(data))
        X, y = torch.as_tensor(data.X), torch.as_tensor(standardize(data.loss))
        with one_thread():
            last = Learnt.last(data)
            keep = last is not None and not last.is_due(len(y), paper)
            learnt = last if last is not None and keep else self.learn(X, y, last, rng)
            groups = self.groups_for(learnt, rng)
            gp = GP.of(self.kernel(groups), learnt.theta, X, y)
            gp = centred(gp)
            best = gp.fitted().min()
            gp = gp.condition_on_mean(torch.as_tensor(data.pending))
            beta = exploration(groups, len(y), paper)
            search = GroupSearch.in_space(gp, groups, beta, self.space)
            if paper:
                x = search.direct(rng)
            else:
                x = self.space.snap(search.climb(best_rows(data), rng, data.haste)[None])[0]
                f = acquisition_of(gp, "log_ei", best, len(y))
                x = refine(f, x, self.space, data, rng, self.seconds)
        return Proposal(x=self.space.snap(x[None])[0], memo={} if keep else learnt.to_memo())

    def learn(self, X: Tensor, y: Tensor, last: Learnt | None, rng: np.random.Generator) -> Learnt:
        """Groups and hyperparameters of high marginal likelihood (Algorithm 1, step 1)."""
        groups = self._partition(rng) if last is None else last.groups
        theta = first_theta(self.kernel(groups)) if last is None else last.theta
        if self.groups is None and self.decomposition != "random":
            if self.preset == "paper":  # as many candidates as groups: section 5
                candidates = [self._partition(rng) for _ in groups]
                groups = best_groups(candidates, self.kernel, X, y, theta)
            else:
                groups = swap_columns(groups, self.kernel, X, y, theta, rng)
        return Learnt(len(y), groups, fit(self.kernel(groups), X, y, [theta]))

    def groups_for(self, learnt: Learnt, rng: np.random.Generator) -> Groups:
        """Groups of one proposal."""
        return self._partition(rng) if self.decomposition == "random" else learnt.groups

    def kernel(self, groups: Groups) -> Additive:
        """One squared exponential kernel for all groups (section 5)."""
        return Additive(groups, "se", ard=False, unordered=unordered_columns(self.space))

    def _partition(self, rng: np.random.Generator) -> Groups:
        if self.groups is not None:
            return given_groups(self.space, self.groups)
        dim = self.space.dim
        return partition(dim, self.group_size or default_size(dim), rng)

    def _design(self, data: Data) -> Array:
        if self.preset == "paper":
            row: Array = random(self.space, 1, data.seed, data.number)[0]
            return row
        return sobol_point(self.space, data.number, data.seed)
