"""EGP in practice: one fitted length-scale for all columns, elastic search of log EI.

The assumption is a function of one length-scale. What differs from EGP (Rana et al. 2017): the
length-scale, the noise and the mean are fitted (`model`), the kernel is Matern-5/2, the
acquisition log EI, and half of the starts of the elastic search are the best of many points
(`Elastic.n_screened`). A proposal has a number of starts instead of a time, so that a run can be
repeated; `seconds` gives it a time. `raybo bench peers-20d` and `raybo bench egp-functions` show
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region
from raybo.acquisition.maximizers.elastic import Elastic, largest_multiple
from raybo.acquisition.maximizers.timed import Timed
from raybo.methods.base import Data, Proposal, proposals_at
from raybo.methods.bo.default import ACQUISITIONS
from raybo.methods.in_turn import best_in_turn
from raybo.methods.model import fitted_gp, mixed_kernel, with_pending
from raybo.methods.options import (
    check_choice,
    check_count,
    check_device,
    check_number,
    check_seconds,
    require_flat,
)
from raybo.methods.search import (
    acquisition_family,
    search_region,
    success_of,
    untried,
    weighed_acquisition,
)
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import LENGTHSCALE_BOUNDS
from raybo.surrogate.linalg import one_thread


@dataclass(frozen=True)
class Egp:
    """Gaussian process with one length-scale; its acquisition searched elastically."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design
    target_lengthscale: float | None = None  # in the unit cube; fitted unless given
    acquisition: str = "log_ei"  # one of ACQUISITIONS
    seconds: float | None = None  # of search for each proposal, instead of one search
    device: str = "cpu"  # or "cuda"

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_count("n_init", self.n_init)
        check_device(self.device)
        check_number(
            "target_lengthscale",
            self.target_lengthscale,
            *LENGTHSCALE_BOUNDS,
            "Rana et al. have 0.1, leave it out to have it fitted",
        )
        check_seconds(self.seconds)
        require_flat("egp", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the acquisition, each given those before it.

        Several points are searched without the models of longer length-scales: each costs a
        Cholesky factor, and workers wait.
        """
        if data.needs_design(self.n_init or design_size(self.space.dim)):
            return [Proposal(x=design_point(self.space, data.number, data.seed))]
        data, rng = data.thinned(), rngs[0]
        with one_thread():
            gp, memo = self.model(data)
            success = success_of(self.space, data)
            gp = with_pending(gp, data, success.walls)

            def region(rng: np.random.Generator) -> Region:
                return search_region(self.space, data, rng, self.device)

            if len(rngs) > 1 and self.seconds is None:
                X = best_in_turn(gp, self.acquisition, data, success, self.space, region, rngs)
                return proposals_at(X, memo | success.memo)

            def f(gp: GP) -> Acquisition:
                gain = weighed_acquisition(gp, self.acquisition, data, success)
                return untried(gain, self.space, data)

            family = cache(acquisition_family(gp, f))
            search: Maximizer = Elastic(family, largest_multiple(gp), data.effort.n_starts)
            starts = region(rng)
            if self.seconds is not None:
                search = Timed(search, lambda: region(rng).starts, self.seconds)
            x = search(f(gp), starts, rng)
        return [Proposal(x=x, memo=memo | success.memo)]

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        kernel = mixed_kernel(
            self.space, "matern52", ard=False, lengthscale=self.target_lengthscale
        )
        return fitted_gp(kernel, data, device=self.device)
