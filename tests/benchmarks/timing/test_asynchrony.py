from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from raybo.benchmarks.terminal import THREAD_VARIABLES
from raybo.benchmarks.timing.asynchrony import command, simulate
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


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_optimize_is_held_against_ask_and_tell(monkeypatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    options = "--problems branin --method random --workers 2 --seeds 1 --trials 4 --seconds 0.01"
    done = CliRunner().invoke(command, options.split(), catch_exceptions=False)
    assert "optimize, 0.01 s" in done.output
    ratio = done.output.splitlines()[-2].split("│")[-2]
    assert float(ratio) == 0.0  # the same random points
