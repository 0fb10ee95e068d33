"""A config is evaluated again where results are noisy and a repeat tells more than a new point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import raybo
from raybo import Float, Space
from raybo.methods.base import Data
from raybo.methods.repeats import knowledge_gradients, repeats, room_for_repeats
from raybo.surrogate.gp import GP, NOISE
from raybo.surrogate.kernels.stationary import Stationary

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})


def of(X: list[list[float]], loss: list[float], pending: list[list[float]] | None = None) -> Data:
    rows = np.array(pending or []).reshape(-1, len(X[0]))
    return Data(9, 0, np.array(X), np.array(loss), ({},) * len(X), rows, ({},) * len(rows))


def model(data: Data, noise: float) -> GP:
    kernel = Stationary(data.X.shape[1], "matern52")
    theta = {"lengthscale": torch.full((data.X.shape[1],), 0.1), NOISE: torch.tensor(noise)}
    theta = {name: value.double() for name, value in theta.items()}
    return GP.of(kernel, theta, torch.as_tensor(data.X), torch.as_tensor(data.loss))


def distinct(opt: raybo.Optimizer) -> int:
    return len({tuple(trial.config.values()) for trial in opt.trials})


def test_the_gradient_is_the_expected_improvement_where_a_result_is_exact() -> None:
    mean, deviation = np.array([-1.0, 0.3]), 0.8
    covariance = np.diag([0.0, deviation**2])
    draws = mean[1] + deviation * np.random.default_rng(0).standard_normal(400_000)
    improvement = np.maximum(mean[0] - draws, 0.0).mean()
    found = knowledge_gradients(mean, covariance, noise=0.0)
    assert found[0] == 0.0
    assert found[1] == pytest.approx(improvement, rel=0.03)


def test_the_gradient_counts_what_a_result_says_of_other_points() -> None:
    mean, covariance = np.array([0.0, 0.1, 0.2]), np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 0.1]])
    draws = np.random.default_rng(1).standard_normal(400_000)
    for point in range(3):
        slope = covariance[:, point] / np.sqrt(covariance[point, point] + 0.5)
        wanted = -(mean[:, None] + slope[:, None] * draws).min(axis=0).mean()
        found = knowledge_gradients(mean, covariance, noise=0.5)[point]
        assert found == pytest.approx(wanted, rel=0.03, abs=0.002)


def test_a_good_row_that_may_be_lucky_is_repeated() -> None:
    rows = [[x / 10] for x in range(11)]
    data = of(rows, [1.0, 0.9, 1.1, 1.0, 0.2, 0.35, 1.0, 1.1, 0.9, 1.0, 1.1])
    sure = np.array([[0.75]])  # among bad rows: nothing to hope for
    assert repeats(model(data, 0.1), data, sure)[0] in (4, 5)
    assert repeats(model(data, 1e-8), data, sure)[0] == -1


def test_the_first_repeat_shows_whether_there_may_be_more() -> None:
    once = of([[0.1], [0.2]], [1.0, 2.0])
    assert room_for_repeats(once) == 1
    assert room_for_repeats(of([[0.1], [0.2]], [1.0, 2.0], [[0.1]])) == 0
    assert room_for_repeats(of([[0.1], [0.1]], [1.0, 1.0])) == 0
    assert room_for_repeats(of([[0.1], [0.1]], [1.0, 1.1], [[0.1]])) == np.inf


def test_a_trial_that_goes_on_is_not_a_repeat() -> None:
    data = of([[0.1], [0.1]], [1.0, 1.1])
    data = replace(data, spread=np.array([0.0, 0.3]))
    assert room_for_repeats(data) == 1


def test_an_exact_objective_is_hardly_ever_evaluated_twice_at_a_point() -> None:
    rugged = raybo.Optimizer(SPACE, seed=0)
    for _ in range(40):
        trial = rugged.ask()
        x, y = trial.config["x"], trial.config["y"]
        rugged.tell(trial.number, float(np.round(3 * x) + np.round(7 * y) % 3))
    assert distinct(rugged) >= 39
    smooth = raybo.Optimizer(SPACE, seed=0)
    for _ in range(30):
        trial = smooth.ask()
        smooth.tell(trial.number, (trial.config["x"] - 0.3) ** 2 + trial.config["y"])
    assert distinct(smooth) == 30


def test_a_noisy_objective_is_evaluated_again_at_the_same_config() -> None:
    rng, opt = np.random.default_rng(5), raybo.Optimizer(SPACE, seed=1)
    for _ in range(40):
        trial = opt.ask()
        value = (trial.config["x"] - 0.3) ** 2 + (trial.config["y"] - 0.6) ** 2
        opt.tell(trial.number, value + 0.3 * rng.standard_normal())
    assert distinct(opt) < 40
    configs = [trial.config for trial in opt.trials]
    assert all(SPACE.allows(config) for config in configs)
    again = raybo.Optimizer.from_state(opt.state())
    assert again.ask().config == opt.ask().config
