"""What methods with one model of the whole space propose: maxima of its acquisition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region
from raybo.acquisition.maximizers.elastic import Elastic, largest_multiple
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.timed import Timed
from raybo.methods.base import Data, Effort, Proposal, proposals_at
from raybo.methods.in_turn import best_in_turn
from raybo.methods.model import unordered_columns, with_pending
from raybo.methods.search import (
    Barred,
    acquisition_family,
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

ByModel = Callable[[GP], Acquisition]  # the acquisition of a model
SearchOf = Callable[[GP, ByModel, Effort], Maximizer]


def climbs(gp: GP, f: ByModel, effort: Effort) -> Maximizer:  # noqa: ARG001
    """A search that climbs from the best of many points, whatever the model."""
    return Lbfgsb(effort.n_starts, effort.max_evaluations)


def elastic(gp: GP, f: ByModel, effort: Effort) -> Maximizer:
    """A search that comes down from longer length-scales."""
    return Elastic(cache(acquisition_family(gp, f)), largest_multiple(gp), effort.n_starts)


def maxima(
    space: AnySpace,
    n_init: int | None,
    model: Callable[[Data], tuple[GP, dict[str, Any]]],
    data: Data,
    rngs: Sequence[np.random.Generator],
    *,
    acquisition: str = "log_ei",
    search_of: SearchOf = climbs,
    in_turn: bool = True,
    seconds: float | None = None,
    starts_of: Callable[[GP, Region, int], Region] | None = None,
    trust_region: bool = False,
    device: str = "cpu",
) -> list[Proposal]:
    """Points of the design, then maxima of the acquisition, each given those before it.

    Parameters
    ----------
    space, n_init
        Of the method.
    model
        Makes its process of data, and what to remember of it.
    data, rngs
        What the method is asked with.
    acquisition
        Name of the acquisition.
    search_of
        Makes the search for one point.
    in_turn
        Whether several points come from one search, by climbs; else there is one point.
    seconds
        Time of a search for one point, instead of one search.
    starts_of
        Adds starts to a region, given the model and the number of told rows.
    trust_region, device
        As in `raybo.methods.bo.default`.
    """
    if data.needs_design(n_init or design_size(space.dim)):
        return [Proposal(x=design_point(space, data.number, data.seed))]
    data, rng = data.thinned(), rngs[0]
    with one_thread():
        gp, memo = model(data)
        success = success_of(space, data)
        gp = with_pending(gp, data, success.walls)
        bars = barred(space, data)
        trust = trusted(trust_region, data, unordered_columns(space), bars)

        def region(rng: np.random.Generator) -> Region:
            found = trust.confine(search_region(space, data, rng, device), rng)
            return starts_of(gp, found, len(data.loss)) if starts_of else found

        def f(gp: GP) -> Acquisition:
            return Barred(weighed_acquisition(gp, acquisition, data, success), bars)

        if len(rngs) > 1 and in_turn and seconds is None:
            X = best_in_turn(gp, acquisition, data, success, space, region, rngs)
        else:
            search, where = search_of(gp, f, data.effort), region(rng)
            if seconds is not None:
                search = Timed(search, lambda: region(rng).starts, seconds)
            X = search(f(gp), where, rng)[None]
    return proposals_at(X, memo | success.memo, trust.memo)
