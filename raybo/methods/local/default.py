"""Local search: one length-scale for all columns, and proposals from a trust region.

The assumption: what is near the best point is what counts, and there the function changes alike
along all columns. The region is that of TuRBO (raybo/methods/trust_region.py). The model is a
Matern-5/2 process with one length-scale; TuRBO has one for each column. It learns from all results
or, as TuRBO's does, from those in the region, whichever predicts these better. Bad losses are
drawn in, so that the model need not explain how bad they are. The next point is where log EI is
highest in the region; TuRBO draws it from the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.methods.base import NOTED, Data, Proposal
from raybo.methods.maxima import maxima
from raybo.methods.model import (
    fitted_gp,
    left_out_density,
    mixed_kernel,
    unordered_columns,
)
from raybo.methods.options import check_count, require_flat
from raybo.methods.trust_region import in_region
from raybo.space.any_space import AnySpace
from raybo.space.design import design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.outcomes import SHORT_TAIL

INSIDE = "inside"  # notes of the model of the results in the region


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
        """The process of the told rows, of all or of those in the region, and what to remember.

        Leave-one-out densities of the results in the region choose. Where losses grow by orders of
        magnitude on the way out, all rows say little of the region; where a wide bowl has ripples,
        the region alone does not show the bowl.
        """
        kernel = mixed_kernel(self.space, "matern52", ard=False, scaled=True)
        whole, memo = fitted_gp(kernel, data, bad_side=SHORT_TAIL)
        unordered = unordered_columns(self.space)
        inside = in_region(data, unordered, least=2 * design_size(self.space.dim))
        if inside.all():
            return whole, memo
        seen = data.noted_by(INSIDE)
        part, noted = fitted_gp(kernel, seen, bad_side=SHORT_TAIL, counts=inside)
        if noted:
            memo = {**memo, NOTED: {INSIDE: noted}}
        better = left_out_density(part, data, inside) > left_out_density(whole, data, inside)
        return part if better else whole, memo
