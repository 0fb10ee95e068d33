from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from raybo.methods.bock.kernel import NOISE_HYPER, Cylindrical
from raybo.methods.bock.samples import mean_ei, sweep
from raybo.surrogate.gp import GP, Posterior
from raybo.surrogate.kernels.base import Hyper, LogNormal
from raybo.surrogate.map import NegativeLogPosterior, starting_theta


def data(n: int = 10, d: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    X = np.random.default_rng(0).random((n, d))
    X[0] = 0.5
    y = ((X - 0.6) ** 2).sum(1)
    return torch.tensor(X), torch.tensor((y - y.mean()) / y.std())


class Gaussian:
    """exp(-(x - z)^2 / 2 l^2) in one dimension, of batches of length-scales l."""

    hypers = (Hyper("lengthscale", (), 0.05, 5.0, 0.5, LogNormal(-1.0, 0.7)),)

    def __call__(self, X: torch.Tensor, Z: torch.Tensor, theta: dict) -> torch.Tensor:
        return torch.exp(-0.5 * ((X - Z.T) / theta["lengthscale"][..., None, None]) ** 2)


def test_values_are_those_of_scipy_with_the_likeliest_mean_and_the_prior() -> None:
    X, y = data()
    kernel = Cylindrical(3, fades=True)
    density = NegativeLogPosterior(kernel, X, y, NOISE_HYPER)
    start = density.logs(starting_theta(kernel, NOISE_HYPER))
    logs = start + 0.3 * np.random.default_rng(1).standard_normal((4, len(start)))
    for row, found in zip(logs, density.values(logs), strict=True):
        theta = density.theta(torch.tensor(row))
        K = kernel(X, X, theta).numpy() + float(theta["noise"]) * np.eye(len(y))
        ones = np.linalg.solve(K, np.ones(len(y)))
        mean = ones @ y.numpy() / ones.sum()
        likelihood = multivariate_normal(np.full(len(y), mean), K).logpdf(y.numpy())
        prior = sum(
            float(h.prior.log_density(theta[h.name].log()).sum())
            for h in (*kernel.hypers, NOISE_HYPER)
            if h.prior is not None
        )
        assert found == pytest.approx(-likelihood - prior, rel=1e-9)
        assert found == pytest.approx(density(row)[0], rel=1e-9)


def test_sweeps_sample_the_posterior_of_the_logarithms() -> None:
    # One length-scale and one noise, held: the posterior of the first on a grid.
    X, y = data(8, 1)
    kernel = Gaussian()
    noise = Hyper("noise", (), 0.01, 0.0100001, 0.01)
    density = NegativeLogPosterior(kernel, X, y, noise)
    rng = np.random.default_rng(0)
    states = np.repeat(density.logs(starting_theta(kernel, noise))[None], 40, axis=0)
    kept = []
    for i in range(30):
        states = sweep(density, states, rng)
        if i >= 5:
            kept.append(states[:, 0])
    grid = np.linspace(*density.bounds[0], 4001)
    log = grid - density.values(np.stack([grid, np.full_like(grid, math.log(0.01))], axis=1))
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = weights @ grid
    deviation = math.sqrt(weights @ (grid - mean) ** 2)
    drawn = np.concatenate(kept)
    assert drawn.mean() == pytest.approx(mean, abs=0.15 * deviation)
    assert drawn.std() == pytest.approx(deviation, rel=0.15)


def test_acquisition_is_the_logarithm_of_the_mean_of_the_improvements() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.standard_normal((3, 7)), rng.random((3, 7))
    best = np.array([-1.0, -0.9, -1.1])
    f = mean_ei(
        lambda X: Posterior(torch.tensor(mean[:, : len(X)]), torch.tensor(variance[:, : len(X)])),
        torch.tensor(best),
        n_rows=5,
    )
    z = (best[:, None] - mean) / np.sqrt(variance)
    improvement = np.sqrt(variance) * (z * norm.cdf(z) + norm.pdf(z))
    np.testing.assert_allclose(f(torch.zeros(7, 2)).exp(), improvement.mean(0), rtol=1e-9)


def test_points_in_parts_have_the_same_acquisition() -> None:
    X, y = data()
    kernel = Cylindrical(3, fades=True)
    start = starting_theta(kernel, NOISE_HYPER)
    theta = {k: torch.stack([v, 0.8 * v]) for k, v in start.items()}
    gp = GP.of(kernel, theta, X, y)
    best = gp.fitted().min(-1).values
    Q = torch.tensor(np.random.default_rng(1).random((50, 3)))
    whole = mean_ei(gp.posterior, best, n_rows=1)(Q)
    parts = mean_ei(gp.posterior, best, n_rows=20_000)(Q)  # five at a time
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
