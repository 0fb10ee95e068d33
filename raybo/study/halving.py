"""Asynchronous successive halving: which trials are stopped early, by what they report.

ASHA (Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning"): a trial that
reports at a rung goes on if it is among the best third of all trials that have come so far, itself
included. A trial that is not, is stopped. If it can go on from a checkpoint it is promoted as soon
as it is among the best third, before a new trial is started (Algorithm 2).

What differs: trials are compared by the losses that are expected of them in the end
(`raybo.study.curves`), not by those at the rung, so that a config that learns slowly is not
stopped for it. A trial also goes on if it would be among the best third with a loss one deviation
below the expected one: the less curves say, the fewer trials are stopped. One that may be among
the best goes on at once, not from its checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from raybo.study.curves import Course, expected_losses

REDUCTION = 3  # one of so many goes on; Syne Tune's default, Ray Tune's is 4
# The first rung. On LCBench the first of 52 epochs says nothing of the last (rank correlation
# 0.01), the third 0.68: no trial is judged before its third report, nor in its first tenth.
LEAST_REPORTS = 3
LEAST_SHARE = 0.1


def rungs_of(max_steps: int) -> list[int]:
    """Return the steps at which trials of `max_steps` steps are judged: a third of them, a ninth.

    They are counted from the end: a rung just before it would save next to nothing.
    """
    least = max(LEAST_REPORTS, LEAST_SHARE * max_steps)
    found, step = [], math.ceil(max_steps / REDUCTION)
    while step >= least:
        found.append(step)
        step = math.ceil(step / REDUCTION)
    return found[::-1]


def promising(step: int, courses: Mapping[int, Course]) -> list[int]:
    """Return the trials that may be among the best third that came to a rung, the best first."""
    came = {n: c for n, c in courses.items() if c.curve and max(c.curve) >= step}
    if not came:
        return []
    loss, deviation = expected_losses(list(came.values()))
    order = np.argsort(loss, kind="stable")
    last = loss[order[math.ceil(len(loss) / REDUCTION) - 1]]  # as good as it counts, too
    numbers = list(came)
    return [numbers[i] for i in order if loss[i] - deviation[i] <= last]


def promotable(
    paused: Iterable[int], rungs: Iterable[int], courses: Mapping[int, Course]
) -> int | None:
    """Return the trial to promote: of the highest rung that has one, the best; None if none has.

    A paused trial stands at the rung of its last report.
    """
    at: dict[int, set[int]] = {}
    for number in courses.keys() & paused:
        at.setdefault(max(courses[number].curve), set()).add(number)
    for step in sorted(set(rungs) & set(at), reverse=True):
        found = next((n for n in promising(step, courses) if n in at[step]), None)
        if found is not None:
            return found
    return None
