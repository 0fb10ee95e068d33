from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from raybo.errors import SurrogateError
from raybo.surrogate.gp import GP, likeliest_mean
from raybo.surrogate.kernels.base import Hyper, Kernel, OnColumns, Sum, Theta
from raybo.surrogate.kernels.projected import Projected
from raybo.surrogate.kernels.stationary import SE, Matern52
from raybo.surrogate.linalg import cholesky, extend_cholesky, one_thread
from raybo.surrogate.map import (
    NOISE_HYPER,
    NegativeLogPosterior,
    fit,
    likelihood,
    negative_log_likelihood,
    starting_theta,
)
from raybo.surrogate.outcomes import standardize

D = 3
NOISE = 0.03


def tensor(value: object) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.fixture(scope="module")
def rows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    X = rng.random((25, D))
    y = np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(25)
    return tensor(X), tensor(y), tensor(rng.random((9, D)))


def theta(lengthscale: list[float], variance: float) -> dict[str, torch.Tensor]:
    return {
        "lengthscale": tensor(lengthscale),
        "variance": tensor(variance),
        "noise": tensor(NOISE),
    }


def sklearn_of(shape: str, lengthscale: list[float], variance: float) -> GaussianProcessRegressor:
    base = RBF(lengthscale) if shape == "se" else Matern(lengthscale, nu=2.5)
    kernel = ConstantKernel(variance) * base + WhiteKernel(NOISE)
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)


@pytest.mark.parametrize("shape", ["se", "matern52"])
def test_posterior_and_likelihood_equal_scikit_learn(shape: str, rows: tuple) -> None:
    X, y, Z = rows
    lengthscale, variance = [0.3, 0.7, 1.5], 1.7
    kernel = (SE if shape == "se" else Matern52)(D, scaled=True)
    gp = GP.of(kernel, theta(lengthscale, variance), X, y, mean=0.0)
    other = sklearn_of(shape, lengthscale, variance).fit(X.numpy(), y.numpy())
    mean, sd = other.predict(Z.numpy(), return_std=True)
    found = gp.posterior(Z)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.variance, sd**2 - NOISE, rtol=1e-9)
    # The same likelihood, at the mean 0 that scikit-learn has.
    K = kernel(X, X, gp.theta) + NOISE * torch.eye(len(X), dtype=torch.float64)
    logs = gp.chol.diagonal().log().sum()
    value = -0.5 * y @ gp.alpha - logs - 0.5 * len(y) * np.log(2 * np.pi)
    np.testing.assert_allclose(value, other.log_marginal_likelihood(), rtol=1e-9)
    # With its own mean, as scikit-learn finds it for y - m.
    mean_of_y = GP.of(kernel, gp.theta, X, y).mean
    shifted = sklearn_of(shape, lengthscale, variance).fit(X.numpy(), (y - mean_of_y).numpy())
    np.testing.assert_allclose(-likelihood(K, y)[0], shifted.log_marginal_likelihood(), rtol=1e-9)
    np.testing.assert_allclose(likelihood(K, y)[0], negative_log_likelihood(K, y), rtol=1e-12)


def test_likelihood_gradient_agrees_with_autograd(rows: tuple) -> None:
    X, y, _ = rows
    K = SE(D)(X, X, {"lengthscale": tensor([0.4] * D)}) + 0.1 * torch.eye(len(X)).double()
    K.requires_grad_()
    ones = torch.ones_like(y)
    mean = (ones @ torch.linalg.solve(K, y)) / (ones @ torch.linalg.solve(K, ones))
    r = y - mean
    value = 0.5 * (r @ torch.linalg.solve(K, r) + torch.logdet(K))
    (expected,) = torch.autograd.grad(value, K)
    found = likelihood(K.detach(), y)[1]
    symmetric = 0.5 * (expected + expected.T)
    np.testing.assert_allclose(found, symmetric, atol=1e-8)


def test_best_mean_has_the_highest_likelihood(rows: tuple) -> None:
    X, y, _ = rows
    K = SE(D)(X, X, {"lengthscale": tensor([0.4] * D)}) + 0.1 * torch.eye(len(X)).double()
    mean = likeliest_mean(cholesky(K), y)

    def quadratic(m: torch.Tensor) -> float:
        return float((y - m) @ torch.linalg.solve(K, y - m))

    assert quadratic(mean) < min(quadratic(mean + 0.01), quadratic(mean - 0.01))


def fitted(kernel: Kernel, X: torch.Tensor, y: torch.Tensor) -> Theta:
    return fit(kernel, X, y, [starting_theta(kernel, NOISE_HYPER)])


@pytest.mark.parametrize(
    "kernel",
    [
        Matern52(D, scaled=True),
        SE(D, ard=False),
        Matern52(D, ard=False, scaled=True, lengthscale=0.7),
        Projected(Matern52(2), D, clip=True),
        Projected(Matern52(D, ard=False, scaled=True, lengthscale=1.0), D),
    ],
    ids=str,
)
def test_gradient_of_the_posterior_density_agrees_with_differences(
    kernel: Kernel, rows: tuple
) -> None:
    X, y, _ = rows
    density = NegativeLogPosterior(kernel, 2.0 * X - 1.0, y, NOISE_HYPER)
    flat = density.logs(starting_theta(kernel, NOISE_HYPER))
    flat = flat + 0.3 * np.random.default_rng(3).standard_normal(len(flat))
    step = 1e-6
    differences = [
        (density(flat + step * e)[0] - density(flat - step * e)[0]) / (2 * step)
        for e in np.eye(len(flat))
    ]
    np.testing.assert_allclose(density(flat)[1], differences, rtol=1e-4, atol=1e-5)


def test_a_given_lengthscale_is_not_fitted(rows: tuple) -> None:
    X, y, _ = rows
    assert fitted(Matern52(D, lengthscale=0.25), X, y)["lengthscale"].tolist() == [0.25] * D


def test_a_batch_of_hyperparameters_is_a_process_for_each(rows: tuple) -> None:
    X, y, Z = rows
    kernel = OfVariance()
    batch = {"variance": tensor([0.5, 2.0]), "noise": tensor([0.1, 0.01])}
    both = GP.of(kernel, batch, X, y).condition_on_mean(Z[:2])
    for i in range(2):
        one = GP.of(kernel, {k: v[i] for k, v in batch.items()}, X, y).condition_on_mean(Z[:2])
        np.testing.assert_allclose(both.posterior(Z).mean[i], one.posterior(Z).mean, rtol=1e-9)
        np.testing.assert_allclose(
            both.posterior(Z).variance[i], one.posterior(Z).variance, rtol=1e-9
        )
        np.testing.assert_allclose(both.fitted()[i], one.fitted(), rtol=1e-9)


class OfVariance:
    """A kernel whose variance may be batched."""

    hypers = (Hyper("variance", (), 1e-4, 1e4, 1.0),)

    def __call__(self, X: torch.Tensor, Z: torch.Tensor, theta: Theta) -> torch.Tensor:
        K = SE(D)(X, Z, {"lengthscale": tensor([0.4] * D)})
        return theta["variance"][..., None, None] * K

    def diag(self, X: torch.Tensor, theta: Theta) -> torch.Tensor:
        return theta["variance"][..., None] * torch.ones(len(X)).double()


def test_fit_finds_which_columns_matter() -> None:
    rng = np.random.default_rng(1)
    X = tensor(rng.random((60, 4)))
    y = tensor(standardize(np.sin(8 * X[:, 2].numpy())))
    lengthscale = fitted(Matern52(4), X, y)["lengthscale"]
    assert lengthscale.argmin() == 2
    assert lengthscale[2] < 0.2 * lengthscale[[0, 1, 3]].min()


def test_fit_carries_the_prior_over_the_value_not_its_logarithm() -> None:
    # With no information in the data, the fit is the mode of the density over the value.
    X, y = tensor([[0.5, 0.5]]), tensor([0.0])
    kernel = Matern52(2)
    prior = kernel.hypers[0].prior
    assert prior is not None
    expected = np.exp(prior.mu - prior.sigma**2)
    np.testing.assert_allclose(fitted(kernel, X, y)["lengthscale"], expected, rtol=1e-2)


def test_condition_equals_a_fresh_process_and_leaves_the_old_one_alone(rows: tuple) -> None:
    X, y, Z = rows
    values = theta([0.3, 0.7, 1.5], 1.7)
    gp = GP.of(Matern52(D, scaled=True), values, X[:20], y[:20])
    before = gp.posterior(Z).mean.clone()
    more = gp.condition(X[20:], y[20:])
    full = GP.of(Matern52(D, scaled=True), values, X, y, gp.mean)
    np.testing.assert_allclose(more.posterior(Z).mean, full.posterior(Z).mean, rtol=1e-9)
    np.testing.assert_allclose(more.posterior(Z).variance, full.posterior(Z).variance, rtol=1e-8)
    np.testing.assert_array_equal(gp.posterior(Z).mean, before)


def test_pending_rows_shrink_the_variance_and_leave_the_mean(rows: tuple) -> None:
    X, y, Z = rows
    gp = GP.of(Matern52(D, scaled=True), theta([0.3, 0.7, 1.5], 1.7), X, y)
    pending = gp.condition_on_mean(Z[:4])
    np.testing.assert_allclose(pending.posterior(Z).mean, gp.posterior(Z).mean, atol=1e-9)
    assert (pending.posterior(Z).variance <= gp.posterior(Z).variance + 1e-12).all()
    assert (pending.posterior(Z[:4]).variance < NOISE).all()  # as after one observation


def test_fitted_is_the_posterior_mean_at_the_data(rows: tuple) -> None:
    X, y, _ = rows
    gp = GP.of(Matern52(D, scaled=True), theta([0.3, 0.7, 1.5], 1.7), X, y)
    np.testing.assert_allclose(gp.fitted(), gp.posterior(X).mean, atol=1e-10)


def test_predictive_density_is_that_of_normal_distributions(rows: tuple) -> None:
    X, y, other = rows
    gp = GP.of(Matern52(D, scaled=True), theta([0.3, 0.5, 2.0], 1.7), X, y)
    values = tensor(np.random.default_rng(1).standard_normal(len(other)))
    found = gp.posterior(other)
    density = torch.distributions.Normal(found.mean, (found.variance + NOISE).sqrt())
    expected = -float(density.log_prob(values).sum())
    assert gp.negative_log_predictive_density(other, values) == pytest.approx(expected)


def test_parts_of_a_sum_add_up(rows: tuple) -> None:
    X, y, Z = rows
    kernel = Sum((OnColumns(SE(1, scaled=True), (0,)), OnColumns(SE(2, scaled=True), (1, 2))))
    gp = GP.of(kernel, starting_theta(kernel, NOISE_HYPER), X, y, mean=0.5)
    parts = gp.posterior(Z, part=0).mean + gp.posterior(Z, part=1).mean
    np.testing.assert_allclose(parts + 0.5, gp.posterior(Z).mean, rtol=1e-9)
    with pytest.raises(SurrogateError, match="needs a Sum"):
        GP.of(SE(D), starting_theta(SE(D), NOISE_HYPER), X, y).posterior(Z, part=0)


def test_a_wrong_name_in_theta_is_refused(rows: tuple) -> None:
    X, y, _ = rows
    with pytest.raises(SurrogateError, match="lengthscales"):
        GP.of(SE(D), {"lengthscales": tensor([1.0] * D), "noise": tensor(0.1)}, X, y)


def test_cholesky_of_equal_rows_uses_jitter_and_reports_when_none_helps() -> None:
    chol = cholesky(torch.ones(5, 5, dtype=torch.float64))
    np.testing.assert_allclose(chol @ chol.T, np.ones((5, 5)), atol=1e-3)
    with pytest.raises(SurrogateError, match="3 rows: no Cholesky factor"):
        cholesky(-torch.eye(3, dtype=torch.float64))


def test_extended_factor_equals_the_factor_of_the_whole() -> None:
    rng = np.random.default_rng(2)
    root = tensor(rng.standard_normal((8, 8)))
    K = root @ root.T + torch.eye(8).double()
    extended = extend_cholesky(cholesky(K[:5, :5]), K[:5, 5:], K[5:, 5:])
    np.testing.assert_allclose(extended, torch.linalg.cholesky(K), rtol=1e-10, atol=1e-12)


def test_one_thread_holds_for_libraries_that_are_loaded_in_it() -> None:
    code = """
import numpy as np
from threadpoolctl import threadpool_info
from raybo.surrogate.linalg import inverse_and_log_det, one_thread

with one_thread():
    inverse_and_log_det(np.eye(3))
    print([pool["num_threads"] for pool in threadpool_info()])
"""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert set(json.loads(done.stdout)) == {1}


def test_one_thread_restores_the_number_of_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
