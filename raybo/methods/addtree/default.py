"""Add-Tree in practice: a Gaussian process that adds up the effects of the vertices of a tree.

A vertex of a conditional space holds the parameters that become active together; a flat space is
one vertex. The assumption is that the function of a point is the sum of one function for each
vertex that the point passes through. So an observation informs about every point that shares a
vertex with it.

What differs from raybo/methods/addtree/published.py:

- Independent choices share subtrees (`tree`): the effect of a branch is learnt once, not once for
  each combination with the others (`raybo bench addtree-blocks`).
- There is a length-scale for every parameter, pooled over the vertices, and parameters are on
  learnt scales (`model`).
- The acquisition is log expected improvement of whole points, searched leaf by leaf (`propose`);
  the points of Algorithm 2 are where it starts (`raybo bench addtree-synthetic`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.acquisition.functions import exploration
from raybo.methods.addtree.kernel import TreeKernel, tree_kernel
from raybo.methods.addtree.log_warp import LogWarped
from raybo.methods.addtree.search import maximize_by_leaf, maximize_vertices
from raybo.methods.base import Data, Proposal
from raybo.methods.bo.default import ACQUISITIONS, design_size
from raybo.methods.model import SMALL_NOISE, fitted_gp, unordered_columns, with_pending
from raybo.methods.options import check_choice, check_count, require_columns
from raybo.methods.search import acquisition_of, untried
from raybo.space.any_space import AnySpace
from raybo.space.design import sobol_point
from raybo.space.tree import Vertex, expanded, vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import Kernel
from raybo.surrogate.linalg import one_thread

SPREAD = 0.3  # of a hyperparameter about those of the other vertices, see `PooledPrior`


@dataclass(frozen=True)
class AddTree:
    """Gaussian process over a conditional space, additive over the vertices of its tree."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design; see `design_size`
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
            return Proposal(x=sobol_point(space, data.number, data.seed))
        with one_thread():
            additive = tree_kernel(space, tree, spread=SPREAD)
            gp, memo = self.model(additive, data)
            gp = with_pending(gp, data)
            best = gp.fitted().min()  # of pending points too, or they would be proposed again
            f = acquisition_of(gp, self.acquisition, best, n)
            widest = max(len(vertex.columns) for vertex in tree)
            columns, u = maximize_vertices(
                gp,
                exploration(widest, n),
                space,
                additive.terms,
                data,
                rng,
                n_starts=1,
                max_evaluations=data.effort.max_evaluations // 4,  # another search goes on
            )
            x = maximize_by_leaf(
                untried(f, space, data), space, tree, additive.terms, columns, u, data, rng
            )
        return Proposal(x=x, memo=memo)

    def model(self, additive: TreeKernel, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it.

        Its mean is 0: the function of the root, through which all points pass, has a level.
        """
        unordered = unordered_columns(self.space)
        ordered = tuple(c for c in range(self.space.dim) if c not in unordered)
        kernel: Kernel = LogWarped(additive, ordered) if ordered else additive
        return fitted_gp(kernel, data, noise=SMALL_NOISE, mean=0.0)
