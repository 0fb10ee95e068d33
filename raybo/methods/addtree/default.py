"""Add-Tree in practice: a Gaussian process that adds up the effects of the vertices of a tree.

A vertex of a conditional space holds the parameters that become active together; a flat space is
one vertex. The assumption is that the function is a sum of functions of the vertices that a point
passes through, so that an observation informs about every point that shares a vertex with it.

What differs from Add-Tree-GP-UCB (Ma & Blaschko 2021):

- Independent choices share subtrees (`tree`): the effect of a branch is learnt once, not once for
  each combination with the others (`raybo bench addtree-blocks`).
- Every parameter has a length-scale, pooled with the others (`PooledPrior`).
- Branches that the best point does not take are held to be rougher (`shorten_off_path`).
- Noise is held to be small (`SMALL_NOISE`).
- The acquisition is log expected improvement of whole points, searched leaf by leaf; the points of
  Algorithm 2 are where that starts (`propose`, `raybo bench addtree-synthetic`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.functions import exploration
from raybo.lazy import torch
from raybo.methods.addtree.kernel import TreeKernel, tree_kernel
from raybo.methods.addtree.search import TreeSearch
from raybo.methods.base import Data, Proposal
from raybo.methods.bo.default import ACQUISITIONS
from raybo.methods.model import fitted_gp, with_pending
from raybo.methods.options import check_choice, check_count, require_columns
from raybo.methods.search import success_of, untried, weighed_acquisition
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.space.tree import Vertex, expanded, vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import LogNormal, lengthscales
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import FREE_NOISE

# Deviation of the logarithms of hyperparameters about their mean (`PooledPrior`): most are within
# a factor of 1.35 of it. `raybo bench addtree-blocks`, three Hartmann6: regret 0.06 with it, with
# 1.0 0.38 (seeds 1800 to 1809).
SPREAD = 0.3
# What parameters do together is no sum. Without a prior it is taken for noise, and the search
# goes on where the sum expects most, however often that is wrong: `raybo bench failures --tasks
# pruning`, seeds 2340 to 2349, 25% of the late proposals fail, without it 87%.
SMALL_NOISE = replace(FREE_NOISE, prior=LogNormal(-8.0, 2.0))


@dataclass(frozen=True)
class AddTree:
    """Gaussian process over a conditional space, additive over the vertices of its tree."""

    space: AnySpace
    n_init: int | None = None  # points of the design; columns + 2, at most 10, unless given
    expand: bool = False  # whether independent choices are multiplied out
    acquisition: str = "log_ei"  # one of ACQUISITIONS

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_choice("expand", self.expand, (False, True))
        check_count("n_init", self.n_init)
        require_columns("addtree", self.space)
        _ = self.tree  # an expansion that is too large is refused here

    @property
    def tree(self) -> tuple[Vertex, ...]:
        """Vertices that have a function each."""
        tree = vertices(self.space)
        return expanded(tree) if self.expand else tree

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data."""
        space, tree, n = self.space, self.tree, len(data.loss)
        if data.needs_design(self.n_init or design_size(space.dim)):
            return Proposal(x=design_point(space, data.number, data.seed))
        data = data.thinned()
        with one_thread():
            gp, memo = self.model(data)
            success = success_of(space, data)
            additive = self._additive
            gp = with_pending(shorten_off_path(gp, additive), data, success.walls)
            f = weighed_acquisition(gp, self.acquisition, data, success)
            search = TreeSearch(space, tree, additive.terms, data, rng)
            beta = exploration(max(len(vertex.columns) for vertex in tree), n)
            starts = search.maximize_vertices(
                gp, beta, n_starts=1, max_evaluations=data.effort.max_evaluations // 4
            )  # a short search, since another one goes on from its points
            x = search.maximize_leaves(untried(f, space, data), starts)
        return Proposal(x=x, memo=memo | success.memo)

    @property
    def _additive(self) -> TreeKernel:
        return tree_kernel(self.space, self.tree, spread=SPREAD)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it.

        Its mean is 0: all points pass through the root, whose function has a level.
        """
        return fitted_gp(self._additive, data, noise=SMALL_NOISE, mean=0.0)


def shorten_off_path(gp: GP, kernel: TreeKernel) -> GP:
    """The process with shorter length-scales at the vertices that its best row does not pass.

    Few observations pass there, and mostly in poor places. As smooth as the prior has it, a vertex
    of several columns then leaves nothing to find, and a good branch is given up. Each
    length-scale of c columns is multiplied by 2^(-(c - 1) / 2): one column is soon known. `raybo
    bench addtree-blocks`, Hartmann functions, 100 evaluations, seeds 2300 to 2309: two runs end
    with a regret above 0.2; without it, in an earlier version, seven.
    """
    best = int(gp.fitted().argmin())
    off = ~kernel.active(gp.X[best : best + 1])[0]
    width = torch.tensor([len(term.columns) for term in kernel.terms], dtype=gp.X.dtype)
    factor = 2.0 ** (-0.5 * (width - 1.0).clamp_min(0.0) * off)
    shorter = {k: v * factor[kernel.owners(k)] for k, v in lengthscales(gp.theta).items()}
    return gp.with_theta(shorter)
