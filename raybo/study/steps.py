"""Steps: what the values mean that a trial reports on its way, and which trials are stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from raybo.errors import StudyError
from raybo.study.curves import Course
from raybo.study.halving import promising, promotable, rungs_of
from raybo.study.racing import FIRST_TEST, surely_worse

OVER = ("steps", "instances")


@dataclass(frozen=True)
class Steps:
    """Settings of trials that report; the arguments of `optimize` explain them."""

    max_steps: int | None = None
    stop_early: bool = False
    over: str = "steps"  # one of OVER

    def __post_init__(self) -> None:
        if self.max_steps is not None and not _is_count(self.max_steps):
            raise StudyError(
                f"max_steps must be a whole number of 1 or more, got {self.max_steps!r}"
            )
        if not isinstance(self.stop_early, bool):
            raise StudyError(f"stop_early must be True or False, got {self.stop_early!r}")
        if self.over not in OVER:
            raise StudyError(f"over must be 'steps' or 'instances', got {self.over!r}")
        if self.max_steps is None and (self.stop_early or self.over == "instances"):
            given = "stop_early=True" if self.stop_early else "over='instances'"
            raise StudyError(
                f"{given} needs max_steps=, the number of reports of a trial that is not stopped"
            )

    @cached_property
    def rungs(self) -> frozenset[int]:
        """Steps at which trials are judged."""
        if not self.stop_early or self.max_steps is None:
            return frozenset()
        if self.over == "instances":
            return frozenset(range(FIRST_TEST, self.max_steps))
        return frozenset(rungs_of(self.max_steps))

    def complete(self, step: int) -> bool:
        """Whether a trial is complete with its report at a step."""
        return self.max_steps is not None and step >= self.max_steps

    def so_far(self, step: int, value: float, last: tuple[int, float] | None) -> float:
        """Value of a trial at a step, the report before being `last`: of instances, the mean."""
        if self.over == "steps":
            return value
        before, mean = last or (0, 0.0)
        if step != before + 1:
            raise StudyError(f"instance {step} came after instance {before}; leave none out")
        return mean + (value - mean) / step

    def goes_on(self, number: int, step: int, courses: Mapping[int, Course]) -> bool:
        """Whether a trial goes on after its report at a step.

        One that is run again is not judged again where it has passed before.
        """
        if step not in self.rungs or step < max(courses[number].curve):
            return True
        if self.over == "instances":
            return not surely_worse(number, courses)
        return number in promising(step, courses)

    def promotable(self, paused: Iterable[int], courses: Mapping[int, Course]) -> int | None:
        """Return the paused trial to go on with, if there is one."""
        return promotable(paused, self.rungs, courses)


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
