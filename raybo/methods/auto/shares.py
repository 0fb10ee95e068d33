"""Shares of the members: how well each predicts results that it was not shown.

The score of a member is the density that its model gives to each result by the others
(leave-one-out, Rasmussen & Williams 2006, section 5.4.2). It costs one inverse, needs no
history, and an old mistake is forgotten as soon as the model has learnt from it. Only the better
half of the results counts: a model of how bad the bad ones are finds no optimum.

The share of a member is proportional to the density that it gives to a result, in the geometric
mean. Where models are much alike, so are their shares, and their different searches complement
each other. Where one assumption holds and another does not, results are many times likelier under
the first, and it proposes nearly everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from raybo.arrays import Array, Bools
from raybo.surrogate.gp import GP

# Of the proposals, in equal parts: a member whose model is not believed still brings data that
# others would not look for.
FLOOR = 0.1


def better_half(loss: Array) -> Bools:
    """Which results are no worse than the median."""
    return np.asarray(loss <= np.median(loss))


def log_densities(gp: GP, loss: Array) -> Array:
    """Log density (m,) of each result of the better half by the others, per unit of the loss."""
    better = better_half(loss)
    found = gp.left_out()
    scaled = (gp.y - found.mean).square() / found.variance
    each = -0.5 * ((2.0 * math.pi * found.variance).log() + scaled)
    if each.ndim > 1:  # samples of hyperparameters: a mixture
        each = each.logsumexp(0) - math.log(len(each))
    y = gp.y.cpu().numpy()[better]
    return each.cpu().numpy()[better] + math.log(slope(y, loss[better]))


def slope(y: Array, loss: Array) -> float:
    """Standardised units per unit of the loss, which are the same all over the better half.

    1 where that is not a number: of equal losses, and of some beyond 1e300.
    """
    with np.errstate(over="ignore"):
        ratio = np.ptp(y) / spread if (spread := np.ptp(loss)) > 0.0 else 1.0
    return float(ratio) or 1.0


def shares(densities: Mapping[str, Array]) -> dict[str, float]:
    """Share of each member in the next proposals, by the log densities of the same results."""
    mean = np.array([each.mean() for each in densities.values()])
    ratio = np.exp(mean - mean.max())
    found = (1.0 - FLOOR) * ratio / ratio.sum() + FLOOR / len(ratio)
    return dict(zip(densities, found.tolist(), strict=True))
