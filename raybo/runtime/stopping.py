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
HOPEFUL_FACTOR = 10  # times as many where some config may still work: failures that differ, NaN
_HOPEFUL = ("result", "infeasible")  # causes that depend on the config, as a rule


class Ending(StrEnum):
    """Kinds of stops, as journals record them."""

    MAX_TRIALS = "max_trials"
    EXHAUSTED = "exhausted"
    PLATEAU = "plateau"
    CALLBACK = "callback"
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
        self._best: float | None = None
        self._n_without_gain = 0  # trials since the best value improved

    def add(self, entry: Entry) -> None:
        """Take a trial of this session that has finished into account."""
        self._n_without_gain += entry.source != "given"
        if entry.trial.state is State.DONE:
            self._n_done += entry.source != "given"
        elif entry.trial.state is State.FAILED:
            self._first_failure = self._first_failure or entry
            self._failures[f"{entry.trial.cause}: {entry.kind}"] += 1

    def check(self, best_value: float | None, seconds: float) -> Stop | None:
        """Return why to stop after these seconds of the session, or None."""
        target, max_seconds = self._settings.target, self._settings.max_seconds
        if target is not None and self._is_reached(target, best_value):
            return Stop(Ending.TARGET, f"target reached: {target:g}", at_once=True)
        if max_seconds is not None and seconds >= max_seconds:
            return Stop(Ending.MAX_SECONDS, f"max_seconds reached: {max_seconds:g} s")
        if best_value != self._best:
            self._best, self._n_without_gain = best_value, 0
        patience, max_failures = self._settings.patience, self._settings.max_failures
        if patience is not None and self._n_without_gain >= patience and self._n_done:
            return Stop(Ending.PLATEAU, f"no better value in {patience} trials")
        if max_failures is not None:
            return self._too_many() if self._failures.total() >= max_failures else None
        if self._n_done or self._failures.total() < self._enough_failures():
            return None
        return self._all_failed()

    def _enough_failures(self) -> int:
        """Return how many failures show that nothing works."""
        causes = {kind.partition(":")[0] for kind in self._failures}
        if causes == {"metric"}:
            return 1
        enough = max(SAME_FAILURES, self._settings.workers)
        hopeful = len(self._failures) > 1 or causes <= set(_HOPEFUL)
        return enough * HOPEFUL_FACTOR if hopeful else enough

    def at_end(self, best_value: float | None, exhausted: bool) -> Stop:
        """Return why to stop when no trial is left to start."""
        if not self._n_done and best_value is None and self._failures:
            return self._all_failed()
        if exhausted:
            return Stop(Ending.EXHAUSTED, "every point of the space was tried")
        return Stop(Ending.MAX_TRIALS, f"max_trials reached: {self._settings.max_trials}")

    def _is_reached(self, target: float, best_value: float | None) -> bool:
        return best_value is not None and not self._objective.better(target, best_value)

    def _too_many(self) -> Stop:
        n, done = self._failures.total(), self._n_done
        return self._failed(f"{n} of {n + done} trials failed, and max_failures is reached")

    def _all_failed(self) -> Stop:
        n = self._failures.total()
        how = "in the same way" if len(self._failures) == 1 else "in different ways"
        return self._failed("the first trial failed" if n == 1 else
                            f"the first {n} trials all failed {how}")  # fmt: skip

    def _failed(self, text: str) -> Stop:
        trace = ""
        if self._first_failure is not None:
            trial = self._first_failure.trial
            text += f"; trial {trial.number}: {trial.reason}"
            trace = self._first_failure.traceback.rstrip()
        if self._settings.max_failures is None and "metric: metric" not in self._failures:
            text += (
                "; if some configs do work, give one as points=[...] or allow more failures with "
                "max_failures="
            )
        return failed(f"{text}\n\n{trace}" if trace else text)
