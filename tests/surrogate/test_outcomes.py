from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raybo.surrogate.outcomes import SHORT_TAIL, standardize

FINITE = st.floats(-1e300, 1e300, allow_nan=False, width=64)


def test_losses_without_a_bad_tail_are_centred_and_scaled() -> None:
    loss = np.concatenate([np.linspace(-1.0, 0.0, 50), np.linspace(0.0, 0.01, 60)])
    np.testing.assert_allclose(standardize(loss), (loss - loss.mean()) / loss.std(), rtol=1e-9)


def test_a_bad_tail_is_compressed_and_a_good_one_is_not() -> None:
    loss = np.append(np.linspace(-1.0, 1.0, 51), [8.0, -8.0])
    y = standardize(loss, SHORT_TAIL)
    scale = np.ptp(y[:51]) / 2.0
    assert y[51] - y[50] < 1.5 * scale  # of the seven that it was away
    np.testing.assert_allclose(y[0] - y[52], 7.0 * scale, rtol=0.2)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(arrays(np.float64, st.integers(1, 30), elements=FINITE))
def test_any_finite_losses_become_moderate_numbers_in_the_same_order(loss: np.ndarray) -> None:
    y = standardize(loss)
    assert np.isfinite(y).all()
    assert np.abs(y).max() <= np.sqrt(len(y)) + 1e-9
    assert (np.diff(y[np.argsort(loss, kind="stable")]) >= -1e-12).all()


def test_one_outlier_leaves_the_others_apart() -> None:
    loss = np.append(np.linspace(0.0, 1.0, 20), 1e300)
    y = standardize(loss)
    assert np.ptp(y[:20]) > 0.5


@pytest.mark.parametrize("value", [0.0, 1e300, -1e-300])
def test_equal_losses_become_zero(value: float) -> None:
    np.testing.assert_array_equal(standardize(np.full(4, value)), np.zeros(4))
