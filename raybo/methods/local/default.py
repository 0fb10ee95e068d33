"""Local search: one length-scale for all columns, and proposals from a trust region.

The assumption: what is near the best point is what counts, and there the function changes alike
along all columns. The region is that of TuRBO (raybo/methods/trust_region.py). The model is a
Matern-5/2 process of all results with one length-scale; TuRBO has one for each column and the
results of the present region only. Bad losses are drawn in, so that the model need not explain how
bad they are. The next point is where log EI is highest in the region; TuRBO draws it from the
posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.methods.base import Data, Proposal
from raybo.methods.maxima import maxima
from raybo.methods.model import fitted_gp, mixed_kernel
from raybo.methods.options import check_count, require_flat
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
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
        return maxima(self.space, self.n_init, self.model, data, rngs, trust_region=True)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        kernel = mixed_kernel(self.space, "matern52", ard=False, scaled=True)
        return fitted_gp(kernel, data, bad_side=SHORT_TAIL)
