"""How many proposals to have ready: enough that no worker waits, few enough that all are fresh."""

from __future__ import annotations

import math
from collections.abc import Sequence

from raybo.methods.base import EFFORTS

# A worker may wait for a fresh proposal when that costs at most this share of its time: with
# one worker and hour-long evaluations every proposal knows all results, as in a sequential run.
FRESH_SHARE = 0.01

CALL_SECONDS = 0.003  # what a call to a proposer costs beside its work
MOST_HASTE = len(EFFORTS) - 1
INSTANT = 10 * CALL_SECONDS  # trials as short as this are bound by calls

LONGEST_CALL = 0.1  # seconds: a call does not keep its first proposal for longer
_MOST_SPARE = 16
# Times the mean, since fits and busy cores make some proposals late: 64 workers with trials of a
# second on two cores are 94.8 to 97.6% busy in seven studies, at 1.5 94.7 to 96.9%.
CAUTION = 2.0
_PRESSED, _AT_EASE = 0.5, 0.03  # share of the time that proposals take
_USUAL = (0.05, 0.015, 0.01)  # seconds of a model's proposal, by haste


def buffer_size(
    finishes: Sequence[float],
    idle: int,
    seconds_per_proposal: float,
    instant: bool = False,
    fresh: bool = False,
) -> int:
    """Proposals to have ready, or in the making, now.

    Parameters
    ----------
    finishes
        Seconds from now at which the running trials are expected to finish.
    idle
        Workers that wait for a trial.
    seconds_per_proposal
        Time that one proposal takes, all lanes working.
    instant
        Whether trials are known to take no longer than INSTANT.
    fresh
        Whether proposals are so cheap that each can wait for the result before it.

    Notes
    -----
    By time t proposals are wanted for all finishes up to t, and t / seconds_per_proposal can be
    made by then; the largest gap over t has to be ready now. One more covers a surprise; where
    trials take hardly longer than calls, there are enough more to make a call worth while.
    """
    if fresh:
        return idle
    tau = CAUTION * (seconds_per_proposal + CALL_SECONDS)
    ahead = [i - max(t, 0.0) / tau for i, t in enumerate(sorted(finishes), start=idle + 1)]
    spare = 1
    if instant:
        spare = math.ceil(CALL_SECONDS / max(seconds_per_proposal, CALL_SECONDS / _MOST_SPARE))
    return math.ceil(max([idle, *ahead])) + spare


def is_fresh(seconds_per_proposal: float, workers: int, duration: float) -> bool:
    """Whether proposing after each result costs the workers at most FRESH_SHARE of their time."""
    return (seconds_per_proposal + CALL_SECONDS) * workers <= FRESH_SHARE * duration


def next_haste(haste: int, seconds_per_proposal: float, finishes_per_second: float) -> int:
    """Haste of the next proposals, so that they keep up with the workers.

    More where proposals made at this haste take most of the time that there is; less where the
    next lower haste, which may take ten times as long, would not. Never less than what a model
    usually needs, since the first proposals, a random design, are no measure of those after them.
    """
    load = seconds_per_proposal * finishes_per_second
    if load > _PRESSED:
        return min(haste + 1, MOST_HASTE)
    return max(haste - 1 if load < _AT_EASE else haste, least_haste(finishes_per_second))


def least_haste(finishes_per_second: float) -> int:
    """Haste with which a usual model keeps up with the workers."""
    return sum(usual * finishes_per_second > _PRESSED for usual in _USUAL[:MOST_HASTE])


def usual_pace(finishes_per_second: float) -> float:
    """Seconds that a model's proposal usually takes in haste; 0 where there is none."""
    haste = least_haste(finishes_per_second)
    return _USUAL[haste] if haste else 0.0
