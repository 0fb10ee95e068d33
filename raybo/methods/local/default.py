"""Local search: one length-scale for all columns, and proposals from a trust region.

The assumption: what is near the best point is what counts, and there the function changes alike
along all columns. The region is that of TuRBO (trust_region.py). The model is a Matern-5/2 process
of all results with one length-scale; TuRBO has one for each column and the results of the present
region only. Bad losses are drawn in, so that the model need not explain how bad they are. The next
point is where log EI is highest in the region; TuRBO draws it from the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Region, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.methods.base import Data, Proposal, proposals_at
from raybo.methods.in_turn import best_in_turn
from raybo.methods.local.trust_region import LENGTH, confine, length_of
from raybo.methods.model import fitted_gp, mixed_kernel, unordered_columns, with_pending
from raybo.methods.options import check_count, require_flat
from raybo.methods.search import search_region, success_of, untried, weighed_acquisition
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.outcomes import SHORT_TAIL


@dataclass(frozen=True)
class Local:
    """Gaussian process optimisation in a trust region of a flat or mixed space."""

    space: AnySpace
    n_init: int | None = None  # points of the design; columns + 2, at most 10, unless given

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        require_flat("local", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the log expected improvement in the trust region."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the log expected improvement, each given those before it."""
        if data.needs_design(self.n_init or design_size(self.space.dim)):
            return [Proposal(x=design_point(self.space, data.number, data.seed))]
        with one_thread():
            gp, memo = self.model(data)
            success = success_of(self.space, data)
            gp = with_pending(gp, data, success.walls)
            length, centre = length_of(data), data.best_rows(1)[0]
            unordered = unordered_columns(self.space)

            def confined(whole: Region, rng: np.random.Generator) -> Region:
                return confine(whole, centre, length, unordered, rng)

            def region(rng: np.random.Generator) -> Region:
                return confined(search_region(self.space, data, rng), rng)

            if len(rngs) > 1:
                X = best_in_turn(gp, "log_ei", data, success, self.space, region, rngs)
            else:
                f = untried(weighed_acquisition(gp, "log_ei", data, success), self.space, data)
                search = Lbfgsb(data.effort.n_starts, data.effort.max_evaluations)
                whole, rng = search_region(self.space, data, rngs[0]), rngs[0]
                X = search(f, confined(whole, rng), rng)[None]
                if np.isneginf(values(f, X)).all():  # nothing is left in the region
                    X = search(f, whole, rng)[None]
        found = proposals_at(X, memo | success.memo)
        return [replace(one, memo=one.memo | {LENGTH: length}) for one in found]

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        kernel = mixed_kernel(self.space, "matern52", ard=False, scaled=True)
        return fitted_gp(kernel, data, bad_side=SHORT_TAIL)
