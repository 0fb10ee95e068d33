from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from raybo.methods.bock.slice_sampling import slice_sweep

WIDE = np.array([[-50.0, 50.0], [-50.0, 50.0]])
COV = np.array([[1.0, 0.8], [0.8, 2.0]])


def gaussian(x: np.ndarray) -> np.ndarray:
    return -0.5 * np.einsum("ki,ij,kj->k", x, np.linalg.inv(COV), x)


def chain(density, start: np.ndarray, bounds: np.ndarray, sweeps: int, **options) -> np.ndarray:
    rng = np.random.default_rng(0)
    states, kept = start, []
    for _ in range(sweeps):
        states = slice_sweep(density, states, bounds, rng, **options)
        kept.append(states)
    return np.array(kept)  # (sweeps, k, h)


@pytest.mark.parametrize("width", [0.3, 1.5, 20.0])
def test_recovers_a_correlated_gaussian(width: float) -> None:
    kept = chain(gaussian, np.full((50, 2), 3.0), WIDE, 120, width=width)[20:].reshape(-1, 2)
    np.testing.assert_allclose(kept.mean(0), 0.0, atol=0.15)
    np.testing.assert_allclose(np.cov(kept.T), COV, atol=0.25)


def test_recovers_a_density_that_leans_on_its_bounds() -> None:
    def exponential(x: np.ndarray) -> np.ndarray:
        return -2.0 * x[:, 0]

    bounds = np.array([[0.0, 1.0]])
    kept = chain(exponential, np.full((40, 1), 0.9), bounds, 100)[10::3, :, 0].ravel()
    assert ((kept >= 0.0) & (kept <= 1.0)).all()
    truth = stats.truncexpon(b=2.0, scale=0.5)
    assert stats.kstest(kept, truth.cdf).statistic < 0.05


def test_two_modes_are_both_visited_in_proportion() -> None:
    def mixture(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(
            np.log(0.25) + stats.norm.logpdf(x[:, 0], -2, 0.5),
            np.log(0.75) + stats.norm.logpdf(x[:, 0], 2, 0.5),
        )

    kept = chain(mixture, np.zeros((40, 1)), WIDE[:1], 250, width=4.0)[50:]
    assert (kept > 0).mean() == pytest.approx(0.75, abs=0.08)


def test_chains_do_not_see_each_other_in_distribution() -> None:
    kept = chain(gaussian, np.zeros((2, 2)), WIDE, 800)[100:, :, 0]
    assert abs(np.corrcoef(kept.T)[0, 1]) < 0.15


def test_a_state_of_no_density_can_be_left() -> None:
    def hard(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 0] > 1.0, 0.0, -np.inf)

    states, rng = np.zeros((5, 1)), np.random.default_rng(1)
    for _ in range(20):
        states = slice_sweep(hard, states, np.array([[-3.0, 3.0]]), rng)
    assert (states > 1.0).all()


def test_nowhere_to_go_stays_and_arguments_are_left_alone() -> None:
    start = np.zeros((3, 2))
    start.setflags(write=False)

    def nothing(x: np.ndarray) -> np.ndarray:
        return np.full(len(x), -np.inf)

    np.testing.assert_array_equal(
        slice_sweep(nothing, start, WIDE, np.random.default_rng(0)), start
    )


def test_the_same_generator_gives_the_same_states() -> None:
    a, b = (
        slice_sweep(gaussian, np.zeros((4, 2)), WIDE, np.random.default_rng(3)) for _ in range(2)
    )
    np.testing.assert_array_equal(a, b)
