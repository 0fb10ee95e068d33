"""Add-Tree: conditional spaces by a Gaussian process that is additive over the tree's vertices.

Ma & Blaschko (2021), "Additive tree-structured conditional parameter spaces in Bayesian
optimization", Algorithms 1 and 2; A-GP-UCB of Berkenkamp, Schoellig & Krause (2019).

Paper            Code                 Meaning
T = (V, E)       tree                 vertices in breadth-first order (appendix B)
k_v, delta_v     AtVertex             kernel of a vertex, 0 unless both points pass through it
mu_v, sigma_v    VertexPosteriors     posterior of a vertex's own function
beta_t^(1/2)     width                how many deviations are added (eq. 12)
B_t, theta_t     norm, shorten        growing norm bound, shrinking length-scales (eq. 13)
u_v, U_l         u, best_path         bound of a vertex, and of a path by summing
d~               dim                  most ordered and unordered columns of a vertex

The default is expected improvement over the same process, a length-scale for every parameter,
searched leaf by leaf from the points of Algorithm 2. Where choices are independent, their vertices
are shared and their effects add up. Where a point has few parameters, each has a scale between
linear and logarithmic, and a small term of the whole takes up what independent choices do not add
up to; where it has many, what is learnt of one vertex tells more of the others.
`acquisition="ucb"` takes the best of the points of Algorithm 2, with beta = 0.6 ln(2t) and linear
scales.

Algorithm 2 allows the vertices to be searched in parallel. Here they are one batch: 60 to 90 ms
for 15 vertices and 300 observations, of which two processes could save half, while sending the
model to two tasks of Ray and hearing from them takes 25 ms: worth it from some hundred on.

`preset="paper"` is the published algorithm: one squared exponential length-scale per vertex,
Algorithm 2, A-GP-UCB. The paper leaves B_0, theta_0, b and g open; here B_0 = 1 on standardised
losses, theta_0 = 1, the width of the cube, b(t) = L^(1/4) and g(t) = L^(1/(4 d~)) with
L = 1 + ln(1 + t), which are 1 at t = 0 and keep g(t)^(2 d~) b(t) = L^(3/4) far below sqrt(t), as
Proposition 11 wants it. The exponent d of g in eq. 13 is d~, since no vertex has more columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from raybo.acquisition.functions import log_ei, ucb
from raybo.acquisition.maximizers.base import Acquisition, values
from raybo.acquisition.maximizers.parts import maximize_parts
from raybo.arrays import Array
from raybo.methods.addtree.kernel import LOOSE, NOISE_HYPER, TIGHT, TreeKernel, tree_kernel
from raybo.methods.addtree.posteriors import VertexPosteriors
from raybo.methods.addtree.search import assemble, best_path, maximize_by_leaf, vertex_parts
from raybo.methods.base import Data, Proposal
from raybo.methods.model import fitted_gp, untried
from raybo.methods.options import PRESETS, check_choice, check_count, require_columns
from raybo.space.any_space import AnySpace
from raybo.space.design import sobol_point
from raybo.space.tree import Vertex, expanded, paths, vertices
from raybo.surrogate.gp import GP, NOISE
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import fit
from raybo.surrogate.outcomes import MILD, STRONG, Tail

ACQUISITIONS = ("ucb", "ei")
CONFIDENCE = 0.1  # delta: the regret bound holds with probability 1 - delta
GROWTH = 0.6  # of beta = 0.6 ln(2t), the default's bound; chosen on the Jenatton function
# How often a model that expects no improvement has its length-scales halved; only at every other
# ask, so that noisy values get their repeats.
HALVINGS = 4
DOUBTS = 3  # how often branches beside the best one are doubted: at every third ask
FEW = 4  # parameters of a point, up to which scales and a term of the whole are soon learnt
MOST_DESIGN, MOST_SHARED_DESIGN = 10, 20  # points; the latter where choices are independent


@dataclass(frozen=True)
class AddTree:
    """Gaussian process over a conditional space; a flat space is a tree of one vertex."""

    space: AnySpace
    preset: str = "default"
    n_init: int | None = None  # points of the initial design
    expand: bool | None = None  # whether independent choices are multiplied out, as the paper does
    acquisition: str | None = None  # one of ACQUISITIONS; "ei", or "ucb" in the paper's preset

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_choice("acquisition", self.acquisition, (None, *ACQUISITIONS))
        check_choice("expand", self.expand, (None, False, True))
        check_count("n_init", self.n_init)
        require_columns("addtree", self.space)
        _ = self.tree  # too large an expansion is refused here

    @property
    def tree(self) -> tuple[Vertex, ...]:
        """Vertices that have a function of their own."""
        expand = self.preset == "paper" if self.expand is None else self.expand
        tree = vertices(self.space)
        return expanded(tree) if expand else tree

    @property
    def by_ucb(self) -> bool:
        """Whether the acquisition is an upper confidence bound."""
        return (self.acquisition or ("ucb" if self.preset == "paper" else "ei")) == "ucb"

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Point of the largest acquisition under the model of the data."""
        tree = self.tree
        if data.needs_design(self.n_init or design_size(tree)):
            return Proposal(x=sobol_point(self.space, data.number, data.seed))
        paper, by_ucb, t = self.preset == "paper", self.by_ucb, len(data.loss)
        with one_thread():
            kernel, tail = self.prior(tree)
            about_0 = partial(fit, mean=0.0)
            gp, memo = fitted_gp(
                kernel, data, "cpu", noise=NOISE_HYPER, fit=about_0, bad_side=tail
            )
            dim = max(1, *(len(vertex.columns) for vertex in tree))
            if paper:
                gp = shorten(gp, t, dim)
            gp = gp.condition_on_mean(torch.as_tensor(data.pending))
            best = gp.fitted().min()  # of pending points too, or they would be proposed again
            beta = a_gp_ucb(gp, t) if paper else GROWTH * math.log(2.0 * t)
            parts = vertex_parts(self.space, kernel.terms, data, rng)
            posteriors = VertexPosteriors.of(gp)
            X, u = maximize_parts(
                lambda Z: ucb(posteriors(Z), beta),
                parts,
                n_starts=(4 if by_ucb else 2) >> data.haste or 1,
                max_evaluations=40 if by_ucb else 10,  # another search goes on from them
            )  # Alg. 2, lines 3 to 5
            path = best_path(tree, u)  # lines 6 to 8
            x = assemble(self.space, kernel.terms, path, X)  # line 9

            def search(f: Acquisition) -> tuple[Array, float]:
                f = untried(f, self.space, data)
                x = maximize_by_leaf(f, self.space, tree, kernel.terms, path, X, data, rng)
                return x, values(f, x[None])[0]

            if not by_ucb:
                gp = gp if data.number % DOUBTS else doubt(gp, kernel)
                x = improve(gp, best, search, HALVINGS if data.number % 2 else 0)
            elif (np.concatenate([data.X, data.pending]) == x).all(axis=1).any():
                x, _ = search(lambda Z: ucb(gp.posterior(Z), beta))
        return Proposal(x=x, memo=memo)

    def prior(self, tree: Sequence[Vertex]) -> tuple[TreeKernel, Tail]:
        """The covariance (Algorithm 1), and how far bad values are drawn in."""
        paper, shared = self.preset == "paper", has_independent_choices(tree)
        few = longest(tree) <= FEW and not paper
        kernel = tree_kernel(
            self.space,
            tree,
            ard=not paper,
            whole=few and shared,
            stretched=few and not self.by_ucb,
            spread=LOOSE if few or paper else TIGHT,
        )
        adds_up = shared and not few  # which it would not with bad values drawn in
        return kernel, MILD if self.by_ucb or paper or adds_up else STRONG  # beta goes with MILD


def doubt(gp: GP, kernel: TreeKernel) -> GP:
    """The process, less sure of the branches that its best point does not take.

    Few observations pass through them. A vertex of several columns is then thought to be as smooth
    as its prior has it, which leaves nothing to find there, and a good branch seen in poor places
    is given up: with `blocks-hartmann` by six runs of ten, after 100 evaluations. Of c columns
    each length-scale is multiplied by 2^(-(c - 1) / 2); one column is soon known.
    """
    best = int(gp.fitted().argmin())
    passed = kernel.active(gp.X[best : best + 1])[0]
    shorter = {}
    for name, value in _lengthscales(gp).items():
        vertices, columns = kernel.stacked(name)
        if columns > 1:
            factor = 2.0 ** (-0.5 * (columns - 1) * (~passed[vertices]).to(value.dtype))
            shorter[name] = value * (factor[:, None] if value.ndim > 1 else factor)
    return gp.with_theta(shorter) if shorter else gp


def improve(
    gp: GP,
    best: Tensor,
    search: Callable[[Acquisition], tuple[Array, float]],
    halvings: int,
) -> Array:
    """Point (d,) of the largest expected improvement; a model that expects none is doubted.

    To evaluate the best point once more promises phi(0) times the noise's deviation. A model that
    sees no more anywhere thinks it is done, and is often wrong about a branch of few observations,
    whose length-scales are guesses. So they are halved until there is something to gain.
    """
    worth = 0.5 * math.log(float(gp.theta[NOISE]) / (2.0 * math.pi))
    for k in range(1 + halvings):
        shorter = {name: value * 0.5**k for name, value in _lengthscales(gp).items()}
        x, value = search(partial(_log_ei, gp.with_theta(shorter) if k else gp, best))
        if value > worth:
            break
    return x


def _log_ei(gp: GP, best: Tensor, X: Tensor) -> Tensor:
    return log_ei(gp.posterior(X), best)


def design_size(tree: Sequence[Vertex]) -> int:
    """Points of the initial design: for a point of every vertex, and two more than parameters.

    Independent choices are all learnt at once, from a point for every parameter there is.
    """
    points = min(MOST_DESIGN, max(len(tree), longest(tree) + 2))
    if not has_independent_choices(tree):
        return points
    return max(points, min(MOST_SHARED_DESIGN, sum(len(vertex.columns) for vertex in tree)))


def longest(tree: Sequence[Vertex]) -> int:
    """Most parameters of a point."""
    return max(sum(len(tree[v].columns) for v in path) for path in islice(paths(tree), 64))


def has_independent_choices(tree: Sequence[Vertex]) -> bool:
    """Whether a point may pass through several branches at once."""
    return any(len(vertex.children) > 1 for vertex in tree)


def a_gp_ucb(gp: GP, t: int) -> float:
    """beta_t (eq. 12): its root is B_t + 4 sigma (I(y; f) + 1 + ln(1 / delta))^(1/2).

    Notes
    -----
    I(y; f) = log det(I + K / sigma^2) / 2 (eq. 11); B_t = b(t) g(t)^d~ B_0 (eq. 13).
    """
    noise = float(gp.theta[NOISE])
    gain = float(gp.chol.diagonal().log().sum()) - 0.5 * len(gp.X) * math.log(noise)  # eq. 11
    norm = (1.0 + math.log1p(t)) ** 0.5  # eq. 13
    root: float = norm + 4.0 * math.sqrt(noise * (gain + 1.0 - math.log(CONFIDENCE)))  # eq. 12
    return float(root * root)


def shorten(gp: GP, t: int, dim: int) -> GP:
    """The process with length-scales theta_t = min(theta_MAP, theta_0 / g(t)) (section 5)."""
    longest = (1.0 + math.log1p(t)) ** (-0.25 / dim)  # eq. 13
    return gp.with_theta({k: v.clamp_max(longest) for k, v in _lengthscales(gp).items()})


def _lengthscales(gp: GP) -> Theta:
    return {k: v for k, v in gp.theta.items() if k.startswith("lengthscale")}
