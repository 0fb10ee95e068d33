from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import yeojohnson

from raybo.surrogate.outcomes import yeo_johnson

Y = np.random.default_rng(0).standard_normal(30) * 1.5


@pytest.mark.parametrize("power", [1.0, 0.5, 0.0, -1.0])
def test_transformed_losses_are_those_of_scipy_standardised(power: float) -> None:
    want = yeojohnson(Y, power)
    transformed, _ = yeo_johnson(Y, power)
    if power != 1.0:
        want = (want - want.mean()) / want.std()
    np.testing.assert_allclose(transformed, want, atol=1e-12)


@pytest.mark.parametrize("power", [0.5, 0.0, -1.0])
def test_log_slopes_are_those_of_the_whole_transform(power: float) -> None:
    # By the secant through neighbours, with the mean and the deviation of Y held.
    raw = yeojohnson(Y, power)
    step = 1e-6
    secant = (yeojohnson(Y + step, power) - yeojohnson(Y - step, power)) / (2 * step * raw.std())
    np.testing.assert_allclose(yeo_johnson(Y, power)[1], np.log(secant), atol=1e-6)


def test_order_is_kept_and_equal_losses_stay() -> None:
    order = np.argsort(Y)
    for power in (0.5, 0.0, -1.0):
        assert (np.diff(yeo_johnson(Y, power)[0][order]) > 0).all()
    zeros, slopes = yeo_johnson(np.zeros(4), -1.0)
    assert not zeros.any()
    assert not slopes.any()
