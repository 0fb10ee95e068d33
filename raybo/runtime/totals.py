"""Totals: counts and best values of a study, for the live view."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping

from raybo.methods.base import lane_of
from raybo.runtime.session import Settings
from raybo.study.journal.record import Entry
from raybo.study.objective import Objective
from raybo.study.trial import State, TrialRecord
from raybo.views.progress import LaneStatus, Progress
from raybo.views.text import config_line

RECENT_TRIALS = 50  # the rate is measured over these


class Totals:
    """Counts of finished trials, by lane and in all; values that the user gave may be the best."""

    def __init__(self, objective: Objective, lanes: int) -> None:
        self.best: TrialRecord | None = None
        self._objective = objective
        self._n_done = [0] * lanes
        self._n_failed = self._n_stopped = 0
        self._n_steps = 0  # of the trials that have reported, and ended
        self._n_reporting = 0  # such trials
        self._shares: Mapping[str, float] = {}  # of the members of `auto`, at the newest trial
        self._newest = -1
        self._lane_best: list[float | None] = [None] * lanes
        self._recent: deque[float] = deque(maxlen=RECENT_TRIALS)  # when trials finished

    @property
    def best_value(self) -> float | None:
        """Best value so far."""
        return None if self.best is None else self.best.value

    def add(self, entry: Entry, now: bool = False) -> None:
        """Count a finished trial; `now`: it finished just now."""
        trial = entry.trial
        lane = lane_of(trial.number, len(self._n_done))
        if trial.number > self._newest and "shares" in trial.memo:
            self._newest, self._shares = trial.number, trial.memo["shares"]
        if now:
            self._recent.append(time.monotonic())
        if trial.curve:
            self._n_steps += max(trial.curve)
            self._n_reporting += 1
        if trial.value is None:
            self._n_stopped += trial.state is State.STOPPED
            self._n_failed += trial.state is State.FAILED
            return
        if self._objective.allows(trial.extra):
            if self._is_better(trial.value, self.best_value):
                self.best = trial
            if self._is_better(trial.value, self._lane_best[lane]):
                self._lane_best[lane] = trial.value
        self._n_done[lane] += entry.source != "given"

    def remove(self, entry: Entry) -> None:
        """Take back what `add` counted of a trial that was stopped early, and goes on."""
        self._n_stopped -= 1
        self._n_steps -= max(entry.trial.curve)
        self._n_reporting -= 1

    def progress(
        self,
        name: str,
        state: str,
        use: float,
        elapsed: float,
        running: Iterable[int],
        settings: Settings,
        paused: int = 0,
    ) -> Progress:
        """Return the figures to show.

        `running` are the numbers of the running trials, and `paused` of those stopped may go on.
        """
        lanes, rate = len(self._n_done), self._rate()
        at_work = Counter(lane_of(number, lanes) for number in running)
        return Progress(
            name=name,
            done=sum(self._n_done),
            running=at_work.total(),
            failed=self._n_failed,
            total=settings.max_trials,
            best_value=self.best_value,
            best_number=None if self.best is None else self.best.number,
            best_config_text="" if self.best is None else config_line(self.best.config),
            elapsed=elapsed,
            eta=self._seconds_left(rate, elapsed, settings),
            workers=settings.workers,
            use=use,
            rate=rate,
            lanes=tuple(
                LaneStatus(i, self._n_done[i], at_work[i], self._lane_best[i])
                for i in range(lanes)
            ),
            mode=self._objective.mode,
            state=state,
            shares=self._shares,
            stopped=self._n_stopped,
            paused=paused,
            steps=self._steps_share(settings.max_steps),
        )

    def _steps_share(self, max_steps: int | None) -> float | None:
        """Share of all steps that the trials that have ended ran; None without steps."""
        if not max_steps or not self._n_reporting:
            return None
        return min(1.0, self._n_steps / (max_steps * self._n_reporting))

    def _is_better(self, value: float, best: float | None) -> bool:
        return best is None or self._objective.better(value, best)

    def _rate(self) -> float:
        """Trials finished per second, lately."""
        if len(self._recent) < 2:
            return 0.0
        return (len(self._recent) - 1) / max(1e-6, time.monotonic() - self._recent[0])

    def _seconds_left(self, rate: float, elapsed: float, settings: Settings) -> float | None:
        limits = []
        if settings.max_trials is not None and rate > 0:
            ended = sum(self._n_done) + self._n_failed + self._n_stopped
            limits.append((settings.max_trials - ended) / rate)
        if settings.max_seconds is not None:
            limits.append(settings.max_seconds - elapsed)
        return max(0.0, min(limits)) if limits else None
