"""When a session ends, and why."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from raybo.errors import RayboError, StudyFailed
from raybo.runtime.session import Settings
from raybo.study.journal.record import Entry
from raybo.study.objective import Objective
from raybo.study.outcome import Stop
from raybo.study.trial import State

# A study in which nothing works is stopped after this many failures, or one per worker if that is
# more: the first trials of all workers start together.
SAME_FAILURES = 5
DIFFERENT_FACTOR = 4  # times as many when the failures differ: some config may still work


class Ending(StrEnum):
    """Kinds of stops, as journals record them."""

    MAX_TRIALS = "max_trials"
    EXHAUSTED = "exhausted"
    TARGET = "target"
    MAX_SECONDS = "max_seconds"
    INTERRUPTED = "interrupted"
    ERROR = "error"


def failed(text: str, error: type[RayboError] = StudyFailed) -> Stop:
    """Return a stop at once that raises `error` in the driver."""
    return Stop(Ending.ERROR, text, at_once=True, error=error)


class StopRules:
    """Says when a session ends, from its settings and its trials that have finished."""

    def __init__(self, settings: Settings, objective: Objective) -> None:
        self._settings = settings
        self._objective = objective
        self._n_done = 0  # trials of this session with a value
        self._failures: Counter[str] = Counter()  # of this session, by kind
        self._first_failure: Entry | None = None

    def add(self, entry: Entry) -> None:
        """Take a trial of this session that has finished into account."""
        if entry.trial.state is State.DONE:
            self._n_done += entry.source != "given"
        else:
            self._first_failure = self._first_failure or entry
            self._failures[f"{entry.cause}: {entry.kind}"] += 1

    def check(self, best_value: float | None, seconds: float) -> Stop | None:
        """Return why to stop after these seconds of the session, or None."""
        target, max_seconds = self._settings.target, self._settings.max_seconds
        if target is not None and self._is_reached(target, best_value):
            return Stop(Ending.TARGET, f"target reached: {target:g}", at_once=True)
        if max_seconds is not None and seconds >= max_seconds:
            return Stop(Ending.MAX_SECONDS, f"max_seconds reached: {max_seconds:g} s")
        enough = max(SAME_FAILURES, self._settings.workers)
        if len(self._failures) > 1:
            enough *= DIFFERENT_FACTOR
        if self._n_done or self._failures.total() < enough:
            return None
        return self._all_failed()

    def at_end(self, best_value: float | None, exhausted: bool) -> Stop:
        """Return why to stop when no trial is left to start."""
        if not self._n_done and best_value is None and self._failures:
            return self._all_failed()
        if exhausted:
            return Stop(Ending.EXHAUSTED, "every point of the space was tried")
        return Stop(Ending.MAX_TRIALS, f"max_trials reached: {self._settings.max_trials}")

    def _is_reached(self, target: float, best_value: float | None) -> bool:
        return best_value is not None and not self._objective.better(target, best_value)

    def _all_failed(self) -> Stop:
        how = "in the same way" if len(self._failures) == 1 else "in different ways"
        text = f"the first {self._failures.total()} trials all failed {how}"
        if self._first_failure is not None:
            trial = self._first_failure.trial
            text += f"; trial {trial.number}: {trial.reason}"
            if self._first_failure.traceback:
                text += f"\n\n{self._first_failure.traceback.rstrip()}"
        return failed(text)
