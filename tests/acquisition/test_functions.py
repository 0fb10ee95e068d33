from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from raybo.acquisition.functions import ei, log_ei, log_h, ucb
from raybo.surrogate.gp import Posterior


def posterior(mean: list[float], variance: list[float]) -> Posterior:
    return Posterior(torch.tensor(mean).double(), torch.tensor(variance).double())


def test_ei_is_the_integral_it_stands_for() -> None:
    cases = [(0.3, 0.5, 0.1), (-1.0, 2.0, 0.0), (2.0, 0.2, 0.5)]
    for mean, sd, best in cases:
        expected, _ = quad(
            lambda f, m=mean, s=sd, b=best: (b - f) * norm.pdf(f, m, s), mean - 12 * sd, best
        )
        found = ei(posterior([mean], [sd**2]), torch.tensor(best).double())
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-14)


def test_log_h_equals_the_plain_formula_where_that_is_exact() -> None:
    z = np.linspace(-5.0, 30.0, 400)
    plain = np.log(norm.pdf(z) + z * norm.cdf(z))
    np.testing.assert_allclose(log_h(torch.tensor(z)), plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("z", [-10.0, -24.9, -199.0, -201.0])
def test_log_h_is_exact_far_out(z: float) -> None:
    import mpmath

    with mpmath.workdps(60):
        exact = float(mpmath.log(mpmath.npdf(z) + z * mpmath.ncdf(z)))
    assert float(log_h(torch.tensor(z, dtype=torch.float64))) == pytest.approx(exact, abs=1e-4)


def test_log_h_is_finite_monotone_and_has_finite_gradients_over_the_whole_range() -> None:
    size = np.logspace(-100, 100, 2001)
    z = torch.tensor(np.concatenate([-size[::-1], [0.0], size]), requires_grad=True)
    value = log_h(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert torch.isfinite(value).all()
    assert torch.isfinite(slope).all()
    assert (slope >= 0).all()
    assert (value.diff() >= 0).all()


def test_log_h_is_smooth_across_its_branches() -> None:
    for edge in (-200.0, 0.0):
        z = torch.tensor([edge - 1e-7, edge + 1e-7], dtype=torch.float64, requires_grad=True)
        value = log_h(z)
        (slope,) = torch.autograd.grad(value.sum(), z)
        np.testing.assert_allclose(value[0].item(), value[1].item(), rtol=1e-6)
        np.testing.assert_allclose(slope[0].item(), slope[1].item(), rtol=1e-6)


def test_log_h_passes_gradcheck() -> None:
    z = torch.tensor([-500.0, -150.0, -3.0, 0.5, 20.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_h, (z,), rtol=1e-4)


def test_log_ei_ranks_as_ei() -> None:
    p = posterior([0.0, 0.5, 1.0, -0.2], [1.0, 0.1, 4.0, 0.01])
    best = torch.tensor(0.0).double()
    np.testing.assert_allclose(log_ei(p, best).exp(), ei(p, best))


def test_ucb_is_the_lower_confidence_bound_as_a_gain() -> None:
    found = ucb(posterior([1.0, -2.0], [4.0, 1.0]), 9.0)
    np.testing.assert_allclose(found, [-1.0 + 3 * 2.0, 2.0 + 3 * 1.0])
