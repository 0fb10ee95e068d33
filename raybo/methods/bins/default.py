"""Bins that split: a model of few numbers in any number of dimensions.

The assumption: few coordinates matter, and no one knows which. All coordinates are divided into a
few bins; those of a bin share one value, up to random signs (raybo/methods/bins/partition.py). The
model is a Gaussian process with a length-scale per bin. Two coordinates that matter cannot be told
apart while they share a bin, so bins are split as results come in: a bin for every three of
them, by halving the bin that has most to hide, that with the largest relevance times its number
of coordinates. Each split halves what a bin can hide, so a hundred results tell a few coordinates
among very many apart, and bins without effect stay whole.

The next point is searched in a trust region (raybo/methods/trust_region.py), of the values of all
bins there are. Growing axis-aligned embeddings that keep their data are those of BAxUS
(Papenmeier, Nardi, Poloczek 2022), which splits all bins after the trust region has shrunk, and by
the total budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.methods.base import Data, Proposal, lane_of
from raybo.methods.bins.partition import Partition
from raybo.methods.feasibility import feasibility
from raybo.methods.in_turn import best_in_turn
from raybo.methods.model import fitted_gp, with_pending
from raybo.methods.options import check_choice, check_count, require_unconditional
from raybo.methods.rembo.embedding import require_embeddable
from raybo.methods.search import Barred, barred_images, weighed_acquisition
from raybo.methods.trust_region import trusted
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.design import design_size
from raybo.surrogate.kernels.stationary import Matern52
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.outcomes import SHORT_TAIL

# Chosen by `raybo bench bins-embedded` on seeds 40 to 49: with 16 bins at first both functions are
# found later; with a bin for every 2 results Branin is, and for every 4 Hartmann6.
BINS = 8  # at first, unless given
RESULTS_PER_BIN = 3
MOST_BINS = 100  # every point notes them: a journal would grow with the square of its trials


@dataclass(frozen=True)
class Bins:
    """Search of a space of any dimension by bins of coordinates that split."""

    space: AnySpace
    d: int | None = None  # bins at first
    k: int | None = None  # independent searches, each with an order of the coordinates of its own
    n_init: int | None = None  # points of each search's design; bins + 2, at most 10, unless given
    # `raybo bench bins-embedded`, fresh seeds: Branin in 100 and 500 dimensions.
    trust_region: bool = True  # whether only a part around the best point is searched

    restarts = True

    def __post_init__(self) -> None:
        for name in ("d", "k", "n_init"):
            check_count(name, getattr(self, name))
        check_choice("trust_region", self.trust_region, (True, False))
        require_unconditional("bins", self.space)
        require_embeddable(self.d, self.space)

    @property
    def lanes(self) -> int:
        """Number of independent searches."""
        return self.k or 1

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the log expected improvement, as a function of the values of the bins."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the log expected improvement, each given those before it."""
        bins = self.partition(data)
        own = bins.data(data)
        if own.needs_design(self.n_init or design_size(bins.d)):
            return [bins.proposal(bins.design(data.number, self.lanes), {})]
        bins = grown(bins, own)
        own = bins.data(data).thinned()
        kernel = Matern52(bins.d, scaled=True)
        with one_thread():
            gp, memo = fitted_gp(kernel, own, bad_side=SHORT_TAIL)
            success = feasibility(kernel, own)
            gp = with_pending(gp, own, success.walls)
            bars = barred_images(bins, data, own)
            trust = trusted(self.trust_region, own, (), bars)

            def region(rng: np.random.Generator) -> Region:
                return trust.confine(bins.region(own, rng), rng)

            if len(rngs) > 1 and isinstance(self.space, Box):
                U = best_in_turn(gp, "log_ei", own, success, Box(bins.d), region, rngs)
            else:
                f = Barred(weighed_acquisition(gp, "log_ei", own, success), bars)
                search = Lbfgsb(own.effort.n_starts, own.effort.max_evaluations)
                U = search(f, region(rngs[0]), rngs[0])[None]
        memo |= success.memo
        return [bins.proposal(u, {**trust.memo, **({} if i else memo)}) for i, u in enumerate(U)]

    def partition(self, data: Data) -> Partition:
        """The bins of all points so far of the lane of trial `data.number`."""
        d = self.d or min(BINS, self.space.dim)
        lane = lane_of(data.number, self.lanes)
        return Partition.of_lane(self.space, d, data.seed, lane).joined(data.all_memos)


def grown(bins: Partition, own: Data) -> Partition:
    """The partition with a bin for every three results: those with most to hide are halved.

    A bin hides another coordinate that matters by its number of coordinates, and how much that
    one matters is guessed by the relevance of the bin, the inverse square of its length-scale.
    """
    missing = min(own.n_told // RESULTS_PER_BIN, MOST_BINS) - bins.d
    last = own.last_fit("theta")
    if missing <= 0 or last is None:
        return bins
    hidden = np.array(last["theta"]["lengthscale"]) ** -2.0 * bins.sizes
    return bins.split(np.argsort(-np.where(bins.sizes > 1, hidden, 0.0))[:missing].tolist())
