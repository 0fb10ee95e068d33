"""REMBO in practice: search in a random embedding, with a model that learns which rows matter.

The assumption: the objective depends on a few linear combinations of the coordinates. A point is
the image clip(A z) of a z in a small box of d dimensions, with a random matrix A of D rows. The
objective is then h(clip(<a_1, z>), clip(<a_2, z>), ...) with the few rows a_i of A that matter.
The model (kernel "learned") has this form and fits the rows to the data; the prior of a row is the
distribution that A was drawn from. It reads no row of A, so a proposal costs the same in 25 and in
10^9 dimensions. Spaces with categories have the kernel "mixed"; kernels.py has the others.

What differs from REMBO (Wang et al. 2013): the learnt rows (`row_starts`), the width of the small
box (`box_bound`), d and k, the trust region, and what all default methods have: standardised
losses, a fitted noise, log EI climbed by L-BFGS-B. `raybo bench peers-high` compares the two.

Which d, which k? With fewer dimensions than directions that matter an embedding seldom holds an
optimum, and each further dimension makes the search longer. k > 1 splits the evaluations between
embeddings. That helps where d is no larger than the number of directions that matter (an embedding
with d = d_e misses the optimum one time in four, four of them hardly ever), or where one proposer
does not keep up with the workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.timed import Timed
from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.base import Data, Effort, Proposal, lane_of
from raybo.methods.model import Starts, fitted_gp, incumbent, with_pending
from raybo.methods.options import check_choice, check_count, check_seconds, require_unconditional
from raybo.methods.rembo.embedding import Embedding, require_embeddable
from raybo.methods.rembo.features import require_few_values
from raybo.methods.rembo.kernels import KERNELS, MOST_ROWS, View, view_of
from raybo.methods.search import Barred, acquisition_of, barred_images
from raybo.methods.trust_region import trusted
from raybo.space.any_space import AnySpace
from raybo.surrogate.kernels.base import Kernel, Theta
from raybo.surrogate.kernels.projected import MORE_ITERATIONS, ROWS, Projected
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import FREE_NOISE, starting_theta

# Of an embedding, unless given: as many as the directions that the model looks for. Branin and
# Hartmann6 in 500 dimensions, ten fresh seeds: 6 is ahead of 8 in 9 and 5 runs after 50
# evaluations, 6 and 7 after 100. With 4 Branin is found sooner, and four runs of Hartmann6 gain
# nothing after trial 100 (mean regret 1.65, 1.61 after 300; ten runs with 6: 0.55 and 0.19).
DIMENSIONS = MOST_ROWS
EMBEDDINGS = 1  # unless given: `raybo bench peers-high`


@dataclass(frozen=True)
class Rembo:
    """Search of a space of any dimension in k random embeddings of d dimensions."""

    space: AnySpace
    d: int | None = None  # dimensions of an embedding
    k: int | None = None  # embeddings
    kernel: str | None = None  # one of KERNELS
    n_init: int | None = None  # points of the initial design of each embedding; d + 1 unless given
    seconds: float | None = None  # of search for each proposal, instead of one search
    # `raybo bench suite --name high`: Branin and Hartmann6 in 500 dimensions, rotated in 25.
    trust_region: bool = True  # whether only a part around the best point is searched

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, (None, *KERNELS))
        for name in ("d", "k", "n_init"):
            check_count(name, getattr(self, name))
        check_seconds(self.seconds)
        check_choice("trust_region", self.trust_region, (True, False))
        require_unconditional("rembo", self.space)
        require_embeddable(self.d, self.space)
        if self.kernel == "categorical":
            require_few_values(self.space)

    @property
    def lanes(self) -> int:
        """Number of embeddings, each with its own data and model."""
        return self.k or EMBEDDINGS

    def dim(self, data: Data) -> int:
        """Dimensions of an embedding: as given, as when the study began, or the default."""
        noted = (len(memo["z"]) for memo in data.all_memos if "z" in memo)
        return self.d or next(noted, min(DIMENSIONS, self.space.dim))

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition in the embedding of the trial's lane."""
        lane = lane_of(data.number, self.lanes)
        d = self.dim(data)
        embedding = Embedding.of_lane(self.space, d, box_bound(d), data.seed, lane)
        own = embedding.data(data)
        if own.needs_design(self.n_init or d + 1):
            return embedding.proposal(embedding.design(data.number // self.lanes), {})
        own = own.thinned()
        with one_thread():
            success = embedding.success(own)
            f, view, memo = self._model(embedding, own, success.walls, rng)
            bars = barred_images(embedding, data, own)
            trust = trusted(self.trust_region, own, (), bars)

            def region() -> Region:
                return trust.confine(embedding.region(own, own.effort.n_screened, rng), rng)

            search = self._maximizer(view, own.effort, region)
            z = search(Barred(success.weigh(f), bars), region(), rng)
        return embedding.proposal(z, {**memo, **success.memo, **trust.memo})

    def _model(
        self, embedding: Embedding, data: Data, walls: Array, rng: np.random.Generator
    ) -> tuple[Acquisition, View, dict[str, Any]]:
        """Log EI as a function of z, what it looks at, and what to remember of the model."""
        view = view_of(self.kernel or ("mixed" if embedding.unordered else "learned"), embedding)
        seen = replace(data, X=_look(view, data.X), pending=_look(view, data.pending))
        gp, memo = fitted_gp(
            view.kernel,
            seen,
            more_starts=row_starts(view.kernel, data.effort, rng),
            more_iterations=MORE_ITERATIONS,
        )
        best = incumbent(gp, seen)  # of told points: with the pending ones `raybo demo` ends worse
        gp = with_pending(gp, seen, _look(view, walls))
        f = acquisition_of(gp, "log_ei", best, len(data.loss))
        features = view.features
        return (f if features is None else lambda Z: f(features(Z))), view, memo

    def _maximizer(self, view: View, effort: Effort, region: Callable[[], Region]) -> Maximizer:
        search: Maximizer = Lbfgsb(effort.n_starts, effort.max_evaluations)
        if not view.smooth:
            search = CmaEs(effort.n_starts * effort.max_evaluations)
        if self.seconds is None:
            return search
        return Timed(search, lambda: region().starts, self.seconds)


def box_bound(d: int) -> float:
    """Half the width of the small box: 2 / sqrt(d).

    The coordinates of an image then have the same spread for every d, that of [-sqrt(d), sqrt(d)]
    at d = 2; with sqrt(d) three quarters of them are clipped at d = 6. The box holds an optimum of
    d_e coordinates at least as often as soon as d exceeds d_e (d_e = 6: d = 8 in 84 and d = 10 in
    98 of 100 draws).
    """
    return 2.0 / math.sqrt(d)


def row_starts(kernel: Kernel, effort: Effort, rng: np.random.Generator) -> Starts | None:
    """Return what makes further starts of a fit of learnt rows from its first start.

    The likelihood has a local maximum for each wrong guess of the rows that matter. More starts
    find better rows and cost as much time as the first. One has new rows in about half of the
    places, the others have new rows throughout, drawn as A was.
    """
    if not isinstance(kernel, Projected):
        return None
    fresh = starting_theta(kernel, FREE_NOISE)

    def redraw(theta: Theta, places: Tensor) -> Theta:
        rows = torch.as_tensor(np.exp(rng.standard_normal(fresh[ROWS].shape)))
        return {
            **theta,
            ROWS: torch.where(places[:, None], rows, theta[ROWS]),
            "lengthscale": torch.where(places, fresh["lengthscale"], theta["lengthscale"]),
        }

    def starts(theta: Theta) -> list[Theta]:
        some = torch.as_tensor(rng.random(kernel.inner.dim) < 0.5)
        n = max(1, effort.n_starts // 2)
        return [redraw(theta, some), *(redraw(fresh, some | True) for _ in range(n))]

    return starts


def _look(view: View, Z: Array) -> Array:
    return Z if view.features is None else view.features(torch.as_tensor(Z)).numpy()
