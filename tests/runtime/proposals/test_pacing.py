"""How many proposals to have ready."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from raybo.methods.base import FULL, LEAST, REDUCED
from raybo.runtime.proposals.pacing import (
    CALL_SECONDS,
    LONGEST_CALL,
    SAFETY_FACTOR,
    buffer_size,
    is_fresh,
    longest_call,
    next_effort,
    typical_seconds,
)


def naive(finishes: list[float], idle: int, tau: float) -> int:
    """Smallest buffer with which no finish waits, found by simulation."""
    for ready in range(len(finishes) + idle + 1):
        made = ready + 0.0
        enough = all(
            made + t / tau >= i for i, t in enumerate([0.0] * idle + sorted(finishes), start=1)
        )
        if enough:
            return ready
    return len(finishes) + idle


@pytest.mark.parametrize("idle", [0, 1, 3])
@pytest.mark.parametrize(
    "finishes",
    [[], [0.0], [5.0], [0.0] * 8, [0.1, 0.1, 0.1], [1.0, 2.0, 3.0], [0.0, 0.4, 0.5, 0.9, 9.0]],
)
def test_no_worker_waits_for_a_proposal(finishes: list[float], idle: int) -> None:
    for seconds in (0.05, 0.3, 2.0):
        made = buffer_size(finishes, idle, seconds)
        assert made == naive(finishes, idle, SAFETY_FACTOR * (seconds + CALL_SECONDS))


def test_nothing_is_made_ahead_where_a_fresh_proposal_costs_nothing() -> None:
    assert buffer_size([0.1, 0.2], 1, 0.01, fresh=True) == 1


def test_what_is_needed_before_a_call_is_answered_is_made_ahead() -> None:
    finishes = [0.06 * i for i in range(1, 1001)]  # a thousand trials of a minute
    assert buffer_size(finishes, 0, 0.006) == 0  # proposals alone keep up
    assert buffer_size(finishes, 0, 0.006, seconds_per_call=0.3) == 10
    assert buffer_size(finishes, 3, 0.006, seconds_per_call=0.3) == 13
    assert buffer_size([60.0], 0, 0.006, seconds_per_call=0.3) == 0


@pytest.mark.parametrize("workers", [2, 8, 64])
def test_proposals_wait_for_all_results_while_workers_wait_little_for_them(workers: int) -> None:
    """Against a simulated queue: evaluations of 1 s, give or take, and one proposer."""

    def waiting_share(seconds: float, n: int = 4000) -> float:
        rng = np.random.default_rng(0)
        finishes, proposer_free, waited = [0.0] * workers, 0.0, 0.0
        heapq.heapify(finishes)
        for _ in range(n):
            finish = heapq.heappop(finishes)
            proposer_free = max(finish, proposer_free) + seconds
            waited += proposer_free - finish
            heapq.heappush(finishes, proposer_free + rng.uniform(0.5, 1.5))
        return waited / n

    shares = np.linspace(0.002, 0.5, 400)
    fresh = [is_fresh(s, workers, 1.0) for s in shares]
    largest = shares[fresh.index(False) - 1]
    assert fresh == sorted(fresh, reverse=True)
    assert waiting_share(largest) < 1 / workers
    assert waiting_share(4 * largest) > 1 / workers
    assert is_fresh(0.05, 2, 1.0)  # a twentieth of an evaluation


def test_calls_are_as_long_as_lets_waiting_workers_wait_least() -> None:
    def mean_wait(n: int, seconds: float, overhead: float, call: float) -> float:
        waits: list[float] = []
        end, size = 0.0, max(1, round(call / seconds))
        while len(waits) < n:
            made = min(size, n - len(waits))
            end += overhead + made * seconds
            waits += made * [end]
        return sum(waits) / n

    for n, seconds, overhead in [(1000, 0.0005, 0.03), (1000, 0.01, 0.02), (200, 0.002, 0.1)]:
        call = longest_call(None, n * seconds, overhead)
        least = min(mean_wait(n, seconds, overhead, t) for t in np.geomspace(0.001, 10.0, 200))
        assert mean_wait(n, seconds, overhead, call) < 1.1 * least
        assert mean_wait(n, seconds, overhead, LONGEST_CALL) > 1.1 * least


def test_calls_for_nobody_who_waits_take_a_share_of_a_trial() -> None:
    assert longest_call(None, 0.0, 1.0) == longest_call(0.1, 0.0, 1.0) == LONGEST_CALL
    assert longest_call(100.0, 0.0, 1.0) == 2.0


def test_cheap_proposals_for_instant_trials_are_asked_for_by_the_dozen() -> None:
    assert buffer_size([5.0], 0, 1e-5, instant=True) == 16
    assert buffer_size([5.0], 0, 0.001, instant=True) == 3
    assert buffer_size([5.0], 0, 1e-5) == 0


def test_effort_falls_while_proposals_do_not_keep_up_and_rises_when_there_is_time() -> None:
    assert next_effort(FULL, 0.2, 1.0) is FULL  # a fifth of the time
    assert next_effort(FULL, 0.2, 4.0) is REDUCED
    assert next_effort(REDUCED, 0.2, 4.0) is LEAST is next_effort(LEAST, 0.2, 9.0)
    assert next_effort(LEAST, 0.01, 8.0) is LEAST  # a tenth of the time, perhaps all of it
    assert next_effort(LEAST, 0.01, 0.5) is REDUCED


def test_effort_is_low_from_the_first_model_on_where_many_trials_finish_each_second() -> None:
    assert next_effort(FULL, 0.001, 64.0) is LEAST
    assert next_effort(FULL, 0.001, 20.0) is REDUCED
    assert next_effort(FULL, 0.001, 1.0) is FULL


def test_a_model_is_expected_to_take_time_where_effort_is_low() -> None:
    assert typical_seconds(64.0) > 0
    assert typical_seconds(20.0) > typical_seconds(64.0)
    assert typical_seconds(1.0) == 0.0
