"""How many proposals to make ahead of demand, and with how much effort.

Enough that no worker waits; few enough that each has seen nearly all results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raybo.arrays import Array
from raybo.methods.base import EFFORTS, FULL, Effort

CALL_SECONDS = 0.003  # what a call to a proposer costs beside its work
INSTANT_SECONDS = 10 * CALL_SECONDS  # for shorter trials, calls are what costs most
MAX_SPARE = 16  # proposals made for trials shorter than a call, in one call
# Seconds that the first proposal of a call waits for the others, and that these miss new results,
# while no worker waits (`longest_call`): at least this, and a share of the time of a trial, in
# which as large a share of the trials in flight finish. The proposals of a call share one model.
LONGEST_CALL = 10 * CALL_SECONDS
CALL_SHARE = 0.02
# Times the mean time per proposal, since fits and busy cores make some of them late. It trades
# workers that wait for results that proposals have not seen; between 1.5 and 2, 64 workers on two
# cores are as busy (`raybo bench throughput`: 94.7 to 96.9% and 94.8 to 97.6%).
SAFETY_FACTOR = 2.0
_HIGH_LOAD, _LOW_LOAD = 0.5, 0.03  # share of the time between two finished trials
_TYPICAL_SECONDS = (0.05, 0.015, 0.01)  # of a model's proposal, by effort; rough


def buffer_size(
    finishes: Sequence[float] | Array,
    idle: int,
    seconds_per_proposal: float,
    seconds_per_call: float = 0.0,
    instant: bool = False,
    fresh: bool = False,
) -> int:
    """Return how many proposals should be ready or being computed now.

    Parameters
    ----------
    finishes
        Seconds from now at which the running trials are expected to finish.
    idle
        Workers that wait for a trial.
    seconds_per_proposal
        Time that one more proposal takes, with all lanes computing.
    seconds_per_call
        Time until a call for proposals is answered.
    instant
        Whether trials are known to take no longer than INSTANT_SECONDS.
    fresh
        Whether calls are short enough that each can wait for the result before it.

    Notes
    -----
    By time t proposals are needed for all finishes up to t, and t / seconds_per_proposal can be
    computed by then; the largest difference over t has to be ready now. So has what is needed
    before a call that starts now is answered. Where trials take hardly longer than calls, several
    proposals more share a call.
    """
    if fresh:
        return idle
    tau = SAFETY_FACTOR * (seconds_per_proposal + CALL_SECONDS)
    times = np.sort(finishes)
    ahead = np.arange(idle + 1, idle + 1 + len(times)) - times / tau
    due = int(np.searchsorted(times, SAFETY_FACTOR * seconds_per_call, side="right"))
    needed = max(math.ceil(float(ahead.max(initial=idle))), idle + due)
    if instant:
        needed += math.ceil(CALL_SECONDS / max(seconds_per_proposal, CALL_SECONDS / MAX_SPARE))
    return needed


def longest_call(duration: float | None, backlog: float, overhead: float) -> float:
    """Return the seconds that a call may go on after its first proposal.

    Parameters
    ----------
    duration
        Seconds that a trial takes; None while unknown.
    backlog
        Seconds of work for which workers wait now.
    overhead
        Seconds that a call takes beside that work.

    Notes
    -----
    A backlog of b seconds served by calls of t seconds with an overhead of o is gone after
    b + b o / t, and each worker waits for the end of its call, t / 2 longer on average: the mean
    wait is the shortest with t = sqrt(b o).
    """
    return max(LONGEST_CALL, CALL_SHARE * (duration or 0.0), math.sqrt(backlog * overhead))


def is_fresh(seconds_per_call: float, workers: float, duration: float) -> bool:
    """Whether proposals can wait for all results: calls take at most half of the time there is.

    Notes
    -----
    Calls of s seconds for w workers with evaluations of d seconds are a queue with load s w / d.
    While that is at most 1/2, a worker waits for at most 2 s on average, a share 1 / w of an
    evaluation. A proposal that lacks one result costs as much: w + 1 points are in flight.
    """
    return seconds_per_call * workers <= _HIGH_LOAD * duration


def next_effort(effort: Effort, seconds_per_proposal: float, finishes_per_second: float) -> Effort:
    """Return the effort of the next proposals, with which they keep up with the workers.

    Less where proposals of this effort take most of the time that there is; more where those of
    the next higher effort, which may take ten times as long, would not. Never more than a typical
    model can afford: the first proposals, a random design, are computed much faster than later
    ones.
    """
    load, level = seconds_per_proposal * finishes_per_second, EFFORTS.index(effort)
    if load > _HIGH_LOAD:
        return EFFORTS[min(level + 1, len(EFFORTS) - 1)]
    affordable = EFFORTS.index(affordable_effort(finishes_per_second))
    return EFFORTS[max(level - 1 if load < _LOW_LOAD else level, affordable)]


def affordable_effort(finishes_per_second: float) -> Effort:
    """Return the highest effort with which a typical model keeps up with the workers."""
    loads = zip(EFFORTS, _TYPICAL_SECONDS, strict=True)
    fits = (e for e, seconds in loads if seconds * finishes_per_second <= _HIGH_LOAD)
    return next(fits, EFFORTS[-1])


def typical_seconds(finishes_per_second: float) -> float:
    """Return the seconds that a typical model's proposal takes with less than full effort.

    0 where full effort can be afforded.
    """
    effort = affordable_effort(finishes_per_second)
    return 0.0 if effort == FULL else _TYPICAL_SECONDS[EFFORTS.index(effort)]
