from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from raybo.methods.rembo.features import Clipped, LearntRows, Warped, image
from raybo.methods.rembo.learnt_rows import Target, fit_rows
from raybo.surrogate.kernels.base import Hyper, LogNormal, starting_theta

NOISE = Hyper("noise", (), 1e-8, 1.0, 1e-3, LogNormal(-8.0, 2.0))


def rows(m: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal((m, d)))


def points(n: int, d: int, seed: int = 1) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).uniform(-1.5, 1.5, (n, d)))


def psi(A: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The warping of Binois et al. (2015) in R^D, step by step."""
    x = np.clip(A @ z, -1, 1)
    if (np.abs(A @ z) <= 1).all():
        return A @ z
    back = A @ np.linalg.inv(A.T @ A) @ A.T @ x
    pivot = back / np.abs(back).max()
    return pivot + np.linalg.norm(x - pivot) * back / np.linalg.norm(back)


def test_clipped_distances_are_those_of_the_images() -> None:
    A, Z = rows(9, 3), points(6, 3)
    F = Clipped(A)(Z)
    for i in range(6):
        for j in range(6):
            a, b = (np.clip(A.numpy() @ Z[k].numpy(), -1, 1) for k in (i, j))
            expected = np.sqrt(((a - b) ** 2).mean())
            assert float((F[i] - F[j]).norm()) == pytest.approx(expected, abs=1e-10)


def test_warped_distances_are_those_of_the_warping() -> None:
    A, Z = rows(9, 3), points(12, 3)
    Z[0] *= 0.1  # nothing is clipped there
    F = Warped(A)(Z)
    exact = np.array([psi(A.numpy(), z) for z in Z.numpy()])
    assert (np.abs(A.numpy() @ Z[0].numpy()) < 1).all()
    distances = np.linalg.norm(exact[:, None] - exact[None], axis=2) / 3
    np.testing.assert_allclose(torch.cdist(F, F), distances, atol=1e-7)


def test_warping_is_continuous_where_clipping_begins() -> None:
    A, z = rows(9, 2), torch.tensor([[0.6, -0.8]], dtype=torch.float64)
    edge = z / (z @ A.T).abs().max()
    inside, outside = Warped(A)(edge * (1 - 1e-9)), Warped(A)(edge * (1 + 1e-9))
    np.testing.assert_allclose(inside, outside, atol=1e-4)  # the push grows as a square root


@pytest.mark.parametrize("features", [Clipped, Warped])
def test_gradients_of_the_features(features: type) -> None:
    f, Z = features(rows(7, 2)), points(5, 2).requires_grad_()
    assert torch.autograd.gradcheck(f, (Z,))


def test_the_origin_has_finite_features_and_gradients() -> None:
    Z = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    F = Warped(rows(7, 2))(Z)
    (gradient,) = torch.autograd.grad(F.sum(), Z)
    assert torch.isfinite(F).all()
    assert torch.isfinite(gradient).all()


class TestLearntRows:
    kernel = LearntRows(3, 2)

    def theta(self, seed: int = 3) -> dict[str, torch.Tensor]:
        rng = np.random.default_rng(seed)
        return {
            "rows": torch.tensor(np.exp(rng.standard_normal((2, 3)))),
            "lengthscale": torch.tensor(rng.uniform(0.2, 1.0, 2)),
        }

    def test_is_matern_on_the_clipped_products(self) -> None:
        theta, Z = self.theta(), points(6, 3)
        K = self.kernel(Z, Z, theta).numpy()
        B, scale = np.log(theta["rows"].numpy()), theta["lengthscale"].numpy()
        for i in range(6):
            for j in range(6):
                a, b = (0.5 * np.clip(B @ Z[k].numpy(), -1, 1) / scale for k in (i, j))
                r = np.sqrt(5.0) * np.linalg.norm(a - b)
                assert K[i, j] == pytest.approx((1 + r + r * r / 3) * np.exp(-r), abs=1e-8)

    def test_is_positive_semidefinite_and_agrees_with_its_diagonal(self) -> None:
        theta, Z = self.theta(), points(20, 3)
        K = self.kernel(Z, Z, theta)
        assert torch.linalg.eigvalsh(K).min() > -1e-10
        np.testing.assert_allclose(K.diagonal(), self.kernel.diag(Z, theta), atol=1e-12)

    def test_gradients_in_theta_and_in_the_points(self) -> None:
        Z, X = points(4, 3), points(3, 3, seed=5).requires_grad_()
        theta = self.theta()
        names = list(theta)

        def f(X: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
            return self.kernel(X, Z, dict(zip(names, values, strict=True)))

        assert torch.autograd.gradcheck(f, (X, *(v.requires_grad_() for v in theta.values())))

    def test_pickles_and_starts_inside_its_bounds(self) -> None:
        assert pickle.loads(pickle.dumps(self.kernel)) == self.kernel
        start = starting_theta(self.kernel)
        for hyper in self.kernel.hypers:
            assert hyper.lower < float(start[hyper.name].min()) < hyper.upper

    def test_the_prior_of_a_row_is_standard_normal(self) -> None:
        prior = next(h.prior for h in self.kernel.hypers if h.name == "rows")
        b = torch.linspace(-3, 3, 7, dtype=torch.float64)
        density = prior.log_density(b) + 0.5 * b**2
        np.testing.assert_allclose(density, density[0].expand(7), atol=1e-12)

    def test_value_and_gradient_of_the_fit_are_those_of_autograd(self) -> None:
        Z, y = points(15, 3), torch.tensor(np.random.default_rng(8).standard_normal(15))
        target = Target(self.kernel, Z.numpy(), y.numpy(), NOISE)
        theta = {**self.theta(), "noise": torch.tensor(0.02, dtype=torch.float64)}
        names = ("rows", "lengthscale", "noise")
        logs = torch.cat([theta[n].log().reshape(-1) for n in names]).requires_grad_()
        parts = dict(zip(names, torch.split(logs, [6, 2, 1]), strict=True))
        at = {"rows": parts["rows"].exp().reshape(2, 3), "lengthscale": parts["lengthscale"].exp()}
        K = self.kernel(Z, Z, at) + parts["noise"].exp() * torch.eye(15, dtype=torch.float64)
        inverse = torch.linalg.inv(K)
        mean = inverse.sum(0) @ y / inverse.sum()
        expected = 0.5 * (y - mean) @ inverse @ (y - mean) + 0.5 * torch.logdet(K)
        for hyper in (*self.kernel.hypers, NOISE):
            expected = expected - hyper.prior.log_density(parts[hyper.name]).sum()
        (slope,) = torch.autograd.grad(expected, logs)
        value, gradient = target(logs.detach().numpy())
        assert value == pytest.approx(float(expected.detach()), rel=1e-10)
        np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-9)

    def test_a_fit_finds_the_rows_that_matter(self) -> None:
        Z = points(60, 3)
        A = rows(2, 3, seed=4)
        x = image(Z, A)
        y = (x[:, 0] - 0.3) ** 2 + torch.sin(2.0 * x[:, 1])
        y = (y - y.mean()) / y.std()
        start = {
            **starting_theta(self.kernel),
            "noise": torch.tensor(1e-3, dtype=torch.float64),
        }
        theta = fit_rows(self.kernel, Z, y, [start], noise=NOISE, rng=np.random.default_rng(0))
        assert set(theta) == {"rows", "lengthscale", "noise", "mean"}
        found = theta["rows"].log().numpy()
        along = found / np.linalg.norm(found, axis=1, keepdims=True)
        true = A.numpy() / np.linalg.norm(A.numpy(), axis=1, keepdims=True)
        np.testing.assert_allclose(np.abs(along @ true.T).max(0), 1.0, atol=0.02)
