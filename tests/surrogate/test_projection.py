"""Projections: their volumes, their alignment, and what is learnt of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from raybo.methods.rpp.projection import (
    align,
    blend,
    least_mixing,
    log_ratio,
    outer_box,
    pursue,
)
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import starting_theta
from raybo.surrogate.map import fit, likelihood, negative_log_likelihood


def near_identity(dim: int, spread: float = 0.1, seed: int = 0) -> np.ndarray:
    return np.eye(dim) + np.random.default_rng(seed).uniform(-spread, spread, (dim, dim))


def test_log_ratio_is_the_ratio_of_volumes() -> None:
    W = near_identity(4, 0.3)
    low, high = outer_box(W)
    expected = math.log(np.prod(high - low) / abs(np.linalg.det(W)))
    assert log_ratio(W) == pytest.approx(expected, rel=1e-12)
    assert log_ratio(W * np.array([2.0, -3.0, 0.1, 1.0])) == pytest.approx(expected, rel=1e-12)
    assert log_ratio(np.eye(4)) == 0.0
    assert log_ratio(np.ones((4, 4))) == math.inf


def test_log_ratio_of_many_dimensions_neither_overflows_nor_vanishes() -> None:
    W = near_identity(1000, 0.02)
    assert 100 < log_ratio(W * 1e-3) < 5000


def test_outer_box_is_the_tightest_around_the_projected_cube() -> None:
    W = near_identity(5, 0.5)
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=5))) @ W
    low, high = outer_box(W)
    np.testing.assert_allclose(low, corners.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(high, corners.max(axis=0), atol=1e-12)


def test_align_undoes_order_sign_and_scale() -> None:
    W = near_identity(6)
    rng = np.random.default_rng(3)
    order = rng.permutation(6)
    shuffled = (W * rng.uniform(0.5, 2.0, 6) * rng.choice([-1.0, 1.0], 6))[:, order]
    found, where = align(shuffled)
    np.testing.assert_allclose(found, W / np.linalg.norm(W, axis=0), atol=1e-12)
    np.testing.assert_array_equal(order[where], np.arange(6))


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.1, 10.0])
def test_least_mixing_is_the_least_that_keeps_the_ratio(delta: float) -> None:
    W, _ = align(near_identity(20, 0.2))
    limit = math.log1p(delta)
    alpha = least_mixing(W, limit)
    assert log_ratio(blend(W, alpha)) <= limit + 1e-8
    assert alpha == 0.0 or log_ratio(blend(W, alpha - 1e-3)) > limit
    assert (alpha == 1.0) == (delta == 0.0)
    assert least_mixing(np.eye(20), math.log1p(delta + 0.01)) == 0.0


def test_negative_log_likelihood_is_the_value_of_likelihood() -> None:
    rng = np.random.default_rng(0)
    A = torch.tensor(rng.standard_normal((8, 8)))
    K, y = A @ A.T + torch.eye(8), torch.tensor(rng.standard_normal(8))
    assert negative_log_likelihood(K, y) == pytest.approx(float(likelihood(K, y)[0]), rel=1e-12)


def problem(n: int = 60, dim: int = 4) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Rows, and values that change along one direction only."""
    rng = np.random.default_rng(1)
    X, direction = rng.random((n, dim)), np.ones(dim) / math.sqrt(dim)
    y = np.sin(5.0 * X @ direction)
    return torch.tensor(X), torch.tensor((y - y.mean()) / y.std()), direction


@pytest.mark.parametrize("blocks", [[[0], [1], [2], [3]], [range(4)]], ids=["greedy", "joint"])
def test_pursuit_finds_the_direction_that_matters(blocks: list) -> None:
    X, y, direction = problem()
    kernel = Additive(((0,), (1,), (2,), (3,)), ard=False)
    start = {**starting_theta(kernel), "noise": torch.tensor(1e-2, dtype=torch.float64)}
    theta = fit(kernel, X, y, [start])
    W, learnt = pursue(kernel, X, y, np.eye(4), theta, blocks, max_iterations=60)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1.0, rtol=1e-9)

    def score(W: np.ndarray, theta: dict) -> float:
        Z = X @ torch.tensor(W)
        return negative_log_likelihood(kernel(Z, Z, theta) + theta["noise"] * torch.eye(60), y)

    assert score(W, learnt) < score(np.eye(4), theta) - 10.0
    assert np.abs(direction @ W).max() > 0.98


def test_a_narrow_prior_keeps_the_projection_at_the_identity() -> None:
    X, y, _ = problem()
    kernel = Additive(((0, 1), (2, 3)), ard=False)
    theta = {**starting_theta(kernel), "noise": torch.tensor(1e-2, dtype=torch.float64)}
    W, _ = pursue(kernel, X, y, np.eye(4), theta, [range(4)], spread=1e-4)
    np.testing.assert_allclose(W, np.eye(4), atol=2e-3)


def test_pursuit_leaves_its_start_unchanged() -> None:
    X, y, _ = problem(20)
    kernel = Additive(((0, 1), (2, 3)), ard=False)
    theta = {**starting_theta(kernel), "noise": torch.tensor(1e-2, dtype=torch.float64)}
    W = np.eye(4)
    pursue(kernel, X, y, W, theta, [range(4)])
    np.testing.assert_array_equal(W, np.eye(4))
