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
from typing import Any

import numpy as np

from raybo.methods.base import Data, Proposal
from raybo.methods.bo.default import ACQUISITIONS
from raybo.methods.maxima import elastic, maxima
from raybo.methods.model import fitted_gp, mixed_kernel
from raybo.methods.options import (
    check_choice,
    check_count,
    check_device,
    check_number,
    check_seconds,
    require_flat,
)
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import LENGTHSCALE_BOUNDS


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
        return maxima(
            self.space,
            self.n_init,
            self.model,
            data,
            rngs,
            acquisition=self.acquisition,
            search_of=elastic,
            seconds=self.seconds,
            device=self.device,
        )

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        kernel = mixed_kernel(
            self.space, "matern52", ard=False, lengthscale=self.target_lengthscale
        )
        return fitted_gp(kernel, data, device=self.device)
