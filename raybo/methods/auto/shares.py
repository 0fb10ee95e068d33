"""Shares of the members: how well each predicted the results before they came.

With every proposal each member notes the mean and the deviation that it expects of the result.
When the result is told, Bayes' rule weighs the members by the densities that they gave to it. A
member may be right at one stage of a search and wrong at another, so after each result a part of
the weight is shared out again (fixed share, Herbster & Warmuth 1998): old mistakes are forgotten,
and no member starves.

A member that proposes a point because it believes too much of it loses its weight by this very
point. Densities of results that a model was fitted to, even leave-one-out, do not show that: they
prefer the model with most hyperparameters, on Rosenbrock's function in 20 dimensions `bo`, whose
points are the worst there (examples/RESULTS.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from raybo.methods.base import Data

# Of the weight, shared out after each result: of two members, the one whose predictions are wrong
# keeps a twentieth of the proposals. A fiftieth could not be told from it (examples/RESULTS.md).
SWITCH = 0.1
LATEST = 200  # results that count: of older ones less than 0.9**200 is left


def shares(names: Sequence[str], data: Data) -> dict[str, float]:
    """Share of each member in the next proposals, by what they expected of the data."""
    finished = data.finished.tolist()
    weights = [1.0 / len(names)] * len(names)
    for i in range(max(0, len(finished) - LATEST), len(finished)):
        memo = data.memos[i]
        expected = {} if memo.get("replaced", False) else memo.get("expected", {})
        if finished[i] and all(name in expected for name in names):
            pairs = [expected[name] for name in names]
            weights = updated(weights, [log_density(float(data.loss[i]), *pair) for pair in pairs])
    return dict(zip(names, weights, strict=True))


def log_density(loss: float, mean: float, deviation: float) -> float:
    """Log density of a loss, up to what is the same for all members."""
    deviation = max(deviation, sys.float_info.min)
    error = (loss - mean) / deviation
    return -math.log(deviation) - 0.5 * error * error


def updated(weights: Sequence[float], densities: Sequence[float]) -> list[float]:
    """Weights after a result with these log densities."""
    most = max(densities)
    if math.isinf(most):  # beyond all that any member expected
        return list(weights)
    parts = [weight * math.exp(one - most) for weight, one in zip(weights, densities, strict=True)]
    total = sum(parts)
    return [(1.0 - SWITCH) * part / total + SWITCH / len(parts) for part in parts]
