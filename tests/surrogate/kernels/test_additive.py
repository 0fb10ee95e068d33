"""The additive kernel and the posteriors of its groups, against naive loops and plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import OnColumns, Sum
from raybo.surrogate.kernels.stationary import SE

GROUPS = ((0, 3), (1, 2, 4))
THETA = {
    name: torch.tensor(value, dtype=torch.float64)
    for name, value in {"lengthscale": 0.4, "variance": 0.7, "noise": 0.01}.items()
}


def points(n: int, seed: int, dim: int = 5) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).random((n, dim)))


def process(kernel: Additive) -> GP:
    y = torch.tensor(np.random.default_rng(2).standard_normal(15))
    return GP.of(kernel, THETA, points(15, 0), y)


def test_covariance_is_the_sum_over_groups_of_a_naive_loop() -> None:
    X, Z = points(6, 0), points(4, 1)
    K = Additive(GROUPS)(X, Z, THETA)
    for i, x in enumerate(X.tolist()):
        for j, z in enumerate(Z.tolist()):
            squares = (sum((x[c] - z[c]) ** 2 for c in group) for group in GROUPS)
            total = sum(0.7 * math.exp(-sq / 0.4**2 / 2) for sq in squares)
            assert K[i, j] == pytest.approx(total, rel=1e-12)


def test_categories_are_at_distance_one_or_equal() -> None:
    kernel = Additive(((0, 1), (2,)), unordered=(1,))
    X = torch.tensor([[0.1, 0.25, 0.3], [0.4, 0.75, 0.3], [0.1, 0.25, 0.9]], dtype=torch.float64)
    K = kernel(X, X, THETA)
    first = 0.7 * math.exp(-0.5 * (0.3**2 + 1.0) / 0.16)
    assert K[0, 1] == pytest.approx(first + 0.7, rel=1e-12)
    assert K[0, 2] == pytest.approx(0.7 + 0.7 * math.exp(-0.5 * 0.36 / 0.16), rel=1e-12)


def test_posterior_of_a_group_is_that_of_a_term_of_a_plain_sum() -> None:
    gp = process(Additive(GROUPS))
    terms = tuple(OnColumns(SE(len(g), ard=False, scaled=True), g) for g in GROUPS)
    names = ("lengthscale", "variance")
    theta = {f"{j}.{name}": THETA[name] for j in range(2) for name in names}
    plain = GP.of(Sum(terms), {**theta, "noise": THETA["noise"]}, gp.X, gp.y)
    Q = points(7, 3)
    for part in range(2):
        found, expected = gp.posterior(Q, part), plain.posterior(Q, part)
        torch.testing.assert_close(found.mean, expected.mean)
        torch.testing.assert_close(found.variance, expected.variance)


def test_means_of_the_groups_add_up_to_the_whole() -> None:
    gp, Q = process(Additive(GROUPS)), points(7, 3)
    parts = sum(gp.posterior(Q, part).mean for part in range(2))
    torch.testing.assert_close(parts + gp.mean, gp.posterior(Q).mean)


def test_posterior_of_a_group_depends_on_its_columns_alone() -> None:
    gp, Q = process(Additive(GROUPS)), points(7, 3)
    moved = Q.clone()
    moved[:, list(GROUPS[1])] = 0.5
    torch.testing.assert_close(gp.posterior(Q, 0), gp.posterior(moved, 0))
