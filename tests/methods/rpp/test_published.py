"""Algorithms 2 and 3 of Li et al. (2016), PP-GP-UCB and RPP-GP-UCB."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from raybo.benchmarks.problems.registry import get_problem
from raybo.methods.rpp.projection import log_ratio
from raybo.methods.rpp.published import PublishedRpp
from raybo.space.box import Box
from raybo.study.optimizer import Optimizer
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.map import NOISE_HYPER, NegativeLogPosterior
from raybo.surrogate.outcomes import standardize

DIM = 5


def rows(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values of a function of two directions, neither of them a column."""
    X = np.random.default_rng(0).random((n, DIM))
    loss = np.sin(3 * (X[:, 0] + X[:, 1] - X[:, 2])) + (X[:, 3] - X[:, 4]) ** 2
    return torch.tensor(X), torch.tensor(standardize(loss))


@cache
def learn(delta: float) -> Any:
    method = PublishedRpp(Box(DIM, 0, 1), delta=delta, group_size=1)
    return method.learn(*rows(40), None, None, np.random.default_rng(0))


@pytest.mark.parametrize("delta", [0.0, 0.1, 2.0])
def test_the_projection_keeps_the_ratio_of_equation_8(delta: float) -> None:
    _, projection = learn(delta)
    assert log_ratio(projection.restricted) <= math.log1p(delta) + 1e-4
    if delta == 0.0:
        np.testing.assert_array_equal(projection.restricted, np.eye(DIM))


def test_without_restriction_the_projection_is_the_learnt_one() -> None:
    _, projection = learn(math.inf)
    np.testing.assert_array_equal(projection.restricted, projection.W)
    np.testing.assert_allclose(np.linalg.norm(projection.W, axis=0), 1.0, rtol=1e-5)
    assert log_ratio(projection.W) > 1.0


def test_learning_goes_on_from_the_last_projection() -> None:
    method, (X, y) = PublishedRpp(Box(DIM, 0, 1), delta=math.inf, group_size=1), rows(40)
    learnt, first = learn(math.inf)
    again, second = method.learn(X, y, learnt, first, np.random.default_rng(0))
    losses = []
    for found, projection in ((learnt, first), (again, second)):
        Z = X @ torch.tensor(projection.W)
        density = NegativeLogPosterior(Additive(found.groups), Z, y, NOISE_HYPER)
        losses.append(density(density.logs(found.theta))[0])
    assert losses[1] < losses[0]


def new() -> Optimizer:
    return Optimizer(Box(4, 0, 1), "rpp", seed=0, preset="paper", group_size=1)


def loss(config: Any) -> float:
    x = np.asarray(config["x"])
    z = np.array([x[0] + x[1], x[0] - x[1], x[2] + 0.5 * x[3], x[3] - 0.5 * x[2]])
    return float(np.sum((z - [0.8, 0.1, 0.7, 0.2]) ** 2))


def test_projections_are_learnt_after_ten_points_and_every_25_rows() -> None:
    study, rng = new(), np.random.default_rng(0)
    for number in range(36):
        if number in (10, 34, 35):
            trial = study.ask()
            x = np.asarray(trial.config["x"])
            assert ((x >= 0) & (x <= 1)).all()
            study.tell(trial, loss(trial.config))
        else:
            config = {"x": rng.random(4)}
            study.add(config, loss(config))
    assert [t.number for t in study.trials if t.memo] == [10, 35]


@pytest.mark.slow
def test_a_projected_additive_function_is_minimised_inside_the_cube() -> None:
    study = new()
    for _ in range(37):
        trial = study.ask()
        study.tell(trial, loss(trial.config))
    points = np.array([trial.config["x"] for trial in study.trials])
    assert ((points >= 0) & (points <= 1)).all()
    assert study.best is not None
    assert study.best.value < 0.1  # best of 37 random points: 0.2


@pytest.mark.slow
def test_projections_without_restriction_are_worse() -> None:
    """Section 5.1: a regret of more than 500 without, 30 with the restriction."""

    def regret(seed: int, **options: Any) -> float:
        known = get_problem("rpp-50")
        optimizer = Optimizer(
            known.space, "rpp", mode=known.mode, seed=seed, preset="paper", **options
        )
        for _ in range(200):
            trial = optimizer.ask()
            optimizer.tell(trial.number, known.objective(trial.config))
        assert optimizer.best is not None
        return abs(optimizer.best.value - known.optimum)

    restricted, free = (
        np.mean([regret(seed, group_size=10, **options) for seed in range(2)])
        for options in ({}, {"delta": math.inf})
    )
    assert restricted < free / 2
