"""The Sobol sequence against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats.qmc import Sobol

from raybo.space.sobol import MAX_DIM, sobol_rows


@pytest.mark.parametrize("dim", [1, 2, 7, 40, MAX_DIM])
def test_points_are_those_of_scipy(dim):
    plain = Sobol(dim, scramble=False).random(16)
    np.testing.assert_array_equal(sobol_rows(dim, 0, 16), plain)
    np.testing.assert_array_equal(sobol_rows(dim, 5, 3), plain[5:8])


@pytest.mark.parametrize(("dim", "start"), [(1, 0), (3, 1), (20, 1000), (300, 63)])
def test_scrambled_points_are_those_of_scipy(dim, start):
    theirs = Sobol(dim, rng=np.random.default_rng(9))
    if start:
        theirs.fast_forward(start)
    ours = sobol_rows(dim, start, 4, np.random.default_rng(9))
    np.testing.assert_array_equal(ours, theirs.random(4))


def test_no_points():
    assert sobol_rows(3, 0, 0).shape == (0, 3)
