"""Restarts: a search that comes back to one value has ended, and another begins elsewhere.

Results that a model foresees make it surer of itself: the variance fitted to them falls, and with
it what it expects of all other places. So a search that has found a minimum seldom leaves it. On
Hartmann6 `bo` alone ended in the second best minimum in 3 of 8 runs (seeds 1540 to 1547), found by
trial 60 and refined until trial 300. A new search begins as a study does, with a design and no
result, as those of TuRBO do (Eriksson et al. 2019, section 2). It may find the same minimum.

In a finite space no point is proposed twice, and equal values are those of different points.
"""

from __future__ import annotations

import numpy as np

from raybo.methods.base import Data

RESTART = "restart"  # entry of a memo: number of the first trial of the search
# How much of what was gained since the design still counts as a gain: digits against searches.
# Hartmann6, `bo`, seeds 1550 to 1555, 200 evaluations, all of the last results alike: with 1e-3,
# 1e-4 and 1e-5 all find the minimum, to 1e-5.1, 1e-5.5 and 1e-5.9 (medians); with 1e-6, 300
# evaluations of other seeds, three of five. Fresh seeds: examples/RESULTS.md.
SAME = 1e-5


def has_ended(data: Data, n: int) -> bool:
    """Whether a search has found its minimum: half of its last 2n results are the best one.

    A design of the space has n points.
    """
    loss = data.loss[data.finished]
    if len(loss) < 2 * n:
        return False
    loss = np.clip(loss, -1e307, 1e307)  # differences are finite
    loss = np.where(data.feasible[data.finished], loss, loss.max())
    # The design's median may be orders of magnitude worse. It counts if its best is the minimum.
    gained, spread = loss[:n].min() - loss.min(), np.median(loss[:n]) - loss.min()
    gained = gained if gained > np.finfo(float).eps * spread else spread
    alike = loss[-2 * n :] - loss.min() <= SAME * gained
    return bool(gained > 0 and alike.sum() >= n)
