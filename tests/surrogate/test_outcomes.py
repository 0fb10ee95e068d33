from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raybo.surrogate.outcomes import standardize

FINITE = st.floats(-1e300, 1e300, allow_nan=False, width=64)


def test_ordinary_losses_are_centred_and_scaled() -> None:
    loss = np.random.default_rng(0).normal(5.0, 3.0, 200)
    np.testing.assert_allclose(standardize(loss), (loss - loss.mean()) / loss.std(), rtol=1e-9)


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
