"""Trials: the trials of a searcher, and what Tune says about them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raybo.errors import MetricError, ObjectiveError, SpaceError
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective, finite_number
from raybo.study.trial import State, Trial, TrialRecord, decode, encode

logger = logging.getLogger(__name__)

RECENT_TRIALS = 20  # durations are averaged over these
SECONDS_KEY = "time_total_s"  # Tune's name for the duration of a trial
STEP_KEY = "training_iteration"  # Tune's name for the number of a trial's results so far


@dataclass(frozen=True)
class Report:
    """What a result of Tune says: the metric, other metrics, and what constraints bound."""

    value: float
    entries: Mapping[str, float]


class Trials:
    """Trials by number, with raybo's configs; Tune knows some of them by an id.

    It is normal that Tune knows trials that are not here, and the other way round: the files of an
    experiment may differ in age, and Tune does not report trials that it cuts off.
    """

    def __init__(self) -> None:
        self.by_number: dict[int, Trial] = {}
        self.numbers: dict[str, int] = {}  # by Tune's id
        self.live: set[str] = set()  # ids that run in this session
        self._next = 0
        self._reported: dict[str, Report] = {}  # last complete report of live trials
        self._again: set[str] = set()  # run again after a failure, or not suggested here

    @property
    def n_finished(self) -> int:
        """Number of trials that are no longer pending."""
        return sum(trial.state is not State.PENDING for trial in self.by_number.values())

    @property
    def n_values(self) -> int:
        """Number of trials whose value is known, or that were stopped on their way to it."""
        return sum(t.state in (State.DONE, State.STOPPED) for t in self.by_number.values())

    def take_number(self) -> int:
        """Return a number for a trial, which no other trial will get."""
        self._next += 1
        return self._next - 1

    def add(self, trial: Trial, trial_id: str | None = None) -> None:
        """Add a trial; one with an id is live."""
        self.by_number[trial.number] = trial
        self._next = max(self._next, trial.number + 1)
        if trial_id is not None:
            self.numbers[trial_id] = trial.number
            self.live.add(trial_id)

    def unfinished(self, trial_id: str) -> bool:
        """Whether the trial is known and its final result is not."""
        number = self.numbers.get(trial_id)
        ended = (State.DONE, State.STOPPED)
        done = number is None or self.by_number[number].state in ended
        return not done or trial_id in self._again

    def adopt(self, trial_id: str, config: Mapping[str, Any]) -> Trial:
        """Return the trial of an id not suggested here: a failed one run again, or a new one."""
        failed = (t for t in self.by_number.values() if t.state is State.FAILED)
        trial = next((t for t in failed if t.config == config), None)
        if trial is None:
            trial = Trial(self.take_number(), config)
            self.add(trial)
        self.numbers[trial_id] = trial.number
        self._again.add(trial_id)
        return trial

    def report(
        self, trial_id: str, result: Mapping[str, Any], objective: Objective
    ) -> Trial | None:
        """Note an intermediate result of a known trial; one without the metric is skipped.

        Returns the trial if the result changes it. It does where the result has a step, and where
        Tune may never tell how the trial ends: Ray's ConcurrencyLimiter hides the ends of trials
        that are run again, and of those whose start it did not see.
        """
        try:
            report = read_report(result, objective)
        except ObjectiveError:
            report = None
        trial = self.by_number[self.numbers[trial_id]]
        if trial.state not in (State.DONE, State.STOPPED):
            self.live.add(trial_id)
        if report is None:
            return None
        self._reported[trial_id] = report
        drawn = self._draw(trial, result, report.value, objective)
        if trial.state is State.PENDING:
            trial.extra = dict(report.entries)
        if trial.state is State.FAILED:
            self._again.add(trial_id)
        if trial_id not in self._again:
            return trial if drawn else None
        self.live.discard(trial_id)
        _succeed(trial, report)
        return trial

    def complete(
        self, trial_id: str, result: Mapping[str, Any] | None, error: bool, objective: Objective
    ) -> Trial | None:
        """Record the end of a known trial; return it, or None if it was never evaluated.

        Without a final value the last report counts, unless the trial failed. A trial that was
        stopped before it reported anything is removed: nothing is known about its point.
        """
        self.live.discard(trial_id)
        self._again.discard(trial_id)
        last = self._reported.pop(trial_id, None)
        trial = self.by_number[self.numbers[trial_id]]
        if not error and result is None and last is None:
            del self.by_number[self.numbers.pop(trial_id)]
            return None
        finish(trial, result or {}, error, objective, last)
        if trial.value is not None and result:  # Tune tells the last result only here
            self._draw(trial, result, trial.value, objective)
        return trial

    def _draw(
        self, trial: Trial, result: Mapping[str, Any], value: float, objective: Objective
    ) -> bool:
        """Add a result to the curve of its trial, if it has a step."""
        step = result.get(STEP_KEY)
        if not isinstance(step, int) or isinstance(step, bool) or step < 1 or objective.others:
            return False
        trial.curve[step] = value
        return True

    def cut_short(self) -> list[int]:
        """Take trials that ended at steps at which others went on for stopped ones.

        A scheduler such as ASHA stops trials, and Tune does not say so. What they would have
        reached is then expected from their curves. Returns the trials that change.
        """
        drawn = [t for t in self.by_number.values() if t.curve]
        longest = max((max(t.curve) for t in drawn), default=0)
        short = [t for t in drawn if t.state is State.DONE and max(t.curve) < longest]
        for trial in short:
            trial.state, trial.value = State.STOPPED, None
        return [trial.number for trial in short]

    @property
    def mean_seconds(self) -> float | None:
        """Mean duration of the latest trials, as Tune reported it; None while unknown."""
        known = [t.extra[SECONDS_KEY] for t in self.by_number.values() if SECONDS_KEY in t.extra]
        recent = known[-RECENT_TRIALS:]
        return sum(recent) / len(recent) if recent else None

    def to_json(self, space: AnySpace, unused: int | None = None) -> dict[str, Any]:
        """Return the trials as JSON; the number `unused` was taken, but its trial is not here."""
        trials = [encode(trial, space).to_json() for trial in self.by_number.values()]
        next_number = self._next - 1 if unused == self._next - 1 else self._next
        return {"trials": trials, "ids": self.numbers, "next": next_number}

    @classmethod
    def from_json(cls, item: Mapping[str, Any], space: AnySpace) -> Trials:
        """Return the trials that `to_json` gave, without those that do not fit `space`."""
        made = cls()
        for entry in item["trials"]:
            try:
                made.add(decode(TrialRecord.from_json(entry), space))
            except SpaceError as error:
                logger.warning("trial %s does not fit the space: %s", entry.get("number"), error)
        made.numbers = {i: n for i, n in item["ids"].items() if n in made.by_number}
        made._next = max(made._next, item["next"])
        return made


def finish(
    trial: Trial,
    result: Mapping[str, Any],
    error: bool,
    objective: Objective,
    last: Report | None = None,
) -> None:
    """Write into a trial what its final result says, or its last report if that says nothing."""
    trial.state, trial.value, trial.cause = State.FAILED, None, "exception"
    trial.reason = "the trial ended with an error"
    if error:
        return
    try:
        report = read_report(result, objective) or last
        if report is None:
            raise MetricError(f"the trial reported no metric {objective.metric!r}")
    except MetricError as problem:
        trial.reason, trial.cause = str(problem), "metric"
        reported = ", ".join(sorted(map(str, result))) or "nothing"
        logger.warning("%s and counts as failed; it reported %s", problem, reported)
        return
    except ObjectiveError as problem:
        trial.reason, trial.cause = str(problem), "result"
        return
    _succeed(trial, report)
    seconds = result.get(SECONDS_KEY)
    if isinstance(seconds, int | float) and seconds >= 0:
        trial.extra[SECONDS_KEY] = float(seconds)


def read_report(result: Mapping[str, Any], objective: Objective) -> Report | None:
    """Return what a result says; None if it has no metric.

    Raises
    ------
    ObjectiveError
        When a number is not finite; MetricError when an entry that is bounded is missing.
    """
    metric = objective.metric or ""
    value = lookup(result, metric)
    if value is None:
        return None
    entries = {}
    for name in objective.entries:
        entry = lookup(result, name)
        if entry is None:
            why = "constraints= bounds" if name in objective.constraints else "is a metric"
            raise MetricError(f"the trial reported no {name!r}, which {why}")
        entries[name] = finite_number(entry, f"the entry {name!r} is")
    return Report(finite_number(value, f"the metric {metric!r} is"), entries)


def _succeed(trial: Trial, report: Report) -> None:
    trial.state, trial.value, trial.extra = State.DONE, report.value, dict(report.entries)
    trial.reason = trial.cause = None


def lookup(result: Mapping[str, Any], name: str) -> Any:
    """Return the entry of a result, nested or flat; None if it is missing."""
    value: Any = result.get(name)
    if value is None:
        value = result
        for part in name.split("/"):
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def config_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a trial, from its result."""
    flat = {k[len("config/") :]: v for k, v in result.items() if str(k).startswith("config/")}
    inside = result.get("config")
    return {**inside, **flat} if isinstance(inside, Mapping) else flat
