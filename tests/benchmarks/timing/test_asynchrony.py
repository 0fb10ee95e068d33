from __future__ import annotations

import numpy as np
import pytest

from raybo.benchmarks.timing.asynchrony import simulate
from raybo.space.box import Box
from raybo.study.optimizer import Optimizer


def objective(config) -> float:
    return float(np.sum(np.asarray(config["x"]) ** 2))


@pytest.mark.parametrize("workers", [1, 4])
def test_random_search_finds_the_same_whatever_the_number_of_workers(workers: int) -> None:
    history = simulate(Optimizer(Box(2), "random", seed=3), objective, 12, workers)
    one = Optimizer(Box(2), "random", seed=3)
    assert len(history) == 12
    assert history == sorted(history, reverse=True)
    assert history[-1] == min(objective(one.ask().config) for _ in range(12))
