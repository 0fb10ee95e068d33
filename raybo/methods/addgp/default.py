"""Addgp in practice: log expected improvement of an additive process with learnt groups.

The assumption is that the function is a sum of functions of disjoint groups of columns. What
differs from Add-GP-UCB (Algorithm 1 of Li et al. 2016):

- `AddGp.propose` maximises the log expected improvement of the sum. The bounds of single groups
  stay high where the sum is known, since no datum tells the groups' shares of a value apart, and
  their maximum is then a point next to known ones (`raybo bench rpp-synthetic`). So the best
  parts of many rows by these bounds, `best_of_each_group`, are only one of the starts.
- `exchange_columns` improves the last groups instead of drawing others, so that learning adds up.
- Groups and hyperparameters are learnt on the schedule that all methods have, `is_refit_due`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.lazy import torch
from raybo.methods.addgp.groups import (
    Learnt,
    check_groups,
    exchange_columns,
    first_groups,
)
from raybo.methods.addgp.search import best_of_each_group, exploration_of
from raybo.methods.base import Data, Proposal
from raybo.methods.maxima import maxima
from raybo.methods.model import fitted_gp, unordered_columns
from raybo.methods.options import check_choice, check_count, check_seconds, require_flat
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive, Groups
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.map import FREE_NOISE, starting_theta
from raybo.surrogate.outcomes import SHORT_TAIL, standardize


def with_best_of_each_group(gp: GP, region: Region, n_told: int) -> Region:
    """The region with another start: in each group of columns the best of its starts."""
    best = best_of_each_group(gp, region.starts, exploration_of(gp, n_told))
    return replace(region, starts=np.concatenate([region.snap(best[None]), region.starts]))


@dataclass(frozen=True)
class AddGp:
    """Additive Gaussian process over groups of columns."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design
    group_size: int | None = None  # columns of a group
    groups: Any = None  # lists of columns, by number or name, instead of learning them
    decomposition: str | None = None  # "learnt", or "random": drawn anew for every proposal
    seconds: float | None = None  # of search for each proposal, instead of one search
    trust_region: bool = False  # whether only a part around the best point is searched

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        check_seconds(self.seconds)
        check_choice("trust_region", self.trust_region, (True, False))
        require_flat("addgp", self.space)
        check_groups(self.space, self.group_size, self.groups, self.decomposition)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the log expected improvement under the additive model of the data."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the log expected improvement, each given those before it."""
        return maxima(
            self.space,
            self.n_init,
            self.model,
            data,
            rngs,
            seconds=self.seconds,
            starts_of=with_best_of_each_group,
            trust_region=self.trust_region,
        )

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        groups = self._groups(data)
        gp, memo = fitted_gp(self.kernel(groups), data, bad_side=SHORT_TAIL)
        if memo:
            memo["groups"] = [list(group) for group in groups]
        return gp, memo

    def kernel(self, groups: Groups) -> Additive:
        """Sum over the groups of squared exponential kernels with the same hyperparameters."""
        return Additive(groups, unordered_columns(self.space))

    def _groups(self, data: Data) -> Groups:
        """Groups of this proposal: given, random, or the last ones, improved when a fit is due."""
        last, rng = Learnt.last(data), data.rng
        if self.decomposition == "random" or self.groups is not None:
            return first_groups(self.space, self.groups, self.group_size, rng)
        if last is not None and not data.is_refit_due(last.fitted):
            return last.groups
        if last is None:
            groups = first_groups(self.space, None, self.group_size, rng)
            theta: Theta = starting_theta(self.kernel(groups), FREE_NOISE)
        else:
            groups, theta = last.groups, last.theta
        # Effects add up in the losses themselves, not in losses whose bad side is drawn in.
        X, y = torch.as_tensor(data.X), torch.as_tensor(standardize(data.loss))
        return exchange_columns(groups, self.kernel, X, y, theta, rng)
