"""Repeats: where results are noisy, a known row may be worth more than a new point.

A point is worth its knowledge gradient: by how much its result is likely to lower the least
posterior mean of what could then be recommended, the best known rows and the point itself (Scott,
Frazier & Powell 2011, "The correlated knowledge gradient for simulation optimization of continuous
parameters"). A repeat tells whether a good row was lucky. Without noise it tells nothing, and the
gradient of a new point is its expected improvement.

A model can take a rugged function for a noisy one. The first repeat shows which it is: where it
brings the same value, there is no other.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from raybo.arrays import Array, Indices
from raybo.lazy import torch
from raybo.methods.base import Data
from raybo.methods.model import by_expectation, with_pending
from raybo.surrogate.gp import GP, LEAST_VARIANCE, NOISE
from raybo.surrogate.map import FREE_NOISE

MOST_KNOWN = 16  # rows that may be repeated, the best: of the others little can be hoped
_SURPRISES = np.linspace(-6.0, 6.0, 97)  # of a result, in its deviations
_CHANCES = norm.pdf(_SURPRISES) * (_SURPRISES[1] - _SURPRISES[0])


def repeats(gp: GP, data: Data, X: Array) -> Indices:
    """For each row of X (k, d), in turn, the told row to evaluate in its place, or -1 for none.

    `gp` is the model of the told rows.
    """
    found = np.full(len(X), -1)
    noise, room = float(gp.theta[NOISE]), room_for_repeats(data)
    if noise <= FREE_NOISE.lower or not room:
        return found
    gp, order = with_pending(gp, data), by_expectation(gp, data)
    known = order[(data.feasible & data.finished)[order]][:MOST_KNOWN]
    mean, covariance = _joint(gp, np.concatenate([data.X[known], X]))
    for j in range(len(X)):
        rows = np.append(np.arange(len(known)), len(known) + j)
        gain = knowledge_gradients(mean[rows], covariance[np.ix_(rows, rows)], noise)
        best = int(np.argmax(gain))
        if gain[best] > gain[-1]:
            found[j], room = known[best], room - 1
            if not room:
                break
        taken = covariance[rows[best]]
        left = max(taken[rows[best]], LEAST_VARIANCE) + noise
        covariance = covariance - np.outer(taken, taken) / left
    return found


def room_for_repeats(data: Data) -> float:
    """How many repeats may be under way, by what came of earlier ones.

    Any number where two results of one row differ; none where they are the same. While there is
    none to tell, one is enough.
    """
    losses: dict[bytes, list[float]] = {}
    for row, loss, finished in zip(data.X, data.loss, data.finished, strict=True):
        if finished:
            losses.setdefault(row.tobytes(), []).append(float(loss))
    repeated = [found for found in losses.values() if len(found) > 1]
    if repeated:
        return np.inf if any(len(set(found)) > 1 for found in repeated) else 0.0
    return 0.0 if any(row.tobytes() in losses for row in data.pending) else 1.0


def knowledge_gradients(mean: Array, covariance: Array, noise: float) -> Array:
    """Knowledge gradient (m,) of one result at each of m points of these posterior moments."""
    slopes = covariance / np.sqrt(np.maximum(covariance.diagonal(), LEAST_VARIANCE) + noise)
    best = int(np.argmin(mean))
    # Set against the mean of the best point, which no result is expected to change.
    above = (mean - mean[best])[:, None, None] + (slopes - slopes[best])[..., None] * _SURPRISES
    return np.asarray(-above.min(axis=0) @ _CHANCES)


def _joint(gp: GP, rows: Array) -> tuple[Array, Array]:
    """Posterior means (m,) and covariances (m, m) at rows (m, d)."""
    with torch.no_grad():
        Z = torch.as_tensor(rows, device=gp.X.device)
        K = gp.kernel(gp.X, Z, gp.theta)
        half = torch.linalg.solve_triangular(gp.chol, K, upper=False)
        covariance = gp.kernel(Z, Z, gp.theta) - half.mT @ half
        return (K.mT @ gp.alpha + gp.mean).cpu().numpy(), covariance.cpu().numpy()
