from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from raybo.methods.bock.kernel import (
    NOISE_HYPER,
    Cylindrical,
    cylinder,
    matern52_of_gap,
    polynomial,
)
from raybo.surrogate.kernels.stationary import matern52
from raybo.surrogate.map import starting_theta

THETA = {
    "variance": 1.7,
    "lengthscale": 0.4,
    "weights": [0.3, 1.1, 0.2, 0.9],
    "alpha": 0.7,
    "beta": 1.6,
    "fade": 0.3,
}


def as_theta(values: dict) -> dict[str, torch.Tensor]:
    return {k: torch.tensor(v, dtype=torch.float64) for k, v in values.items()}


def naive(x: np.ndarray, z: np.ndarray, warp: bool, fades: bool) -> float:
    """The kernel of one pair of points of the unit cube, written from eqs. 5 to 8."""
    d = len(x)
    x, z = 2 * x - 1, 2 * z - 1
    radii, directions = [], []
    for p in (x, z):
        length = math.sqrt(sum(c * c for c in p))
        radii.append(length / math.sqrt(d))
        fade = THETA["fade"] * math.sqrt(d) if fades else 0.0
        directions.append([c / math.sqrt(length**2 + fade**2) for c in p])
    if warp:
        radii = [1 - (1 - r ** THETA["alpha"]) ** THETA["beta"] for r in radii]
    t = math.sqrt(5) * abs(radii[0] - radii[1]) / THETA["lengthscale"]
    radial = (1 + t + t * t / 3) * math.exp(-t)

    def angular(a: list[float], b: list[float]) -> float:
        product = sum(s * t for s, t in zip(a, b, strict=True))
        return sum(w * product**p for p, w in enumerate(THETA["weights"]))

    a, b = directions
    return THETA["variance"] * radial * angular(a, b) / math.sqrt(angular(a, a) * angular(b, b))


@pytest.mark.parametrize("warp", [True, False])
@pytest.mark.parametrize("fades", [True, False])
def test_equals_a_naive_loop(warp: bool, fades: bool) -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.random((5, 4)), rng.random((3, 4))
    kernel = Cylindrical(4, degree=3, warp=warp, fades=fades)
    K = kernel(torch.tensor(X), torch.tensor(Z), as_theta(THETA))
    expected = [[naive(x, z, warp, fades) for z in Z] for x in X]
    np.testing.assert_allclose(K, expected, rtol=1e-10)


@pytest.mark.parametrize("fades", [True, False])
def test_a_batch_of_theta_equals_a_loop(fades: bool) -> None:
    kernel = Cylindrical(4, degree=2, fades=fades)
    X = torch.tensor(np.random.default_rng(1).random((6, 4)))
    start = starting_theta(kernel, NOISE_HYPER)
    singles = [{k: v * s for k, v in start.items()} for s in (0.7, 0.9, 1.0)]
    singles[0]["weights"] = torch.tensor([0.1, 2.0, 0.5], dtype=torch.float64)
    batch = {k: torch.stack([s[k] for s in singles]) for k in start}
    for K, single in zip(kernel(X, X, batch), singles, strict=True):
        np.testing.assert_allclose(K, kernel(X, X, single), atol=1e-14)


@pytest.mark.parametrize("direction", range(4))
def test_is_positive_semidefinite_with_a_datum_at_the_centre(direction: int) -> None:
    # Section 3.3: whatever direction the query lends to the datum at the centre.
    rng = np.random.default_rng(direction)
    X = torch.tensor(rng.random((30, 5)))
    kernel, theta = Cylindrical(5), as_theta(THETA)
    r, a = cylinder(X)
    r = torch.cat([r, r.new_zeros(1)])
    a = torch.cat([a, a[direction : direction + 1]])
    K = kernel.covariance(r, r, a @ a.T, theta)
    assert torch.linalg.eigvalsh(K).min() > -1e-12
    np.testing.assert_allclose(K.diagonal(), THETA["variance"])


def test_is_smooth_at_the_centre_where_directions_fade() -> None:
    # Two points next to the centre are alike on whichever sides of it they are.
    theta = as_theta(THETA)
    X = torch.full((3, 5), 0.5, dtype=torch.float64)
    X[1, 0] += 1e-5
    X[2, 0] -= 1e-5
    kernel = Cylindrical(5, warp=False, fades=True)
    correlations = kernel(X, X, theta) / THETA["variance"]
    np.testing.assert_allclose(correlations, 1.0, atol=1e-8)
    apart = Cylindrical(5, warp=False)(X[1:], X[1:], theta)[0, 1] / THETA["variance"]
    assert apart < 0.5  # in the paper's kernel they are opposite
    X = torch.tensor(np.random.default_rng(0).random((30, 5)))
    X[7] = 0.5
    K = kernel(X, X, theta)
    assert torch.linalg.eigvalsh(K).min() > -1e-12
    np.testing.assert_allclose(K.diagonal(), THETA["variance"])


def test_without_fading_left_it_is_the_paper_s_kernel() -> None:
    X = torch.tensor(np.random.default_rng(0).random((6, 5)))
    theta = as_theta({**THETA, "fade": 1e-6})
    K = Cylindrical(5, fades=True)(X, X, theta)
    np.testing.assert_allclose(K, Cylindrical(5)(X, X, theta), rtol=1e-9)


def test_the_supplement_s_gram_matrix_would_not_be_semidefinite() -> None:
    # Supplement, eq. 12 gives the centre the similarity 1 to all data at once; this is why the
    # centre takes one direction, that of the query, and not everybody's own.
    cosines = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    K_a = polynomial(cosines, torch.tensor([0.0, 1.0]).double())
    full = torch.ones(3, 3, dtype=torch.float64)
    full[:2, :2] = K_a
    assert torch.linalg.eigvalsh(full).min() < -0.1


def test_the_warping_is_concave_and_increasing() -> None:
    kernel = Cylindrical(2)
    r = torch.linspace(0.0, 1.0, 101, dtype=torch.float64)
    for alpha, beta in [(0.5, 1.0), (1.0, 2.0), (0.5, 2.0), (0.8, 1.3)]:
        w = kernel.warped(r, as_theta({"alpha": alpha, "beta": beta}))
        assert (w.diff() > 0).all()
        assert (w.diff().diff() < 1e-9).all()
        assert w[0] == pytest.approx(0.0, abs=1e-4)
        assert w[-1] == pytest.approx(1.0, abs=1e-11)


def test_cylinder_at_the_centre_and_at_a_corner() -> None:
    X = torch.tensor([[0.5, 0.5, 0.5], [1.0, 1.0, 0.0]], dtype=torch.float64).requires_grad_()
    r, a = cylinder(X)
    np.testing.assert_allclose(r.detach(), [0.0, 1.0])
    np.testing.assert_allclose(a.detach().norm(dim=1), [1.0, 1.0])
    (gradient,) = torch.autograd.grad(r.sum() + a.sum(), X)
    assert torch.isfinite(gradient).all()


def test_matern_of_gaps_is_matern_of_their_squares_with_its_slope() -> None:
    gap = torch.tensor([-3.0, -0.2, 0.0, 1e-9, 0.7, 30.0], dtype=torch.float64)
    np.testing.assert_allclose(matern52_of_gap(gap), matern52(gap.square() / 5.0), rtol=1e-14)
    assert torch.autograd.gradcheck(matern52_of_gap, (gap.requires_grad_(),))
