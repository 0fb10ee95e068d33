"""Several metrics as one loss: the augmented Chebyshev function with random weights.

Knowles (2006), ParEGO: each proposal minimises another weighting of the metrics, so that all
proposals together look for the whole Pareto front.

Paper       Code         Meaning
lambda      weights      (k,) of the metrics, drawn uniformly from those that sum to 1
f_j         scaled       (n, k) losses between the best known value, 0, and the median, 1
rho         RHO          weight of the sum, so that no point on the front is only weakly optimal

Departures: the median in place of the largest value, which may be anything; weights from the whole
simplex, not from a grid on it.
"""

from __future__ import annotations

import numpy as np

from raybo.arrays import Array, Bools

RHO = 0.05  # the value of the paper


def draw_weights(n_metrics: int, seed: int, number: int) -> Array:
    """Return weights (k,) of the metrics for trial `number`; they sum to 1."""
    [key] = np.random.SeedSequence([seed, number]).spawn(1)  # not the numbers of the method
    return np.random.default_rng(key).dirichlet(np.ones(n_metrics))


def scalarised(losses: Array, weights: Array) -> Array:
    """Return one loss (n,) for the losses (n, k) of all metrics.

    Notes
    -----
    max_j w_j f_j + RHO sum_j w_j f_j, the f_j being scaled losses.
    """
    if not len(losses):
        return np.empty(0)
    best, worst = losses.min(axis=0), losses.max(axis=0)
    spread = np.median(losses, axis=0) - best
    spread = np.where(spread > 0.0, spread, np.where(worst > best, worst - best, 1.0))
    weighted = weights * (losses - best) / spread
    return np.asarray(weighted.max(axis=1) + RHO * weighted.sum(axis=1))


def pareto_front(losses: Array) -> Bools:
    """Return which rows (n, k) no other row beats, by being as good in all and better in one.

    >>> pareto_front(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0]])).tolist()
    [True, True, False]
    """
    as_good = (losses[:, None] <= losses[None]).all(axis=2)
    better = (losses[:, None] < losses[None]).any(axis=2)
    return np.asarray(~(as_good & better).any(axis=0))
