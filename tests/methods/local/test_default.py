"""Method local: where it proposes, and what becomes of an exhausted region."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.methods.local.default import Local
from raybo.methods.trust_region import FAILURES, LENGTH
from raybo.space.box import Box
from raybo.space.parameters import Categorical
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_of


def test_proposals_after_failures_are_near_the_best_point() -> None:
    space = Box(4, 0, 1)
    X = space.sample(6 * FAILURES, np.random.default_rng(0))
    memos = [{}] * FAILURES + [{LENGTH: 0.5}] * 5 * FAILURES  # none better than the first
    data = data_of(space, len(X), np.arange(len(X)) / len(X), X=X, memos=memos)
    found = Local(space).propose(data, np.random.default_rng(0))
    assert found.memo[LENGTH] == pytest.approx(0.5**5)
    assert np.abs(np.asarray(found.x) - X[0]).max() <= 0.5**6 + 1e-9


def test_a_region_without_an_untried_point_leaves_the_others() -> None:
    space = Space({name: Categorical(["u", "v"]) for name in "abc"})
    optimizer = Optimizer(space, "local", seed=0, n_init=2)
    for _ in range(8):
        trial = optimizer.ask()
        optimizer.tell(trial, float(sum(value == "u" for value in trial.config.values())))
    assert len({tuple(trial.config.values()) for trial in optimizer.trials}) == 8


@pytest.mark.parametrize("seeds", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_narrow_valley_is_followed(seeds: int) -> None:
    """Rosenbrock in 6 dimensions: far below what as many random points find."""

    def best(method: str, seed: int) -> float:
        optimizer = Optimizer(Box(6, -5, 10), method, seed=seed)
        for _ in range(80):
            trial = optimizer.ask()
            x = np.asarray(trial.config["x"])
            value = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
            optimizer.tell(trial, float(value))
        assert optimizer.best is not None
        return float(optimizer.best.value)

    local, random = (np.median([best(m, s) for s in range(seeds)]) for m in ("local", "random"))
    assert local < 0.05 * random
