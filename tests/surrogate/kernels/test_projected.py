"""Kernel of learnt linear combinations: values, gradients, fit, acquisition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy.stats import norm

from raybo.surrogate.kernels.base import Hyper, LogNormal
from raybo.surrogate.kernels.projected import Projected
from raybo.surrogate.kernels.stationary import SE, Matern52
from raybo.surrogate.map import NegativeLogPosterior, fit, starting_theta

NOISE = Hyper("noise", (), 1e-8, 1.0, 1e-3, LogNormal(-8.0, 2.0))
KERNELS = {
    "clipped": Projected(Matern52(2), 3, clip=True),
    "plain": Projected(Matern52(2), 3),
    "scaled": Projected(SE(2, ard=False, scaled=True), 3, clip=True),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def points(n: int, seed: int = 1) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).uniform(-1.5, 1.5, (n, 3)))


def theta_of(kernel: Projected, seed: int = 3) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    theta = starting_theta(kernel, NOISE)
    theta["rows"] = torch.tensor(np.exp(rng.standard_normal((2, 3))))
    theta["lengthscale"] = torch.tensor(rng.uniform(0.2, 1.0, theta["lengthscale"].shape))
    return theta


@pytest.mark.parametrize("clip", [True, False])
def test_is_matern_on_the_products(clip: bool) -> None:
    kernel, Z = Projected(Matern52(2), 3, clip=clip), points(6)
    theta = theta_of(kernel)
    K = kernel(Z, Z, theta).numpy()
    B, scale = np.log(theta["rows"].numpy()), theta["lengthscale"].numpy()

    def look(z: np.ndarray) -> np.ndarray:
        return (0.5 * np.clip(B @ z, -1, 1) if clip else B @ z) / scale

    for i in range(6):
        for j in range(6):
            r = np.sqrt(5.0) * np.linalg.norm(look(Z[i].numpy()) - look(Z[j].numpy()))
            assert K[i, j] == pytest.approx((1 + r + r * r / 3) * np.exp(-r), abs=1e-8)


@each_kernel
def test_is_positive_semidefinite_and_agrees_with_its_diagonal(kernel: Projected) -> None:
    theta, Z = theta_of(kernel), points(20)
    K = kernel(Z, Z, theta)
    assert torch.linalg.eigvalsh(K).min() > -1e-10
    np.testing.assert_allclose(K.diagonal(), kernel.diag(Z, theta), atol=1e-12)


def test_pickles_and_starts_inside_its_bounds() -> None:
    kernel = KERNELS["clipped"]
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    start = starting_theta(kernel, NOISE)
    for hyper in kernel.hypers:
        assert hyper.lower < float(start[hyper.name].min()) < hyper.upper


def test_the_prior_of_a_row_is_standard_normal() -> None:
    prior = next(h.prior for h in KERNELS["plain"].hypers if h.name == "rows")
    b = np.linspace(-3, 3, 7)
    density = prior.log_density(torch.tensor(b)).numpy() - norm.logpdf(b)
    np.testing.assert_allclose(density, density[0], atol=1e-12)


@each_kernel
def test_the_posterior_density_of_a_fit_and_its_gradient(kernel: Projected) -> None:
    Z, y = points(15), torch.tensor(np.random.default_rng(8).standard_normal(15))
    theta = {**theta_of(kernel), "noise": torch.tensor(0.02, dtype=torch.float64)}
    density = NegativeLogPosterior(kernel, Z, y, NOISE)
    logs = {name: value.log().requires_grad_() for name, value in theta.items()}
    at = {name: log.exp() for name, log in logs.items()}
    K = kernel(Z, Z, at) + at["noise"] * torch.eye(15, dtype=torch.float64)
    inverse = torch.linalg.inv(K)
    mean = inverse.sum(0) @ y / inverse.sum()
    expected = -torch.distributions.MultivariateNormal(mean.expand(15), K).log_prob(y)
    hypers = (*kernel.hypers, NOISE)
    for hyper in hypers:
        expected = expected - hyper.prior.log_density(logs[hyper.name]).sum()
    slopes = torch.autograd.grad(expected, [logs[h.name] for h in hypers])
    value, gradient = density(density.logs(theta))
    assert value == pytest.approx(float(expected.detach()), rel=1e-10)
    expected_gradient = torch.cat([s.reshape(-1) for s in slopes])
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-7, atol=1e-9)


def test_a_fit_finds_the_rows_that_matter() -> None:
    kernel, Z = KERNELS["clipped"], points(60)
    A = np.random.default_rng(4).standard_normal((2, 3))
    x = np.clip(Z.numpy() @ A.T, -1.0, 1.0)
    y = (x[:, 0] - 0.3) ** 2 + np.sin(2.0 * x[:, 1])
    starts = [theta_of(kernel, seed) for seed in range(6)]
    theta = fit(kernel, Z, torch.tensor((y - y.mean()) / y.std()), starts, noise=NOISE)
    found = theta["rows"].log().numpy()
    along = found / np.linalg.norm(found, axis=1, keepdims=True)
    true = A / np.linalg.norm(A, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(along @ true.T).max(0), 1.0, atol=0.02)
