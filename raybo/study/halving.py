"""Asynchronous successive halving: which trials are stopped early, by what they report.

The stopping variant of ASHA (Li et al. 2020, "A System for Massively Parallel Hyperparameter
Tuning"): a trial that reports at a rung goes on if it is among the best third of all trials that
have come so far, itself included. What differs: trials are compared by the losses that are
expected of them in the end (`raybo.study.curves`), not by those at the rung, so that a config that
learns slowly is not stopped for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

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


def among_the_best(number: int, step: int, courses: Mapping[int, Course]) -> bool:
    """Whether a trial that has reported at a rung is among the best third that came there."""
    came = {n: c for n, c in courses.items() if c.curve and max(c.curve) >= step}
    loss, _ = expected_losses(list(came.values()))
    better = int(np.sum(loss < loss[list(came).index(number)]))
    return better < math.ceil(len(loss) / REDUCTION)
