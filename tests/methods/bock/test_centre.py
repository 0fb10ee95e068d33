from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from raybo.methods.bock.centre import CentreGP
from raybo.methods.bock.kernel import NOISE_HYPER, Cylindrical
from raybo.surrogate.map import NegativeLogPosterior

D = 4
KERNEL = Cylindrical(D)


def rows(n: int = 12, seed: int = 0, centre: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    if centre:
        X[3] = 0.5
    y = np.sin(3 * X).sum(1) + X[:, 0] * X[:, 1]
    return torch.tensor(X), torch.tensor((y - y.mean()) / y.std())


def theta_of(k: int = 3, noise: float | None = None) -> dict[str, torch.Tensor]:
    density = NegativeLogPosterior(KERNEL, *rows(), NOISE_HYPER)
    low, high = np.array(density.bounds).T
    logs = low + (high - low) * np.random.default_rng(0).uniform(0.3, 0.7, (k, len(low)))
    theta = density.theta(torch.tensor(logs))
    if noise is not None:
        theta["noise"] = torch.full_like(theta["noise"], noise)
    return theta


def gram(X: np.ndarray, directions: np.ndarray, theta: dict) -> np.ndarray:
    """Kernel matrix of rows with given directions: a row at the centre has none itself."""
    r = torch.tensor(np.linalg.norm(2 * X - 1, axis=1) / math.sqrt(D))
    a = torch.tensor(directions)
    return KERNEL.covariance(r, r, a @ a.T, theta).numpy()


def naive_posterior(
    X: np.ndarray, y: np.ndarray, x: np.ndarray, theta: dict, mean: float, boundary: bool
) -> tuple[float, float]:
    """Mean and variance at one query: the whole matrix is built and inverted anew."""
    direction = (2 * x - 1) / np.linalg.norm(2 * x - 1)
    points = np.concatenate([X, x[None]])
    own = 2 * points - 1
    lengths = np.linalg.norm(own, axis=1, keepdims=True)
    directions = np.where(lengths > 0, own / np.maximum(lengths, 1e-300), direction)
    K = gram(points, directions, theta)
    noise = float(theta["noise"])
    A = K[:-1, :-1] + noise * np.eye(len(X))
    value = mean + K[-1, :-1] @ np.linalg.solve(A, y - mean)
    if boundary:
        edge = (direction * math.sqrt(D) + 1) / 2
        points = np.concatenate([X, edge[None], x[None]])
        directions = np.concatenate([directions[:-1], direction[None], direction[None]])
        K = gram(points, directions, theta)
        A = K[:-1, :-1] + noise * np.eye(len(X) + 1)
    return value, K[-1, -1] - K[-1, :-1] @ np.linalg.solve(A, K[-1, :-1])


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("boundary", [True, False])
def test_posterior_equals_a_full_inversion_for_every_query(centre: bool, boundary: bool) -> None:
    X, y = rows(centre=centre)
    theta = theta_of()
    gp = CentreGP.of(KERNEL, theta, X, y, boundary=boundary)
    Q = np.random.default_rng(5).random((6, D))
    mean, variance = gp.posterior(torch.tensor(Q))
    for s in range(3):
        single = {k: v[s] for k, v in theta.items()}
        for i, x in enumerate(Q):
            want = naive_posterior(X.numpy(), y.numpy(), x, single, float(gp.gp.mean[s]), boundary)
            np.testing.assert_allclose((mean[s, i], variance[s, i]), want, rtol=1e-6, atol=1e-9)


def test_predictive_mean_is_continuous_at_a_datum_at_the_centre() -> None:
    X, y = rows()
    gp = CentreGP.of(KERNEL, theta_of(noise=1e-6), X, y)
    directions = np.random.default_rng(2).standard_normal((20, D))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    at_centre = float(y[3])
    gaps = []
    for radius in (1e-2, 1e-4, 1e-6, 1e-8):
        mean, variance = gp.posterior(torch.tensor(0.5 + 0.5 * radius * directions))
        gaps.append(float((mean - at_centre).abs().max()))
        assert (variance > 0).all()
    assert gaps[-1] < 1e-3  # from every direction; what is left is the noise and the warping
    assert gaps == sorted(gaps, reverse=True)
    centre_mean, centre_variance = gp.posterior(torch.full((1, D), 0.5, dtype=torch.float64))
    np.testing.assert_allclose(centre_mean, at_centre, atol=1e-3)
    assert (centre_variance < 1e-4).all()


def test_the_datum_at_the_centre_favours_no_direction() -> None:
    # Figure 2: two queries that the other datum cannot tell apart are predicted alike.
    X = torch.tensor([[0.5] * D, [0.9] + [0.5] * (D - 1)], dtype=torch.float64)
    gp = CentreGP.of(KERNEL, theta_of(), X, torch.tensor([1.0, -1.0], dtype=torch.float64))
    Q = torch.full((2 * (D - 1), D), 0.5, dtype=torch.float64)
    for i in range(D - 1):
        Q[2 * i, i + 1], Q[2 * i + 1, i + 1] = 0.8, 0.2
    mean, variance = gp.posterior(Q)
    np.testing.assert_allclose(mean, mean[:, :1].expand_as(mean), atol=1e-12)
    np.testing.assert_allclose(variance, variance[:, :1].expand_as(variance), atol=1e-12)


@pytest.mark.parametrize("centre", ["none", "told", "pending"])
def test_pending_rows_leave_the_mean_and_shrink_the_variance(centre: str) -> None:
    X, y = rows(centre=centre == "told")
    gp = CentreGP.of(KERNEL, theta_of(noise=1e-4), X, y)
    pending = torch.tensor(np.random.default_rng(8).random((3, D)))
    if centre == "pending":
        pending[2] = 0.5
    after = gp.condition_on_mean(pending)
    Q = torch.tensor(np.random.default_rng(9).random((10, D)))
    # A datum at the centre means something else to every query, so there the mean moves a little.
    moves = {"none": 1e-6, "told": 0.05, "pending": 0.2}[centre]
    np.testing.assert_allclose(after.posterior(Q).mean, gp.posterior(Q).mean, atol=moves)
    assert (after.posterior(Q).variance <= gp.posterior(Q).variance + 1e-9).all()
    off = pending[:2]
    assert (after.posterior(off).variance < 0.5 * gp.posterior(off).variance).all()
    assert gp.condition_on_mean(pending[:0]) is gp


def test_boundary_datum_only_takes_variance() -> None:
    X, y = rows()
    theta = theta_of()
    Q = torch.tensor(np.random.default_rng(9).random((10, D)))
    plain = CentreGP.of(KERNEL, theta, X, y).posterior(Q)
    bounded = CentreGP.of(KERNEL, theta, X, y, boundary=True).posterior(Q)
    np.testing.assert_allclose(plain.mean, bounded.mean)
    assert (bounded.variance < plain.variance).all()
