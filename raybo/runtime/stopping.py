"""Tally: running totals of a study, for its snapshots and for the decision to stop."""

from __future__ import annotations

import time
from collections import Counter, deque

from raybo.methods.base import lane_of
from raybo.report.progress import LaneStatus, Progress
from raybo.report.text import config_line
from raybo.runtime.session import Settings
from raybo.study.journal.record import Entry, Record
from raybo.study.objective import Objective
from raybo.study.outcome import Stop
from raybo.study.trial import State, TrialRecord

_RECENT = 50  # trials that tell the rate
_ALIKE = 5  # trials that fail alike before a study is stopped, if it has no more workers
_UNLIKE = 4  # times as many, when they fail in different ways


class Tally:
    """Counts of finished trials, by lane and in all; points given by the user count as best."""

    def __init__(self, record: Record, objective: Objective, lanes: int) -> None:
        self.best: TrialRecord | None = None
        self.failed = 0
        self.done = [0] * lanes
        self._lane_best: list[float | None] = [None] * lanes
        self._objective = objective
        self._record = record
        self._kinds: Counter[str] = Counter()  # of the failures of this session
        self._session_done = 0
        self._first_failure: Entry | None = None
        self._ended: deque[float] = deque(maxlen=_RECENT)
        for i, number in enumerate(record.order):
            self._count(record.entries[number], i >= record.before)

    def finished(self, number: int) -> None:
        """Count a trial that has just finished."""
        self._ended.append(time.monotonic())
        self._count(self._record.entries[number], in_session=True)

    def reason_to_stop(self, settings: Settings, elapsed: float) -> Stop | None:
        """Why to stop now, if there is a reason."""
        if settings.target is not None and self._reached(settings.target):
            return Stop("target", f"target reached: {settings.target:g}", at_once=True)
        if settings.max_seconds is not None and elapsed >= settings.max_seconds:
            return Stop("max_seconds", f"max_seconds reached: {settings.max_seconds:g} s")
        return self._all_failing(max(_ALIKE, settings.workers))

    def all_failed(self) -> Stop | None:
        """How to end a session in which every trial failed."""
        if self._session_done or self.best is not None or self._first_failure is None:
            return None
        return self._failure(sum(self._kinds.values()))

    def snapshot(self, name: str, state: str, use: float, elapsed: float, running: list[int],
                 settings: Settings) -> Progress:  # fmt: skip
        """The figures to show."""
        lanes, rate = len(self.done), self._rate()
        at_work = Counter(lane_of(number, lanes) for number in running)
        return Progress(
            name=name,
            done=sum(self.done),
            running=len(running),
            failed=self.failed,
            total=settings.max_trials,
            best_value=self.best.value if self.best else None,
            best_number=self.best.number if self.best else None,
            best_config_text=config_line(self.best.config) if self.best else "",
            elapsed=elapsed,
            eta=self._eta(rate, elapsed, settings),
            workers=settings.workers,
            use=use,
            rate=rate,
            lanes=tuple(
                LaneStatus(i, self.done[i], at_work[i], self._lane_best[i]) for i in range(lanes)
            ),
            mode=self._objective.mode,
            state=state,
        )

    def _count(self, entry: Entry, in_session: bool) -> None:
        trial, lane = entry.trial, lane_of(entry.trial.number, len(self.done))
        if trial.state is State.DONE and trial.value is not None:
            if self.best is None or self._better(trial.value, self.best.value):
                self.best = trial
            if self._lane_best[lane] is None or self._better(trial.value, self._lane_best[lane]):
                self._lane_best[lane] = trial.value
            if entry.source != "given":
                self.done[lane] += 1
                self._session_done += in_session
            return
        self.failed += 1
        if in_session:
            self._first_failure = self._first_failure or entry
            self._kinds[f"{entry.cause}: {entry.kind}"] += 1

    def _reached(self, target: float) -> bool:
        best = None if self.best is None else self.best.value
        return best is not None and not self._objective.better(target, best)

    def _better(self, a: float, b: float | None) -> bool:
        return b is None or self._objective.better(a, b)

    def _all_failing(self, enough: int) -> Stop | None:
        n = sum(self._kinds.values())
        if self._session_done or n < enough or (len(self._kinds) > 1 and n < _UNLIKE * enough):
            return None
        return self._failure(n)

    def _failure(self, n: int) -> Stop:
        first = self._first_failure
        trial = first.trial if first else None
        alike = "in the same way" if len(self._kinds) == 1 else "in different ways"
        text = f"the first {n} trials all failed {alike}; trial {trial.number if trial else 0}: "
        text += f"{trial.reason if trial else ''}"
        if first and first.traceback:
            text += f"\n\n{first.traceback.rstrip()}"
        return Stop("error", text, at_once=True, error="StudyFailed")

    def _rate(self) -> float:
        if len(self._ended) < 2:
            return 0.0
        return (len(self._ended) - 1) / max(1e-6, time.monotonic() - self._ended[0])

    def _eta(self, rate: float, elapsed: float, settings: Settings) -> float | None:
        limits = []
        if settings.max_trials is not None and rate > 0:
            limits.append((settings.max_trials - sum(self.done) - self.failed) / rate)
        if settings.max_seconds is not None:
            limits.append(settings.max_seconds - elapsed)
        return max(0.0, min(limits)) if limits else None
