"""What methods with one model of the whole space propose: maxima of the expected improvement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.methods.base import Data, Proposal, proposals_at
from raybo.methods.in_turn import best_in_turn
from raybo.methods.model import unordered_columns, with_pending
from raybo.methods.search import (
    Barred,
    barred,
    search_region,
    success_of,
    weighed_acquisition,
)
from raybo.methods.trust_region import trusted
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread


def maxima(
    space: AnySpace,
    n_init: int | None,
    model: Callable[[Data], tuple[GP, dict[str, Any]]],
    data: Data,
    rngs: Sequence[np.random.Generator],
    trust_region: bool = False,
) -> list[Proposal]:
    """Points of the design, then maxima of log EI under the model, each given those before it."""
    if data.needs_design(n_init or design_size(space.dim)):
        return [Proposal(x=design_point(space, data.number, data.seed))]
    data = data.thinned()
    with one_thread():
        gp, memo = model(data)
        success = success_of(space, data)
        gp = with_pending(gp, data, success.walls)
        bars = barred(space, data)
        trust = trusted(trust_region, data, unordered_columns(space), bars)

        def region(rng: np.random.Generator) -> Region:
            return trust.confine(search_region(space, data, rng), rng)

        if len(rngs) > 1:
            X = best_in_turn(gp, "log_ei", data, success, space, region, rngs)
        else:
            f = Barred(weighed_acquisition(gp, "log_ei", data, success), bars)
            search = Lbfgsb(data.effort.n_starts, data.effort.max_evaluations)
            X = search(f, region(rngs[0]), rngs[0])[None]
    return proposals_at(X, memo | success.memo, trust.memo)
