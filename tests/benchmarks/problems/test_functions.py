from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from raybo.benchmarks.problems.functions import (
    FIXED,
    SCALABLE,
    Function,
    RppMixture,
    gaussian_pdf,
    levy,
    scaled_rosenbrock,
)
from raybo.benchmarks.problems.registry import get_problem
from raybo.study.objective import Objective

CASES = {
    **FIXED,
    **{f"{name}-{dim}": SCALABLE[name](dim) for name in SCALABLE for dim in (6, 8)},
}
KNOWN = {
    "branin": 0.397887,
    "hartmann6": -3.32237,
    "repeated-branin": 0.397887,
    "repeated-hartmann6": -3.32237,
    "levy": 0.0,
    "rosenbrock": 0.0,
    "scaled-rosenbrock": 0.0,
    "gaussian": 1.0,
}


def loss_of(function: Function):
    loss = Objective(function.mode).loss
    return lambda x: loss(function.call(x))


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_the_published_one_and_its_point_lies_in_the_domain(name):
    function = CASES[name]
    base = name if name in FIXED else name.rpartition("-")[0]
    if base in KNOWN:
        assert function.optimum == pytest.approx(KNOWN[base], abs=1e-5)
    assert np.all(np.array(function.low) <= function.optimizer)
    assert np.all(np.array(function.optimizer) <= function.high)
    assert function.dim == len(function.high) == len(function.optimizer)


@pytest.mark.parametrize("name", CASES)
def test_a_local_search_does_not_go_below_the_optimum(name):
    function = CASES[name]
    bounds = list(zip(function.low, function.high, strict=True))
    rng = np.random.default_rng(0)
    starts = [
        np.array(function.optimizer),
        *rng.uniform(function.low, function.high, (3, function.dim)),
    ]
    best = Objective(function.mode).loss(function.optimum)
    for start in starts:
        found = minimize(loss_of(function), start, bounds=bounds, method="L-BFGS-B")
        assert found.fun >= best - 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize(
    ("problem", "value"),
    [  # what BOCK's Table 1 gives for the methods that never left the centre
        ("scaled-rosenbrock-20", 8608.36),
        ("scaled-rosenbrock-100", 8608.36),
        ("levy-20", 2.35),
        ("levy-100", 9.62),
    ],
)
def test_the_centre_has_the_value_printed_by_bock(problem, value):
    chosen = get_problem(problem)
    centre = chosen.space.decode(np.full(chosen.space.dim, 0.5))
    assert chosen.objective(centre) == pytest.approx(value, abs=5e-3)


def test_gaussian_pdf_is_the_density_scaled_to_one():
    x = np.random.default_rng(1).uniform(-1, 1, 6)
    covariance = np.kron(np.eye(3), [[1, 0.9], [0.9, 1]])
    density = multivariate_normal(np.zeros(6), covariance)
    assert gaussian_pdf(x) == pytest.approx(density.pdf(x) / density.pdf(np.zeros(6)), rel=1e-12)


def test_rpp_mixture_is_the_sum_of_two_log_mixtures():
    f = RppMixture(10, seed=3)
    rng = np.random.default_rng([10, 3])
    A = np.eye(10) + rng.uniform(-0.25, 0.25, (10, 10))
    points = rng.uniform(0.1, 0.9, (3, 10))
    x = points[0] + 0.02
    total = 0.0
    for group in (slice(0, 5), slice(5, 10)):
        z = (A.T @ x)[group]
        centres = [(A.T @ p)[group] for p in points]
        density = sum(
            w * multivariate_normal(v, 0.01 * 5**0.1).pdf(z)
            for w, v in zip((0.1, 0.1, 0.8), centres, strict=True)
        )
        total += math.log(density)
    assert f(x) == pytest.approx(total, rel=1e-10)
    np.testing.assert_array_equal(f.optimizer, points[2])


def test_rpp_mixture_is_floored_far_from_every_mode():
    assert RppMixture(100)(np.full(100, 1e3)) == -1400.0


def test_scaled_rosenbrock_and_levy_are_zero_at_one():
    assert scaled_rosenbrock(np.ones(5)) == 0.0
    assert levy(np.ones(1)) == pytest.approx(0.0, abs=1e-30)
