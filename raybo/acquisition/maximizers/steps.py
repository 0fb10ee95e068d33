"""Random steps, where gradients end: at the edge of what is allowed, where an acquisition is -inf.

The best allowed point often lies on that edge. A climb that meets it stays there, since the next
step along its direction leads out. Random steps go on along the edge.
"""

from __future__ import annotations

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.arrays import Array

# From each row, in one evaluation, and how often: time against precision along the edge.
N_STEPS, ROUNDS = 32, 16
FIRST = 0.05  # scale of the first steps, as a share of the box: a climb has ended near the best
# What a round with and without a better point makes of the scale, which stays where seven rounds
# in ten find one.
LONGER, SHORTER = 1.5, 0.4


def climb_by_steps(
    f: Acquisition, region: Region, X: Array, best: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Climb from every row of X of values `best`; columns on grids do not move."""
    X, best = X.copy(), best.copy()
    m, d = X.shape
    width = region.upper - region.lower
    width[list(region.grids)] = 0.0
    scale = np.full(m, FIRST)
    for _ in range(ROUNDS):
        steps = scale[:, None, None] * rng.standard_normal((m, N_STEPS, d)) * width
        points = np.clip(X[:, None] + steps, region.lower, region.upper).reshape(-1, d)
        points = region.snap(points)
        gains = values(f, points, region.device).reshape(m, N_STEPS)
        top = gains.argmax(axis=1)
        gain = gains[np.arange(m), top]
        better = gain > best
        X = np.where(better[:, None], points.reshape(m, N_STEPS, d)[np.arange(m), top], X)
        best = np.where(better, gain, best)
        scale *= np.where(better, LONGER, SHORTER)
    return X, best
