"""Algorithm 1 of Li et al. (2016), Add-GP-UCB."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.methods.addgp.groups import Learnt
from raybo.space.box import Box
from raybo.study.optimizer import Optimizer


@pytest.fixture(scope="module")
def study() -> Optimizer:
    optimizer = Optimizer(Box(6, 0, 1), "addgp", seed=2, preset="paper", group_size=3)
    for _ in range(37):
        trial = optimizer.ask()
        x = np.asarray(trial.config["x"])
        optimizer.tell(trial.number, float(np.sum((x - 0.3) ** 2)))
    return optimizer


def test_groups_are_learnt_after_ten_points_and_every_25_rows(study: Optimizer) -> None:
    learnt = [(t.number, Learnt.from_memo(t.memo)) for t in study.trials if "groups" in t.memo]
    assert [number for number, _ in learnt] == [10, 35]
    for number, found in learnt:
        assert found.fitted == number
        assert sorted(c for group in found.groups for c in group) == list(range(6))
        assert [len(group) for group in found.groups] == [3, 3]


def test_an_additive_function_is_minimised(study: Optimizer) -> None:
    assert study.best is not None
    assert study.best.value < 0.06  # best of 37 random points: about 0.2
