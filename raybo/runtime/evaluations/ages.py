"""Ages: at which age trials finish, by those that finished lately and those that run."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Iterable

import numpy as np

from raybo.arrays import Array

RECENT_TRIALS = 50  # that finished; they predict the next


class Ages:
    """The ages at which recent trials finished.

    `durations` are those of trials of earlier sessions, in seconds: they predict the first.
    """

    def __init__(self, durations: Iterable[float] = ()) -> None:
        known = ((duration, math.inf) for duration in durations)
        self._finished: deque[tuple[float, float]] = deque(known, maxlen=RECENT_TRIALS)
        self._since = time.monotonic()  # from when on all that finished are known

    @property
    def typical(self) -> float | None:
        """Seconds that a trial takes; None until one has finished."""
        return statistics.median(age for age, _ in self._finished) if self._finished else None

    def finished(self, age: float, now: float) -> None:
        """Note that a trial has finished."""
        if len(self._finished) == RECENT_TRIALS and self._finished[0][1] < math.inf:
            self._since = self._finished[0][1]
        self._finished.append((age, now))

    def expected_left(self, ages: Array, u: Array, now: float) -> Array:
        """Return the seconds until trials that have run for `ages` (n,) are expected to finish.

        Each stands at quantile u of the time that is left to trials of its age: spread evenly over
        [0, 1), they tell how many will finish by any time. Infinite while none has finished.

        The estimate is that of Kaplan and Meier (1958): it counts how many of the trials that
        reached an age finished at it. Trials that run have reached theirs: where all began at once
        the first to finish are the shortest, and say little of the others. One more is counted
        that goes on, so that no age is the last. Only what happened lately counts: a trial enters
        at the age that it had then. Between the ages at which some finished, as many do at any age
        as at another; beyond the last one they go on at the mean rate.
        """
        if not self._finished:
            return np.full(len(ages), np.inf)
        ends, when = np.array(sorted(self._finished)).T
        watched = when - self._since
        entries = np.where(watched > 0.0, np.maximum(0.0, ends - watched), 0.0)
        entries = np.concatenate([entries, np.maximum(0.0, ages - (now - self._since))])
        exits = np.concatenate([ends, ages])
        rate = len(ends) / max(float((exits - entries).sum()), 1e-9)
        reached = np.searchsorted(np.sort(entries), ends) - np.searchsorted(np.sort(exits), ends)
        reached -= np.arange(len(ends)) - np.searchsorted(ends, ends)  # of equal ones, in turn
        survival = np.cumprod(1.0 - 1.0 / (np.maximum(reached, 1) + 1))
        ends, survival = np.append(0.0, ends), np.append(1.0, survival)
        alive = np.interp(ages, ends, survival) * (1.0 - u)  # of all, when the trial finishes
        later = np.maximum(ends[-1], ages) - np.log(alive / survival[-1]) / rate
        known = np.interp(alive, survival[::-1], ends[::-1])
        return np.asarray(np.where(alive > survival[-1], known, later) - ages)
