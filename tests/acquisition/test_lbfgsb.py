from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, rosen, rosen_der

from raybo.acquisition.maximizers.lbfgsb import climb


def negative_rosenbrock(X: torch.Tensor) -> torch.Tensor:
    return -(100.0 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1.0 - X[:, :-1]) ** 2).sum(1)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (-2.0, 0.5), (0.2, 0.9)])
def test_climb_ends_at_local_maxima_as_scipy_does(low: float, high: float) -> None:
    d = 5
    starts = np.random.default_rng(0).uniform(low, high, (8, d))
    X, value = climb(negative_rosenbrock, starts, np.full((8, d), low), np.full((8, d), high), 200)
    scipys = [
        minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", bounds=[(low, high)] * d).fun
        for start in starts
    ]
    for x, v in zip(X, value, strict=True):
        np.testing.assert_allclose(v, -rosen(x), rtol=1e-9)
        assert np.abs(np.clip(x - 1e-3 * rosen_der(x), low, high) - x).max() < 1e-5
        assert np.abs(np.array(scipys) + v).min() < 1e-4  # one of the optima that scipy ends in


def test_starts_do_not_depend_on_each_other() -> None:
    starts = np.random.default_rng(1).uniform(-2, 2, (6, 3))
    bounds = np.full((6, 3), -2.0), np.full((6, 3), 2.0)
    together, _ = climb(negative_rosenbrock, starts, *bounds, 60)
    alone = [
        climb(negative_rosenbrock, starts[i : i + 1], bounds[0][:1], bounds[1][:1], 60)[0][0]
        for i in range(6)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-6)


def test_a_badly_scaled_quadratic_takes_about_as_many_evaluations_as_with_scipy() -> None:
    scale = np.logspace(0, 3, 10)
    starts = np.random.default_rng(0).random((4, 10))
    scipys = [
        minimize(
            lambda x: (scale * (x - 0.3) ** 2).sum(),
            start,
            jac=lambda x: 2 * scale * (x - 0.3),
            method="L-BFGS-B",
            bounds=[(0, 1)] * 10,
        ).nfev
        for start in starts
    ]

    def f(X: torch.Tensor) -> torch.Tensor:
        return -(torch.tensor(scale) * (X - 0.3) ** 2).sum(1)

    _, value = climb(f, starts, np.zeros((4, 10)), np.ones((4, 10)), 2 * max(scipys))
    np.testing.assert_allclose(value, 0.0, atol=1e-6)  # from about -500
