"""Projections: their volumes, their alignment, and what is learnt of them."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch

from raybo.methods.rpp.projection import (
    Projection,
    align,
    blend,
    least_mixing,
    likeliest_columns,
    likeliest_near_identity,
    log_ratio,
    outer_box,
)
from raybo.space.box import Box
from raybo.surrogate.gp import GP, add_noise
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.map import NOISE_HYPER, fit, negative_log_likelihood, starting_theta
from tests.helpers.data import data_of


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


def problem(n: int = 60, dim: int = 4) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Rows, and values that change along one direction only."""
    rng = np.random.default_rng(1)
    X, direction = rng.random((n, dim)), np.ones(dim) / math.sqrt(dim)
    y = np.sin(5.0 * X @ direction)
    return torch.tensor(X), torch.tensor((y - y.mean()) / y.std()), direction


def score(X: torch.Tensor, y: torch.Tensor, W: np.ndarray, gp: GP) -> float:
    Z = X @ torch.tensor(W)
    return negative_log_likelihood(add_noise(gp.kernel(Z, Z, gp.theta), gp.theta["noise"]), y)


def fitted(groups: tuple[tuple[int, ...], ...], n: int = 60) -> GP:
    X, y, _ = problem(n)
    kernel = Additive(groups)
    return GP.of(kernel, fit(kernel, X, y, [starting_theta(kernel, NOISE_HYPER)]), X, y)


def test_likeliest_columns_find_the_direction_that_matters() -> None:
    X, y, direction = problem()
    gp = fitted(((0,), (1,), (2,), (3,)))
    W, theta = np.eye(4), dict(gp.theta)
    for column in range(4):
        W, theta = likeliest_columns(gp.kernel, X, y, W, theta, [column], 60)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1.0, rtol=1e-9)
    learnt = GP.of(gp.kernel, theta, X, y)
    assert score(X, y, W, learnt) < score(X, y, np.eye(4), gp) - 10.0
    assert np.abs(direction @ W).max() > 0.98


def test_likeliest_columns_hold_the_others() -> None:
    X, y, _ = problem(20)
    gp = fitted(((0, 1), (2, 3)), 20)
    start = np.eye(4)
    W, _ = likeliest_columns(gp.kernel, X, y, start, gp.theta, [1, 3], 20)
    np.testing.assert_array_equal(W[:, [0, 2]], np.eye(4)[:, [0, 2]])
    assert not np.allclose(W[:, [1, 3]], np.eye(4)[:, [1, 3]])
    np.testing.assert_array_equal(start, np.eye(4))


def test_a_projection_near_the_identity_is_likelier_than_the_identity() -> None:
    gp = fitted(((0, 1), (2, 3)))
    W = likeliest_near_identity(gp, np.eye(4), 0.5, 50)
    prior = 0.5 * np.square((W - np.eye(4)) / 0.5).sum()
    assert score(gp.X, gp.y, W, gp) + prior < score(gp.X, gp.y, np.eye(4), gp)


def test_a_narrow_prior_keeps_the_projection_at_the_identity() -> None:
    W = likeliest_near_identity(fitted(((0, 1), (2, 3))), np.eye(4), 1e-4, 50)
    np.testing.assert_allclose(W, np.eye(4), atol=2e-3)


def test_a_projection_is_read_from_the_memo_it_wrote() -> None:
    written = Projection(near_identity(3), 0.25)
    memo = json.loads(json.dumps({"fitted": 5, "groups": [[0, 1, 2]], **written.to_memo()}))
    data = data_of(Box(3), 0, np.empty(0), pending=1, memos=[memo])
    read = Projection.last(data)
    assert read is not None
    np.testing.assert_array_equal(read.restricted, 0.75 * written.W + 0.25 * np.eye(3))
