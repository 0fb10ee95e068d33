"""Algorithm 1 of Li et al. (2016), Add-GP-UCB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raybo.methods.addgp.groups import Learnt
from raybo.space.box import Box
from raybo.study.optimizer import Optimizer


def new() -> Optimizer:
    return Optimizer(Box(6, 0, 1), "addgp", seed=2, preset="paper", group_size=3)


def loss(config: Any) -> float:
    return float(np.sum((np.asarray(config["x"]) - 0.3) ** 2))


def test_groups_are_learnt_after_ten_points_and_every_25_rows() -> None:
    study, rng = new(), np.random.default_rng(0)
    for number in range(36):
        if number in (10, 34, 35):
            trial = study.ask()
            study.tell(trial, loss(trial.config))
        else:
            config = {"x": rng.random(6)}
            study.add(config, loss(config))
    learnt = [(t.number, Learnt.from_memo(t.memo)) for t in study.trials if "groups" in t.memo]
    assert [number for number, _ in learnt] == [10, 35]
    for number, found in learnt:
        assert found.fitted == number
        assert sorted(c for group in found.groups for c in group) == list(range(6))
        assert [len(group) for group in found.groups] == [3, 3]


@pytest.mark.slow
def test_an_additive_function_is_minimised() -> None:
    study = new()
    for _ in range(37):
        trial = study.ask()
        study.tell(trial, loss(trial.config))
    assert study.best is not None
    assert study.best.value < 0.06  # best of 37 random points: about 0.2
