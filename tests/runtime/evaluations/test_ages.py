"""When the trials that run are expected to finish."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.arrays import Array
from raybo.runtime.evaluations.ages import RECENT_TRIALS, Ages

U = np.arange(512.0) / 512.0


def ages_of(durations: Array, start: float = 0.0, watched: float = 1e9) -> tuple[Ages, float]:
    """Ages that have seen trials finish one after the other, and the time at the end."""
    ages = Ages()
    ages._since = start
    times = np.linspace(start, start + watched, len(durations) + 1)[1:]
    for duration, now in zip(durations, times, strict=True):
        ages.finished(float(duration), float(now))
    return ages, start + watched


def test_trials_that_always_take_as_long_finish_when_those_before_them_did() -> None:
    seen, now = ages_of(np.full(RECENT_TRIALS, 60.0))
    ages = np.linspace(0.0, 59.0, 512)
    left = seen.expected_left(ages, np.full(512, 0.5), now)
    np.testing.assert_allclose(left, 60.0 - ages)


def test_as_many_are_expected_to_finish_by_any_time_as_do() -> None:
    durations = 60.0 * np.random.default_rng(0).lognormal(0.0, 0.5, RECENT_TRIALS)
    seen, now = ages_of(durations)
    left = seen.expected_left(np.zeros(512), U, now)
    for seconds in (30.0, 60.0, 90.0):
        share = np.mean(durations <= seconds)
        assert abs(np.mean(left <= seconds) - share) < 0.03


def test_the_first_to_finish_do_not_stand_for_those_that_still_run() -> None:
    """All began at once, two of them have finished: the others go on as slowly as that says."""
    seen, now = ages_of(np.array([11.0, 12.5]), watched=13.0)
    left = seen.expected_left(np.linspace(12.0, 13.0, 510), U[:510], now)
    assert (left >= 0.0).all()
    assert np.mean(left < 1.0) < 0.02
    assert np.mean(left < 13.0) < 0.02


def test_trials_count_from_the_age_at_which_they_were_first_watched() -> None:
    """Half of the trials take a minute, half of them two, and the last minute is what is known.

    The trials that run for longer were not watched while they were younger.
    """
    durations = np.tile([60.0, 120.0], RECENT_TRIALS // 2)
    seen, now = ages_of(durations, watched=60.0)
    running = np.concatenate([np.linspace(0.0, 59.0, 60), np.linspace(61.0, 119.0, 30)])
    left = seen.expected_left(np.append(running, 30.0), np.append(np.zeros(90), 0.9), now)
    assert left[-1] == pytest.approx(90.0, abs=3.0)
    left = seen.expected_left(np.append(running, 30.0), np.append(np.zeros(90), 0.2), now)
    assert left[-1] == pytest.approx(30.0, abs=3.0)


def test_before_any_has_finished_nothing_is_expected() -> None:
    assert Ages().typical is None
    assert np.isinf(Ages().expected_left(np.full(3, 7.0), U[:3], 8.0)).all()
    assert Ages().expected_left(np.empty(0), np.empty(0), 0.0).shape == (0,)


def test_trials_of_earlier_sessions_predict_the_first_ones() -> None:
    seen = Ages([50.0, 60.0, 70.0])
    assert seen.typical == 60.0
    left = seen.expected_left(np.zeros(512), U, seen._since)
    assert np.median(left) == pytest.approx(55.0, abs=6.0)


def test_equal_ends_and_a_trial_that_hangs_are_survived() -> None:
    seen, now = ages_of(np.zeros(RECENT_TRIALS + 3), watched=1.0)
    left = seen.expected_left(np.array([0.0, 1e6]), np.array([0.0, 0.999]), now)
    assert np.isfinite(left).all()
    assert (left >= 0.0).all()
