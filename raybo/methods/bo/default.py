"""Bayesian optimisation with one Gaussian process over the whole cube.

Matern-5/2 with a length-scale per column under a prior that grows with the dimension (Hvarfner et
al. 2024), which keeps it useful in hundreds of dimensions; fitted noise; log expected improvement
(Ament et al. 2023) maximised by batched multi-start L-BFGS; pending points at their posterior mean
(Desautels et al. 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.maximizers.elastic import Elastic, largest_multiple
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.methods.base import Data, Proposal, proposals_at
from raybo.methods.feasibility import Feasibility
from raybo.methods.in_turn import best_in_turn
from raybo.methods.model import fitted_gp, mixed_kernel, unordered_columns, with_pending
from raybo.methods.options import check_choice, check_count, check_device, require_columns
from raybo.methods.search import (
    acquisition_family,
    barred,
    search_region,
    success_of,
    untried,
    weighed_acquisition,
)
from raybo.methods.trust_region import trusted
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.outcomes import SHORT_TAIL

ACQUISITIONS = ("log_ei", "ei", "ucb")
MAXIMIZERS = ("lbfgsb", "direct", "cmaes", "elastic")


@dataclass(frozen=True)
class Bo:
    """Gaussian process optimisation of a flat or mixed space."""

    space: AnySpace
    n_init: int | None = None  # points of the design; columns + 2, at most 10, unless given
    acquisition: str = "log_ei"  # one of ACQUISITIONS
    maximizer: str = "lbfgsb"  # one of MAXIMIZERS
    trust_region: bool = False  # whether only a part around the best point is searched
    device: str = "cpu"  # or "cuda"

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_choice("maximizer", self.maximizer, MAXIMIZERS)
        check_count("n_init", self.n_init)
        check_device(self.device)
        check_choice("trust_region", self.trust_region, (True, False))
        require_columns("bo", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the acquisition, each given those before it."""
        if data.needs_design(self.n_init or design_size(self.space.dim)):
            return [Proposal(x=design_point(self.space, data.number, data.seed))]
        data, rng = data.thinned(), rngs[0]
        with one_thread():
            gp, memo = self.model(data)
            success = success_of(self.space, data)
            gp = with_pending(gp, data, success.walls)
            bars = barred(self.space, data)
            trust = trusted(self.trust_region, data, unordered_columns(self.space), bars)

            def region(rng: np.random.Generator) -> Region:
                return trust.confine(search_region(self.space, data, rng, self.device), rng)

            if len(rngs) > 1 and self.maximizer == "lbfgsb":
                X = best_in_turn(gp, self.acquisition, data, success, self.space, region, rngs)
            else:
                f = self._acquisition(data, success)
                X = self._maximizer(gp, f, data)(f(gp), region(rng), rng)[None]
        return proposals_at(X, memo | success.memo, trust.memo)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it.

        The variance is fitted, so that long length-scales can model a trend, and bad losses are
        drawn in, so that the model need not explain how bad they are (`raybo bench peers-20d`).
        """
        kernel = mixed_kernel(self.space, "matern52", scaled=True)
        return fitted_gp(kernel, data, bad_side=SHORT_TAIL, device=self.device)

    def _acquisition(self, data: Data, success: Feasibility) -> Callable[[GP], Acquisition]:
        def of(gp: GP) -> Acquisition:
            f = weighed_acquisition(gp, self.acquisition, data, success)
            return untried(f, self.space, data)

        return of

    def _maximizer(self, gp: GP, f: Callable[[GP], Acquisition], data: Data) -> Maximizer:
        effort = data.effort
        if self.maximizer == "direct":
            return Direct()
        if self.maximizer == "cmaes":
            return CmaEs()
        if self.maximizer == "elastic":
            return Elastic(acquisition_family(gp, f), largest_multiple(gp), effort.n_starts)
        return Lbfgsb(effort.n_starts, effort.max_evaluations)
