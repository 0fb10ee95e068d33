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
from typing import Any

import numpy as np

from raybo.errors import StudyError
from raybo.study.curves import Course, expected_losses

REDUCTION = 3  # one of so many goes on; Li et al. 2020, section 4, use 4, Syne Tune and Tune 3
# The first rung. On LCBench the first of 52 epochs says nothing of the last (rank correlation
# 0.01), the third 0.68: no trial is judged before its third report, nor in its first tenth.
LEAST_REPORTS = 3
LEAST_SHARE = 0.1


def rungs_of(max_steps: int | None, stop_early: bool) -> tuple[int, ...]:
    """Return the steps at which trials of `max_steps` steps are judged; none unless wanted."""
    found: list[int] = []
    if not stop_early or max_steps is None:
        return ()
    step = max(LEAST_REPORTS, math.ceil(LEAST_SHARE * max_steps))
    while step < max_steps:
        found.append(step)
        step *= REDUCTION
    return tuple(found)


def goes_on(number: int, step: int, courses: Mapping[int, Course]) -> bool:
    """Return whether a trial goes on after its report at a rung."""
    came = {n: c for n, c in courses.items() if c.curve and max(c.curve) >= step}
    loss, _ = expected_losses(list(came.values()))
    better = int(np.sum(loss < loss[list(came).index(number)]))
    return better < math.ceil(len(loss) / REDUCTION)


def check_steps(max_steps: Any, stop_early: Any) -> None:
    """Refuse settings of early stopping that cannot be meant."""
    if max_steps is not None and not _is_count(max_steps):
        raise StudyError(f"max_steps must be a whole number of 1 or more, got {max_steps!r}")
    if not isinstance(stop_early, bool):
        raise StudyError(f"stop_early must be True or False, got {stop_early!r}")
    if stop_early and max_steps is None:
        raise StudyError(
            "stop_early=True needs max_steps=, the number of reports of a trial that is not "
            "stopped: it says where trials are compared"
        )


def checked_step(step: Any, last: int) -> int:
    """Return the step of a report after step `last`, the next one if it is None."""
    if step is None:
        return last + 1
    if not _is_count(step):
        raise StudyError(f"step must be a whole number of 1 or more, got {step!r}")
    if step <= last:
        raise StudyError(f"step {step} was reported after step {last}; steps increase")
    return int(step)


def _is_count(value: Any) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= 1
