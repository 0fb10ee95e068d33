from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.acquisition import functions
from raybo.acquisition.closed_form import ClosedForm, log_h
from raybo.acquisition.maximizers.base import with_gradient
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.projected import Projected
from raybo.surrogate.kernels.stationary import SE, Matern52, Stationary
from raybo.surrogate.map import NOISE_HYPER, starting_theta

KERNELS = [Matern52(3, scaled=True), Matern52(3, ard=False), SE(3), SE(3, ard=False, scaled=True)]


def process(kernel: Stationary, seed: int = 0) -> GP:
    rng = np.random.default_rng(seed)
    theta = {
        "lengthscale": torch.tensor([0.3, 0.5, 0.9] if kernel.ard else 0.4).double(),
        **({"variance": torch.tensor(1.7).double()} if kernel.scaled else {}),
        "noise": torch.tensor(1e-3).double(),
    }
    X, y = torch.tensor(rng.random((12, 3))), torch.tensor(rng.standard_normal(12))
    return GP.of(kernel, theta, X, y, mean=0.2)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("name", ["log_ei", "ei", "ucb"])
def test_values_and_gradients_equal_those_of_autograd(kernel: Stationary, name: str) -> None:
    gp = process(kernel)
    f = ClosedForm(gp, name, 2.0 if name == "ucb" else float(gp.fitted().min()))
    X = np.random.default_rng(1).random((7, 3))
    value, gradient = f.with_gradient(X)
    by_autograd = with_gradient(lambda Z: f(Z), X)
    np.testing.assert_allclose(value, by_autograd[0], rtol=1e-9)
    np.testing.assert_allclose(gradient, by_autograd[1], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("clip", [False, True])
def test_gradients_through_projections_equal_those_of_autograd(clip: bool) -> None:
    rng = np.random.default_rng(2)
    kernel = Projected(Matern52(3), 6, clip)
    theta = {
        **starting_theta(kernel, NOISE_HYPER),
        "rows": torch.tensor(np.exp(rng.standard_normal((3, 6)))),
    }
    X, y = torch.tensor(rng.standard_normal((12, 6))), torch.tensor(rng.standard_normal(12))
    gp = GP.of(kernel, theta, X, y)
    f = ClosedForm(gp, "log_ei", float(gp.fitted().min()))
    X = np.random.default_rng(1).random((7, 6))
    value, gradient = f.with_gradient(X)
    by_autograd = with_gradient(lambda Z: f(Z), X)
    np.testing.assert_allclose(value, by_autograd[0], rtol=1e-9)
    np.testing.assert_allclose(gradient, by_autograd[1], rtol=1e-7, atol=1e-10)


def test_a_point_of_the_data_has_a_finite_gradient() -> None:
    gp = process(Matern52(3, scaled=True))
    f = ClosedForm(gp, "log_ei", float(gp.fitted().min()))
    value, gradient = f.with_gradient(gp.X.numpy()[:4])
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


def test_log_h_is_the_one_of_functions_over_the_whole_range() -> None:
    size = np.logspace(-100, 100, 801)
    z = np.concatenate([-size[::-1], [0.0], size])
    value, slope = log_h(z)
    Z = torch.tensor(z, requires_grad=True)
    expected = functions.log_h(Z)
    (expected_slope,) = torch.autograd.grad(expected.sum(), Z)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(slope, expected_slope.numpy(), rtol=1e-9)
