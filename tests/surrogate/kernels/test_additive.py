"""The additive kernel and the posteriors of its groups, against naive loops and plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from raybo.errors import SurrogateError
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive, GroupPosteriors
from raybo.surrogate.kernels.base import OnColumns, Sum, starting_theta
from raybo.surrogate.kernels.stationary import SE, Matern52

GROUPS = ((0, 3), (1, 2, 4))


def points(n: int, seed: int, dim: int = 5) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).random((n, dim)))


def theta(**more: float) -> dict[str, torch.Tensor]:
    values = {"variance": 0.7, "noise": 0.01, "mean": 0.2, **more}
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}


@pytest.mark.parametrize("shape", ["se", "matern52"])
def test_covariance_is_the_sum_over_groups_of_a_naive_loop(shape: str) -> None:
    X, Z = points(6, 0), points(4, 1)
    K = Additive(GROUPS, shape, ard=False)(X, Z, theta(lengthscale=0.4))
    for i, x in enumerate(X.tolist()):
        for j, z in enumerate(Z.tolist()):
            total = 0.0
            for group in GROUPS:
                sq = sum((x[c] - z[c]) ** 2 for c in group) / 0.4**2
                r = math.sqrt(5 * sq)
                se, matern = math.exp(-sq / 2), (1 + r + r * r / 3) * math.exp(-r)
                total += 0.7 * (se if shape == "se" else matern)
            assert K[i, j] == pytest.approx(total, rel=1e-12)


def test_categories_are_at_distance_one_or_equal() -> None:
    kernel = Additive(((0, 1), (2,)), ard=False, unordered=(1,))
    X = torch.tensor([[0.1, 0.25, 0.3], [0.4, 0.75, 0.3], [0.1, 0.25, 0.9]], dtype=torch.float64)
    K = kernel(X, X, theta(lengthscale=0.5))
    first = 0.7 * math.exp(-0.5 * (0.3**2 + 1.0) / 0.25)
    assert K[0, 1] == pytest.approx(first + 0.7, rel=1e-12)
    assert K[0, 2] == pytest.approx(0.7 + 0.7 * math.exp(-0.5 * 0.36 / 0.25), rel=1e-12)


@pytest.mark.parametrize("make", [SE, Matern52])
def test_group_posteriors_are_the_parts_of_a_sum_of_kernels(make: type) -> None:
    shape = "se" if make is SE else "matern52"
    X, y = points(15, 0), torch.tensor(np.random.default_rng(2).standard_normal(15))
    length = torch.linspace(0.3, 0.8, 5, dtype=torch.float64)
    gp = GP.of(Additive(GROUPS, shape), {**theta(), "lengthscale": length}, X, y)
    terms = tuple(OnColumns(make(len(g), scaled=True), g) for g in GROUPS)
    parts = {f"{j}.lengthscale": length[list(g)] for j, g in enumerate(GROUPS)}
    parts |= {f"{j}.variance": theta()["variance"] for j in range(2)}
    plain = GP.of(Sum(terms), {**parts, "noise": theta()["noise"], "mean": theta()["mean"]}, X, y)
    np.testing.assert_allclose(gp.chol, plain.chol, rtol=1e-9)

    Q = points(7, 3)
    found = GroupPosteriors.of(gp)(gp.kernel.split(Q))
    for j in range(2):
        expected = plain.posterior(Q, part=j)
        np.testing.assert_allclose(found.mean[j], expected.mean, rtol=1e-9)
        np.testing.assert_allclose(found.variance[j], expected.variance, rtol=1e-8)
    np.testing.assert_allclose(found.mean.sum(0) + 0.2, gp.posterior(Q).mean, rtol=1e-9)


@pytest.mark.parametrize("shape", ["se", "matern52"])
def test_group_posteriors_have_the_right_gradient(shape: str) -> None:
    gp = GP.of(
        Additive(GROUPS, shape, ard=False),
        theta(lengthscale=0.4),
        points(9, 0),
        points(1, 1, 9)[0],
    )
    posteriors = GroupPosteriors.of(gp)
    Z = points(8, 2, 3).reshape(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: tuple(posteriors(z)), (Z,))


def test_the_posterior_of_one_group_is_that_among_all() -> None:
    kernel = Additive(GROUPS, ard=False, unordered=(4,))
    gp = GP.of(kernel, theta(lengthscale=0.4), points(9, 0), points(1, 1, 9)[0])
    posteriors = GroupPosteriors.of(gp)
    Z = kernel.split(points(4, 2))
    for j in range(2):
        np.testing.assert_allclose(posteriors.only(j)(Z[j : j + 1]).mean[0], posteriors(Z).mean[j])


def test_group_posteriors_refuse_another_kernel() -> None:
    kernel = SE(5)
    gp = GP.of(
        kernel,
        {**starting_theta(kernel), "noise": theta()["noise"], "mean": theta()["mean"]},
        points(3, 0),
        torch.zeros(3, dtype=torch.float64),
    )
    with pytest.raises(SurrogateError, match="needs an Additive kernel"):
        GroupPosteriors.of(gp)
