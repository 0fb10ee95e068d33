"""When the trials that run are expected to finish."""

from __future__ import annotations

import numpy as np

from raybo.runtime.evaluations.pool import expected_left

NUMBERS = np.arange(512.0)


def test_trials_that_always_take_as_long_finish_when_those_before_them_did() -> None:
    ages, durations = np.linspace(0.0, 59.0, 512), np.full(50, 60.0)
    np.testing.assert_allclose(expected_left(ages, NUMBERS, durations), 60.0 - ages)


def test_as_many_are_expected_to_finish_by_any_time_as_do() -> None:
    rng = np.random.default_rng(0)
    durations = np.sort(60.0 * rng.lognormal(0.0, 0.5, 50))
    left = expected_left(np.zeros(512), NUMBERS, durations)
    for seconds in (30.0, 60.0, 90.0):
        share = np.mean(durations <= seconds)
        assert abs(np.mean(left <= seconds) - share) < 0.02


def test_what_took_longer_than_all_before_is_not_expected_at_once() -> None:
    """The first trials to finish are the shortest: they say little of those that still run."""
    left = expected_left(np.full(512, 13.0), NUMBERS, np.array([11.0, 12.0]))
    assert abs(np.median(left) - 13.0) < 0.2
    assert np.mean(left < 1.0) < 0.1


def test_before_any_has_finished_their_age_is_all_that_is_known() -> None:
    assert expected_left(np.empty(0), np.empty(0), np.empty(0)).shape == (0,)
    left = expected_left(np.full(512, 7.0), NUMBERS, np.empty(0))
    assert abs(np.median(left) - 7.0) < 0.2
    assert (left >= 0.0).all()
