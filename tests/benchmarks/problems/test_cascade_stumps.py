"""The cascade of stumps, against a naive loop and scikit-learn."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from raybo.benchmarks.problems import cascade_stumps
from raybo.benchmarks.problems.cascade_stumps import (
    auc,
    cascade_votes,
    parse_german,
    parse_ionosphere,
)
from raybo.benchmarks.problems.registry import get_problem


def naive_votes(X: np.ndarray, positive: np.ndarray, thresholds: np.ndarray) -> list[float]:
    n, d = X.shape
    weights, votes = [1.0 / n] * n, [0.0] * n
    for k in range(d):
        best = None
        for polarity in (1, -1):
            says = [polarity if X[i, k] > thresholds[k] else -polarity for i in range(n)]
            wrong = [(says[i] == 1) != bool(positive[i]) for i in range(n)]
            error = sum(w for w, bad in zip(weights, wrong, strict=True) if bad)
            if best is None or error < best[0]:
                best = (error, says, wrong)
        error, says, wrong = best
        alpha = 0.5 * math.log((1 - error) / error)
        for i in range(n):
            votes[i] += alpha * says[i]
            weights[i] *= math.exp(alpha if wrong[i] else -alpha)
        total = sum(weights)
        weights = [w / total for w in weights]
    return votes


def example(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((40, 5))
    return X, X.sum(1) + rng.standard_normal(40) > 2.5, rng.random(5)


@pytest.mark.parametrize("seed", range(5))
def test_votes_equal_a_naive_loop(seed: int) -> None:
    X, positive, thresholds = example(seed)
    found = cascade_votes(X, positive, thresholds)
    np.testing.assert_allclose(found, naive_votes(X, positive, thresholds), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_auc_equals_scikit_learn_with_and_without_ties(seed: int) -> None:
    X, positive, _ = example(seed)
    for scores in (X[:, 0], np.round(X[:, 0], 1)):
        assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), rel=1e-12)


def test_a_stump_without_an_error_gives_a_finite_vote() -> None:
    X = np.array([[0.0, 0.3], [0.1, 0.9], [0.9, 0.2], [1.0, 0.8]])
    positive = np.array([False, False, True, True])
    votes = cascade_votes(X, positive, np.array([0.5, 0.5]))
    assert np.isfinite(votes).all()
    assert auc(votes, positive) == 1.0


def test_files_are_read_and_scaled() -> None:
    text = "@relation r\n@attribute a real\n@data\n1, -1.0, g\n0, 0.0, b\n1, 1.0, g\n"
    X, good = parse_ionosphere(text)
    np.testing.assert_allclose(X, [[1.0, 0.0], [0.0, 0.5], [1.0, 1.0]])
    assert good.tolist() == [True, False, True]
    X, good = parse_german("   1   6   4  1 \n   2  48   2  2 \n   4  12   4  1 \n")
    np.testing.assert_allclose(X[:, 0], [0.0, 1 / 3, 1.0])
    assert good.tolist() == [True, False, True]


@pytest.mark.parametrize(("name", "dim"), [("ionosphere", 33), ("german", 24)])
def test_problem_is_the_auc_over_a_box_of_thresholds(
    name: str, dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, positive = rng.random((30, dim)), np.arange(30) % 2 == 0
    monkeypatch.setattr(cascade_stumps, "load", lambda wanted: {name: (X, positive)}[wanted])
    problem = get_problem(f"cascade-{name}")
    space = problem.space
    config = space.decode(rng.random(dim))
    wanted = roc_auc_score(positive, naive_votes(X, positive, np.asarray(config["x"])))
    assert problem.mode == "max"
    assert problem.optimum is None
    assert (space.low, space.high) == (0.0, 1.0)
    assert problem.objective(config) == pytest.approx(wanted)
    assert pickle.loads(pickle.dumps(problem.objective)) == problem.objective
