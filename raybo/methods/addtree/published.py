"""Add-Tree-GP-UCB: an upper confidence bound searched vertex by vertex in a conditional space.

Ma & Blaschko (2021), "Additive tree-structured conditional parameter spaces in Bayesian
optimization: a novel covariance function and a fast implementation", Algorithms 1 and 2; A-GP-UCB
of Berkenkamp, Schoellig & Krause (2019) as in section 4.3.1.

Paper            Code                  Meaning
T = (V, E)       tree                  vertices in breadth-first order (appendix B)
k_T              published_kernel      sum of the kernels of the vertices (Algorithm 1)
k_v, k_v^delta   AtVertex              kernel of a vertex, 0 unless both points pass through it
mu^v, sigma^v    VertexPosteriors      posterior of the function of a vertex
x^v, u^v         VertexMaxima          maximum of the bound of each vertex, and its value
U^l, l_j         best_path             sum of u^v along a path, and the path of the largest sum
d~               dim                   most columns of a vertex
beta_t           a_gp_ucb              weight of the variance (eq. 12)
I(y; f)          information_gain      of the observations about the function (eq. 11)
b(t), g(t)       norm_growth, shrink   growth of the norm bound and of 1 / length-scale (eq. 13)
theta_t          adapted               length-scales (eq. 13 and section 5)

What the paper leaves open, and what is picked:

- the scale of the losses: standardised, mean 0;
- the noise, which it takes as given (section 4.1) and a user does not know: fitted as theta is;
- the bounds of theta in the fit: those of the authors' released code, exp(-7) < theta^2 < exp(4);
- a prior for theta^MAP (section 5): none, since there the marginal likelihood is maximised;
- theta_0: 1, the width of the cube; B_0: 1; delta: 0.1;
- b(t) = L^(1/4) and g(t) = L^(1 / (4 d~)) with L = 1 + ln(1 + t), which are 1 at t = 0, grow
  without bound and keep g(t)^(2 d~) b(t) = L^(3/4) far below sqrt(t), as Proposition 11 needs it;
- the exponent d of g in eq. 13: d~, since no vertex has more columns;
- the first points: those of a Sobol sequence, as many as in raybo/methods/addtree/default.py;
- how often theta is fitted: when the data have grown by the share that the effort says.

What it does not have: pending points; integers and categories at a vertex; vertices without
parameters below the root, which have the constant kernel 1 here, since appendix B would leave all
values there to the noise; and a point that was evaluated before, or is not allowed, is replaced by
the best other one, under the bound of whole points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raybo.acquisition.functions import ucb
from raybo.lazy import Tensor
from raybo.methods.addtree.kernel import TreeKernel, tree_kernel
from raybo.methods.addtree.search import TreeSearch, best_path
from raybo.methods.base import Data, Proposal
from raybo.methods.model import fitted_gp, with_pending
from raybo.methods.options import check_choice, check_count, require_columns
from raybo.methods.search import untried
from raybo.space.any_space import AnySpace
from raybo.space.design import design_size, sobol_point
from raybo.space.tree import Vertex, expanded, vertices
from raybo.surrogate.gp import GP, NOISE
from raybo.surrogate.kernels.base import Hyper, lengthscales
from raybo.surrogate.linalg import one_thread

CONFIDENCE = 0.1  # delta: the regret bound holds with probability 1 - delta (Theorem 7); picked
NORM = 1.0  # B_0; picked
LENGTHSCALE = 1.0  # theta_0: the width of the cube; picked
# theta^MAP, with the bounds of the authors' released code and no prior
FITTED = Hyper("lengthscale", (), math.exp(-3.5), math.exp(2.0), LENGTHSCALE)


@dataclass(frozen=True)
class PublishedAddTree:
    """Add-Tree covariance with one length-scale per vertex, and A-GP-UCB by Algorithm 2."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design
    expand: bool = True  # whether independent choices are multiplied out (section 5.3)

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("expand", self.expand, (False, True))
        check_count("n_init", self.n_init)
        require_columns("addtree", self.space)
        _ = self.tree  # an expansion that is too large is refused here

    @property
    def tree(self) -> tuple[Vertex, ...]:
        """Vertices of the space."""
        tree = vertices(self.space)
        return expanded(tree) if self.expand else tree

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Point whose vertices have the largest sum of bounds (Algorithm 2)."""
        space, tree = self.space, self.tree
        if data.needs_design(self.n_init or design_size(space.dim)):
            return Proposal(x=sobol_point(space, data.number, data.seed))
        data = data.with_failures_as_worst()
        t = len(data.loss)
        dim = max(1, *(len(vertex.columns) for vertex in tree))
        with one_thread():
            kernel = published_kernel(space, tree)
            gp, memo = fitted_gp(kernel, data, mean=0.0)  # Algorithm 2, line 12
            gp = with_pending(adapted(gp, t, dim), data)
            beta = a_gp_ucb(gp, t, dim)
            search = TreeSearch(space, tree, kernel.terms, data, rng)
            maxima = search.maximize_vertices(
                gp,
                beta,
                n_starts=data.effort.n_starts,
                max_evaluations=data.effort.max_evaluations,
            )  # lines 3 to 5
            path = best_path(tree, maxima.u)  # lines 6 to 8
            x = search.assemble(path, maxima.columns)  # line 9
            was_asked = (np.concatenate([data.X, data.pending]) == x).all(axis=1).any()
            if was_asked or not space.allowed(x[None])[0]:

                def bound(Z: Tensor) -> Tensor:
                    return ucb(gp.posterior(Z), beta)

                x = search.maximize_leaves(untried(bound, space, data), maxima)
        return Proposal(x=x, memo=memo)


def published_kernel(space: AnySpace, tree: Sequence[Vertex]) -> TreeKernel:
    """k_T of Algorithm 1: a squared exponential kernel of variance 1 for each vertex.

    Section 4.3.1 has no variance: length-scales are all that is fitted. A fitted variance of a
    vertex that few points pass goes to 0, and with it the bound of its branch, which is then given
    up (examples/RESULTS.md). A root without parameters has no kernel (section 4.1, appendix B).
    """
    terms = tree_kernel(space, tree, ard=False).terms
    bare_root = not terms[0].columns
    variances = [0.0 if bare_root else 1.0, *[1.0] * (len(terms) - 1)]
    return TreeKernel(
        tuple(
            replace(term, variance=variance, lengthscale=FITTED)
            for term, variance in zip(terms, variances, strict=True)
        )
    )


def a_gp_ucb(gp: GP, t: int, dim: int) -> float:
    """beta_t of eq. 12."""
    bound = norm_growth(t) * shrink(t, dim) ** dim * NORM  # B_t, eq. 13
    gain = information_gain(gp) + 1.0 + math.log(1.0 / CONFIDENCE)
    root = bound + 4.0 * math.sqrt(float(gp.theta[NOISE]) * gain)  # eq. 12
    return float(root**2)


def information_gain(gp: GP) -> float:
    """I(y; f) = log det(I + K / sigma^2) / 2 (eq. 11)."""
    log_noise = math.log(float(gp.theta[NOISE]))
    return float(gp.chol.diagonal().log().sum()) - 0.5 * len(gp.X) * log_noise


def adapted(gp: GP, t: int, dim: int) -> GP:
    """The process with length-scales theta_t = min(theta^MAP, theta_0 / g(t)) (section 5)."""
    longest = LENGTHSCALE / shrink(t, dim)  # eq. 13
    return gp.with_theta({k: v.clamp_max(longest) for k, v in lengthscales(gp.theta).items()})


def norm_growth(t: int) -> float:
    """b(t) of eq. 13."""
    return math.pow(1.0 + math.log1p(t), 0.25)


def shrink(t: int, dim: int) -> float:
    """g(t) of eq. 13."""
    return math.pow(1.0 + math.log1p(t), 0.25 / dim)
