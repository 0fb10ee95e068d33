"""Searches of every group of columns by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from raybo.acquisition.functions import log_ei, ucb
from raybo.acquisition.maximizers.base import with_gradient
from raybo.methods.addgp.search import best_of_each_group, exploration_of, maximize_by_group
from raybo.methods.search import acquisition_of
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.map import NOISE_HYPER, fit, starting_theta
from raybo.surrogate.outcomes import standardize

GROUPS = ((2,), (0,), (1,))


def process() -> GP:
    X = np.random.default_rng(0).random((25, 3))
    y = standardize(np.sin(7 * X[:, 0]) + np.cos(9 * X[:, 1]) + X[:, 2] ** 2)
    kernel, rows, values = Additive(GROUPS), torch.tensor(X), torch.tensor(y)
    theta = fit(kernel, rows, values, [starting_theta(kernel, NOISE_HYPER)])
    return GP.of(kernel, theta, rows, values)


def test_each_group_is_at_the_maximum_of_its_bound_on_a_fine_grid() -> None:
    gp = process()
    grid = torch.linspace(0, 2, 4001, dtype=torch.float64)[:, None].expand(-1, 3)
    expected = np.empty(3)
    for part, (column,) in enumerate(GROUPS):
        best = ucb(gp.posterior(grid, part), 2.0).argmax()
        expected[column] = grid[best, column]
    found = maximize_by_group(gp, 2.0, (np.zeros(3), np.full(3, 2.0)), np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_the_best_parts_of_the_rows_make_one_row_of_a_higher_bound() -> None:
    gp, rows = process(), np.random.default_rng(1).random((40, 3))
    x = best_of_each_group(gp, rows, 2.0)
    points = torch.tensor(np.vstack([x, rows]))
    bounds = torch.stack([ucb(gp.posterior(points, part), 2.0) for part in range(3)])
    for part, (column,) in enumerate(GROUPS):
        assert x[column] == rows[int(bounds[part, 1:].argmax()), column]
    assert bounds.sum(0)[0] > bounds.sum(0)[1:].max()


def test_exploration_is_the_formula_of_the_authors_code() -> None:
    X, y = torch.eye(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    kernel = Additive(((0, 1, 2), (3,)))
    gp = GP.of(kernel, starting_theta(kernel, NOISE_HYPER), X, y)
    assert exploration_of(gp, 7) == pytest.approx(0.2 * 3 * math.log(14))


@pytest.mark.parametrize("unordered", [(), (1,)])
def test_the_acquisition_of_the_sum_has_the_gradient_of_autograd(
    unordered: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(3)
    X, Z = rng.random((12, 4)), rng.random((6, 4))
    X[:, 1], Z[:, 1] = X[:, 1].round(), Z[:, 1].round()
    kernel = Additive(((0, 2, 1), (3,)), unordered)
    y = torch.tensor(rng.standard_normal(12))
    gp = GP.of(kernel, starting_theta(kernel, NOISE_HYPER), torch.tensor(X), y)
    f = acquisition_of(gp, "log_ei", gp.fitted().min(), 12)
    plain = log_ei(gp.posterior(torch.tensor(Z)), gp.fitted().min())
    value, gradient = with_gradient(f, Z)
    by_autograd = with_gradient(lambda rows: f(rows), Z)
    np.testing.assert_allclose(value, plain, rtol=1e-9)
    np.testing.assert_allclose(gradient, by_autograd[1], rtol=1e-7, atol=1e-10)
