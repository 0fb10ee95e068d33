"""Bayesian optimisation with one Gaussian process over the whole cube.

Matern-5/2 with a length-scale per column under a prior that grows with the dimension (Hvarfner et
al. 2024), which keeps it useful in hundreds of dimensions; fitted noise; log expected improvement
(Ament et al. 2023) maximised by batched multi-start L-BFGS; pending points at their posterior mean
(Desautels et al. 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Maximizer
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.direct import Direct
from raybo.methods.base import Data, Effort, Proposal
from raybo.methods.maxima import ByModel, climbs, elastic, maxima
from raybo.methods.model import fitted_gp, mixed_kernel
from raybo.methods.options import check_choice, check_count, check_device, require_columns
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
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
    restarts = True

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
        return maxima(
            self.space,
            self.n_init,
            self.model,
            data,
            rngs,
            acquisition=self.acquisition,
            search_of=self._search,
            in_turn=self.maximizer == "lbfgsb",
            trust_region=self.trust_region,
            device=self.device,
        )

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it.

        The variance is fitted, so that long length-scales can model a trend, and bad losses are
        drawn in, so that the model need not explain how bad they are (`raybo bench peers-20d`).
        """
        kernel = mixed_kernel(self.space, "matern52", scaled=True)
        return fitted_gp(kernel, data, bad_side=SHORT_TAIL, device=self.device)

    def _search(self, gp: GP, f: ByModel, effort: Effort) -> Maximizer:
        if self.maximizer == "direct":
            return Direct()
        if self.maximizer == "cmaes":
            return CmaEs()
        return (elastic if self.maximizer == "elastic" else climbs)(gp, f, effort)
