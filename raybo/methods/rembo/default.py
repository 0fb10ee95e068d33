"""REMBO: Bayesian optimisation in a random linear embedding.

Wang, Zoghi, Matheson, Hutter, de Freitas (2013), Algorithm 2 and section 3.

Paper       Code             Meaning
A           Embedding        (D, d) Gaussian matrix, drawn from (seed, lane) row by row, not stored
y           z                point of the box [-sqrt(d), sqrt(d)]^d, kept in the memo
p_X(A y)    Vector, images   its image, clipped to the cube
k           k, lanes         interleaved embeddings: trial i belongs to number i mod k

`preset="paper"` is Algorithms 2 and 3 as published, see rembo_paper.py. The default keeps the
embedding and departs from them in this:

- The model knows what the objective of an embedding looks like: h(clip(<a_1, z>), ...) for the
  few rows a_i of A that matter, and fits these rows to the data (kernel "learned"; the others are
  in rembo_kernels.py). It needs no row of A itself, so its cost does not depend on D.
- The box of z has half the width 2 / sqrt(d), not sqrt(d): the paper's at d = 2, and beyond it
  the width at which the coordinates of the image keep the spread they have at d = 2. With sqrt(d)
  three quarters of them are clipped at d = 6. It holds an optimum of d_e coordinates at least as
  often as soon as d exceeds d_e (d_e = 6: d = 8 in 84 and d = 10 in 98 of 100 draws).
- Standardised losses, fitted noise, log EI by L-BFGS, pending points told their mean.

Which d, which k? d should exceed the number of directions that matter by two or more: one more
coordinate costs little, one too few cannot be made up for. k > 1 splits the evaluations: worth it
where d is no larger than that number (an embedding with d = d_e misses the optimum one time in
four, k = 4 of them hardly ever), or where one proposer does not keep up with the workers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raybo.acquisition.closed_form import ClosedForm
from raybo.acquisition.functions import log_ei
from raybo.acquisition.maximizers.base import Maximizer, Region
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.timed import Timed
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array
from raybo.errors import MethodError, SpaceError
from raybo.methods.base import Data, Proposal
from raybo.methods.model import SMALL_NOISE, fitted_gp, with_pending
from raybo.methods.options import PRESETS, check_choice, check_count, check_seconds
from raybo.methods.rembo import published as rembo_paper
from raybo.methods.rembo.embedding import Embedding, embedding_seed
from raybo.methods.rembo.features import LearntRows
from raybo.methods.rembo.kernels import (
    KERNELS,
    View,
    check_kernel,
    default_kernel,
    paper_features,
    view,
)
from raybo.methods.rembo.learnt_rows import fit_rows
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import Matern52
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import fit

# d and k where the user gives neither. The paper finds several embeddings of a small d best; with
# rows that are learned, one embedding with room for six directions that matter does better.
DEFAULTS = {"default": (8, 1), "paper": (4, 4)}


@dataclass(frozen=True)
class Rembo:
    """Search of a space of any dimension in k random subspaces of d dimensions."""

    space: AnySpace
    d: int | None = None  # dimensions of an embedding
    k: int | None = None  # embeddings
    kernel: str | None = None  # one of KERNELS
    preset: str = "default"
    n_init: int | None = None  # points of the initial design of each embedding
    seconds: float | None = None  # of search for each proposal, in place of one search

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_choice("kernel", self.kernel, (None, *KERNELS))
        for name in ("d", "k", "n_init"):
            check_count(name, getattr(self, name))
        check_seconds(self.seconds, self.preset)
        require_unconditional(self.space)
        if self.d is not None and self.d > self.space.dim:
            raise MethodError(
                f"d must be at most the dimension of the space, {self.space.dim}, got {self.d}; "
                "an embedding is smaller than what it is embedded in"
            )
        check_kernel(self.kernel or "low", self.space, self.preset)

    @property
    def lanes(self) -> int:
        """Number of embeddings, each with its own data and model."""
        return self.k or DEFAULTS[self.preset][1]

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return self.d or min(DEFAULTS[self.preset][0], self.space.dim)

    @property
    def bound(self) -> float:
        """Half the width of the box of z."""
        return math.sqrt(self.dim) if self.preset == "paper" else 2.0 / math.sqrt(self.dim)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition in the box of the embedding whose turn it is."""
        lane = data.number % self.lanes
        seed = embedding_seed(data.seed, lane)
        embedding = Embedding(self.space, self.dim, seed, self.bound)  # Alg. 2, lines 1 and 2
        own = embedding.data(data)
        if own.needs_design(self.n_init or (2 if self.preset == "paper" else self.dim + 1)):
            z, memo = embedding.design(data.number // self.lanes), dict[str, Any]()
        else:
            with one_thread():
                z, memo = self._search(embedding, own, rng)  # line 4
        for _ in range(100):
            if embedding.is_new(z, own):
                break
            z = embedding.random(rng)
        return embedding.proposal(z, memo)

    def _search(
        self, embedding: Embedding, data: Data, rng: np.random.Generator
    ) -> tuple[Array, dict[str, Any]]:
        name = self.kernel or default_kernel(self.space, self.preset)
        if self.preset == "paper":
            features = paper_features(name, embedding)
            return rembo_paper.search(data, features, embedding.bound, rng)
        return search(data, view(name, embedding), embedding, rng, self.seconds)


def search(
    data: Data,
    seen: View,
    embedding: Embedding,
    rng: np.random.Generator,
    seconds: float | None = None,
) -> tuple[Array, dict[str, Any]]:
    """Next z by log EI under the fitted model, and what to note with it."""
    looked_at = replace(data, X=_look(seen, data.X), pending=_look(seen, data.pending))
    rows = seen.kernel if isinstance(seen.kernel, LearntRows) else None
    own_fit = partial(fit_rows, rng=rng) if rows else fit
    gp, memo = fitted_gp(seen.kernel, looked_at, "cpu", noise=SMALL_NOISE, fit=own_fit)
    best = gp.fitted().min()  # of told points: with the pending ones too the demo ends worse
    gp = with_pending(gp, looked_at)

    def plain(Z: Tensor) -> Tensor:
        return log_ei(gp.posterior(seen.features(Z)), best)

    gain = _ThroughRows(rows, gp, best) if rows else plain
    maximize: Maximizer = Lbfgsb() if seen.smooth else CmaEs(400)
    if seconds is not None:
        maximize = Timed(maximize, lambda: region(data, embedding, rng).starts, seconds)
    return maximize(gain, region(data, embedding, rng), rng), memo


class _ThroughRows:
    """Log EI of z under a model with learnt rows, its gradient in closed form."""

    def __init__(self, kernel: LearntRows, gp: GP, best: Tensor) -> None:
        theta = dict(gp.theta)
        self.features = partial(kernel.features, theta=gp.theta)
        self.rows = theta.pop("rows").log().numpy()
        inner = replace(gp, kernel=Matern52(kernel.n_rows), theta=theta, X=self.features(gp.X))
        self.inner = ClosedForm(inner, "log_ei", float(best))

    def __call__(self, Z: Tensor) -> Tensor:
        return self.inner(self.features(Z))

    def with_gradient(self, Z: Array) -> tuple[Array, Array]:
        at = Z @ self.rows.T
        value, slope = self.inner.with_gradient(0.5 * np.clip(at, -1.0, 1.0))
        return value, 0.5 * (slope * (np.abs(at) < 1.0)) @ self.rows


def _look(seen: View, Z: Array) -> Array:
    return np.asarray(seen.features(torch.as_tensor(Z)).numpy())


def region(data: Data, embedding: Embedding, rng: np.random.Generator) -> Region:
    """The box of z, and starts: spread over it, and around the best points so far."""
    width = 2.0 * embedding.bound
    best = data.X[np.argsort(data.loss, kind="stable")[:3]] / width + 0.5
    starts = np.concatenate([spread(embedding.d, 256, rng), around(best, 256, rng)])
    edge = np.full(embedding.d, embedding.bound)
    return Region(-edge, edge, (starts - 0.5) * width)


def require_unconditional(space: AnySpace) -> None:
    """Refuse a conditional space."""
    if isinstance(space, Box):
        return
    choice = next((c.name for c in space.columns if c.kind == "choice"), None)
    if choice is not None:
        raise SpaceError(
            f"method 'rembo' takes no conditional space, and {choice!r} is a Choice; "
            "use method 'addtree'"
        )
