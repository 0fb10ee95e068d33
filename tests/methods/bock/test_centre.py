from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from raybo.methods.bock.kernel import Cylindrical
from raybo.methods.bock.posterior import NOISE_HYPER, CylinderData, CylinderGP, HyperDensity
from raybo.surrogate.kernels.base import starting_theta
from raybo.surrogate.map import fit

D = 4
KERNEL = Cylindrical(D)


def rows(n: int = 12, seed: int = 0, centre: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    if centre:
        X[3] = 0.5
    y = np.sin(3 * X).sum(1) + X[:, 0] * X[:, 1]
    return torch.tensor(X), torch.tensor((y - y.mean()) / y.std())


def logs(k: int = 3, seed: int = 0, noise: float | None = None) -> np.ndarray:
    data = CylinderData.of(KERNEL, *rows())
    low, high = data.bounds.T
    drawn = low + (high - low) * np.random.default_rng(seed).uniform(0.3, 0.7, (k, len(low)))
    if noise is not None:
        drawn[:, -1] = math.log(noise)
    return drawn


def gram(X: np.ndarray, directions: np.ndarray, theta: dict) -> np.ndarray:
    """Kernel matrix of rows whose directions are given: a row at the centre has been lent one."""
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
    data = CylinderData.of(KERNEL, X, y)
    theta = data.theta(logs())
    gp = CylinderGP.of(data, theta, boundary=boundary)
    Q = np.random.default_rng(5).random((6, D))
    mean, variance = gp.posterior(torch.tensor(Q))
    for s in range(3):
        single = {k: v[s] for k, v in theta.items()}
        for i, x in enumerate(Q):
            want = naive_posterior(X.numpy(), y.numpy(), x, single, float(gp.mean[s]), boundary)
            np.testing.assert_allclose((mean[s, i], variance[s, i]), want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("boundary", [True, False])
def test_a_datum_at_the_centre_is_a_row_like_any_other_where_directions_fade(
    boundary: bool,
) -> None:
    X, y = rows()
    kernel = Cylindrical(D, fades=True)
    data = CylinderData.of(kernel, X, y)
    assert data.at_centre is None
    low, high = data.bounds.T
    theta = data.theta((low + 0.6 * (high - low))[None])
    gp = CylinderGP.of(data, theta, boundary=boundary)
    Q = torch.tensor(np.random.default_rng(5).random((6, D)))
    got = gp.posterior(Q)
    single = {k: v[0] for k, v in theta.items()}
    for i, q in enumerate(Q):
        own = 2 * q[None] - 1
        edge = (own / own.norm() * math.sqrt(D) + 1) / 2
        seen = torch.cat([X, edge]) if boundary else X
        A = kernel(seen, seen, single) + single["noise"] * torch.eye(len(seen))
        k = kernel(seen, q[None], single)[:, 0]
        variance = single["variance"] - k @ torch.linalg.solve(A, k)
        n = len(X)
        mean = gp.mean[0] + k[:n] @ torch.linalg.solve(A[:n, :n], y - gp.mean[0])
        np.testing.assert_allclose(got.mean[0, i], mean, rtol=1e-6)
        np.testing.assert_allclose(got.variance[0, i], variance, rtol=1e-6)


def test_mean_is_the_generalised_least_squares_estimate() -> None:
    X, y = rows(centre=False)
    data = CylinderData.of(KERNEL, X, y)
    theta = data.theta(logs())
    gp = CylinderGP.of(data, theta)
    for s in range(3):
        single = {k: v[s] for k, v in theta.items()}
        K = KERNEL(X, X, single).numpy() + float(single["noise"]) * np.eye(len(X))
        inverse = np.linalg.inv(K)
        assert float(gp.mean[s]) == pytest.approx((inverse @ y.numpy()).sum() / inverse.sum())


def test_predictive_mean_is_continuous_at_a_datum_at_the_centre() -> None:
    X, y = rows()
    data = CylinderData.of(KERNEL, X, y)
    gp = CylinderGP.of(data, data.theta(logs(noise=1e-6)))
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
    data = CylinderData.of(KERNEL, X, torch.tensor([1.0, -1.0], dtype=torch.float64))
    gp = CylinderGP.of(data, data.theta(logs()))
    Q = torch.full((2 * (D - 1), D), 0.5, dtype=torch.float64)
    for i in range(D - 1):
        Q[2 * i, i + 1], Q[2 * i + 1, i + 1] = 0.8, 0.2
    mean, variance = gp.posterior(Q)
    np.testing.assert_allclose(mean, mean[:, :1].expand_as(mean), atol=1e-12)
    np.testing.assert_allclose(variance, variance[:, :1].expand_as(variance), atol=1e-12)


def test_density_is_the_integrated_likelihood_times_the_prior() -> None:
    X, y = rows(centre=False)
    data = CylinderData.of(KERNEL, X, y)
    many = logs(4)
    got = HyperDensity(data)(many)
    want = []
    grid = np.linspace(-60.0, 60.0, 24001)  # the mean, integrated numerically
    for row in many:
        theta = {k: v[0] for k, v in data.theta(row[None]).items()}
        K = KERNEL(X, X, theta).numpy() + float(theta["noise"]) * np.eye(len(X))
        shifted = y.numpy()[None] - grid[:, None]
        log = multivariate_normal(np.zeros(len(X)), K).logpdf(shifted)
        top = log.max()
        likelihood = top + math.log(np.exp(log - top).sum() * (grid[1] - grid[0]))
        prior = 0.0
        for h, part in zip(data.hypers, np.split(row, [1, 2, 6, 7, 8]), strict=True):
            flat = torch.tensor(part)
            prior += float(part.sum())
            prior += float(h.prior.log_density(flat).sum()) if h.prior is not None else 0.0
        want.append(likelihood + prior)
    # Both are up to the same constant.
    np.testing.assert_allclose(got - got[0], np.array(want) - want[0], atol=1e-6)


def test_density_of_a_singular_matrix_is_zero_and_others_are_untouched() -> None:
    X, y = rows(centre=False)
    data = CylinderData.of(KERNEL, torch.cat([X, X]), torch.cat([y, y]))
    many = logs(2)
    many[0, -1] = -1000.0  # no noise at all, and equal rows
    density = HyperDensity(data)(many)
    assert density[0] == -np.inf
    assert np.isfinite(density[1])


def test_logs_and_theta_are_inverse_to_each_other() -> None:
    data = CylinderData.of(KERNEL, *rows())
    one = logs(1)
    theta = {k: v[0] for k, v in data.theta(one).items()}
    np.testing.assert_allclose(data.logs(theta), one, atol=1e-12)


def test_the_kernel_can_be_fitted() -> None:
    X, y = rows(40, centre=False)
    start = {
        **starting_theta(KERNEL),
        "noise": torch.tensor(NOISE_HYPER.start, dtype=torch.float64),
    }
    theta = fit(KERNEL, X, y, [start], noise=NOISE_HYPER)
    data = CylinderData.of(KERNEL, X, y)
    assert all(torch.isfinite(v).all() for v in theta.values())
    density = HyperDensity(data)
    assert density(data.logs(theta))[0] > density(data.logs(start))[0]


@pytest.mark.parametrize("centre", ["none", "told", "pending"])
def test_pending_rows_leave_the_mean_and_shrink_the_variance(centre: str) -> None:
    X, y = rows(centre=centre == "told")
    data = CylinderData.of(KERNEL, X, y)
    gp = CylinderGP.of(data, data.theta(logs(noise=1e-4)))
    pending = torch.tensor(np.random.default_rng(8).random((3, D)))
    if centre == "pending":
        pending[2] = 0.5
    after = gp.told_mean(pending)
    Q = torch.tensor(np.random.default_rng(9).random((10, D)))
    # A datum at the centre means something else to every query, so there the mean moves a little.
    moves = {"none": 1e-6, "told": 0.05, "pending": 0.2}[centre]
    np.testing.assert_allclose(after.posterior(Q).mean, gp.posterior(Q).mean, atol=moves)
    assert (after.posterior(Q).variance <= gp.posterior(Q).variance + 1e-9).all()
    off = pending[:2]
    assert (after.posterior(off).variance < 0.5 * gp.posterior(off).variance).all()
    assert gp.told_mean(pending[:0]) is gp


def test_boundary_datum_only_takes_variance() -> None:
    X, y = rows()
    data = CylinderData.of(KERNEL, X, y)
    theta = data.theta(logs())
    Q = torch.tensor(np.random.default_rng(9).random((10, D)))
    plain = CylinderGP.of(data, theta).posterior(Q)
    bounded = CylinderGP.of(data, theta, boundary=True).posterior(Q)
    np.testing.assert_allclose(plain.mean, bounded.mean)
    assert (bounded.variance < plain.variance).all()


def test_fitted_min_is_the_posterior_mean_at_the_best_datum() -> None:
    X, y = rows(centre=False)
    data = CylinderData.of(KERNEL, X, y)
    gp = CylinderGP.of(data, data.theta(logs()))
    np.testing.assert_allclose(gp.fitted_min(), gp.posterior(X).mean.min(1).values, atol=1e-8)
