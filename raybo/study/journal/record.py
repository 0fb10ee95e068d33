"""Record: the state of a study, computed from the events of its journal.

Event        Meaning
header       what the study is: name, space, method, lanes, mode, metric, seed, ...; comes first
session      a driver started or resumed the study, with these settings
given        a point whose value the user knew
points       configs that the user wants evaluated first
asked        a trial was started: its config and the memo of the method
report       values of a trial on its way, by step, and its checkpoint if it has one
paused       a trial was stopped for now: others were better, but it can go on from its checkpoint
promoted     a paused trial goes on, since it is among the better ones now
retry        an attempt failed and the trial is tried again
interrupted  these trials were running when the coordinator or the driver died
done         a trial has a value
stopped_early  a trial was stopped, since its reports were worse than those of others
failed       a trial has no value, and why
stopped      the session ended, and why

A proposal is written when its trial starts, not when it is prepared: a proposal that was never
started is made again with newer data, and no trial is left pending that nobody evaluated. An
`asked` event precedes all others of its trial.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import NoneType
from typing import Any, get_args

from raybo.errors import MALFORMED, JournalError
from raybo.study.journal.bulk import in_bulk
from raybo.study.journal.journal import Contents
from raybo.study.objective import Objective, finite_number
from raybo.study.steps import checked_step
from raybo.study.trial import Checkpoint, State, TrialRecord

_Number = int | float
_SPAN: dict[str, Any] = {"number": int, "attempts": int}
_SPAN |= {"started": _Number | None, "finished": _Number | None}
_TYPES: dict[str, dict[str, Any]] = {
    "header": {"name": str, "space": dict, "method": dict, "mode": str, "metric": str | None,
               "constraints": dict, "lanes": int, "max_steps": int | None, "over": str,
               "seed": int, "objective": str | None, "created": _Number},
    "session": {"id": str, "time": _Number, "settings": dict, "resume_hint": str,
                "code": str | None},
    "given": {**_SPAN, "value": _Number, "extra": dict},
    "points": {"configs": list},
    "asked": {"number": int, "source": str, "memo": dict},
    "report": {"number": int, "steps": list, "checkpoint": list, "extra": dict},
    "paused": {**_SPAN, "extra": dict},
    "promoted": {"number": int},
    "retry": {"number": int},
    "interrupted": {"numbers": list},
    "done": {**_SPAN, "value": _Number, "extra": dict},
    "stopped_early": {**_SPAN, "extra": dict},
    "failed": {**_SPAN, "reason": str, "cause": str, "traceback": str, "alike": str},
    "stopped": {"reason": str, "outcome": str, "error": str | None, "seconds": _Number,
                "use": _Number | None},
}  # fmt: skip
# Tuples are looked up three times as fast as unions, and a journal may hold very many events.
_TYPES = {
    kind: {key: get_args(of) or (of,) for key, of in types.items()}
    for kind, types in _TYPES.items()
}
_METHOD = {"name": (str,), "options": (dict,)}
_SHOWN = {"max_trials": (int, NoneType), "workers": (int, NoneType)}  # by every command

_ASKED = re.compile(rb'\{"kind":"asked","number":(\d{1,18}),"config":')


@dataclass
class Entry:
    """A trial, and what only the runtime needs to know about it."""

    trial: TrialRecord
    source: str = "method"  # "method", "point" or "given"
    errors: int = 0  # attempts that failed
    losses: int = 0  # attempts lost with a node, a coordinator or a driver
    kind: str = ""  # equal for failures of the same kind
    traceback: str = ""


@dataclass
class Record:
    """State of a study according to its journal."""

    header: dict[str, Any] = field(default_factory=dict)
    goal: Objective = field(default_factory=Objective)  # according to the header
    session: dict[str, Any] = field(default_factory=dict)  # the last one
    before: int = 0  # trials that had finished when it started
    stopped: dict[str, Any] | None = None  # how it ended; None while it runs or after a kill
    seconds: float = 0.0  # of all ended sessions; a killed one counts up to its last result
    latest: float = 0.0  # when the last trial finished
    points: list[Any] = field(default_factory=list)  # configs to evaluate first, not yet asked
    entries: dict[int, Entry] = field(default_factory=dict)  # by number, in the order of asking
    order: list[int] = field(default_factory=list)  # numbers in the order of finishing
    paused: dict[int, bool] = field(default_factory=dict)  # numbers; whether in this session
    given: list[int] = field(default_factory=list)  # numbers of points whose value the user knew

    @classmethod
    def from_contents(cls, contents: Contents) -> Record:
        """Return the state of a study after all events of its journal.

        Raises
        ------
        JournalError
            With the file and line of an event that raybo cannot have written.
        """
        record = cls()
        record.follow(contents)
        return record

    @in_bulk
    def follow(self, contents: Contents) -> None:
        """Update the state by all events of `contents`."""
        for i, text in enumerate(contents.texts):
            asked = _ASKED.match(text)
            try:
                if asked is None or b'"source":' in text:
                    self.apply(contents.event(i))
                else:
                    self._add(TrialRecord.unread(int(asked[1]), text.decode()))
            except JournalError as error:
                raise JournalError(f"{contents.where(i)}: {error}") from error

    def apply(self, event: Mapping[str, Any]) -> None:
        """Update the state by one event."""
        kind = event.get("kind")
        handler = getattr(self, f"_on_{kind}", None)
        if handler is None:
            raise JournalError(
                f"a record of the unknown kind {kind!r}; it was written by a newer "
                "release: use that one"
            )
        try:
            _check_types(event, _TYPES[str(kind)])
            handler(event)
        except MALFORMED as error:
            raise JournalError(f"a malformed record of the kind {kind!r}: {error!r}") from error

    @property
    def trials(self) -> list[TrialRecord]:
        """All trials, by number."""
        return [self.entries[number].trial for number in sorted(self.entries)]

    @property
    def pending(self) -> list[int]:
        """Numbers of the trials that were asked and have not finished, by number."""
        return sorted(n for n, e in self.entries.items() if e.trial.state is State.PENDING)

    @property
    def n_ended(self) -> int:
        """Number of trials that have finished or are paused, without those the user knew."""
        return len(self.order) + len(self.paused) - len(self.given)

    @property
    def may_promote(self) -> bool:
        """Whether a paused trial may be waiting for a worker: the last session was cut short."""
        ending = self.stopped.get("outcome") if self.stopped else None
        return bool(self.paused) and ending not in ("max_trials", "exhausted")

    def recent_durations(self, n: int) -> list[float]:
        """Return the seconds that the last n trials took, without those that failed."""
        trials = (self.entries[number].trial for number in reversed(self.order))
        spans = ((t.started, t.finished) for t in trials if t.value is not None)
        timed = (end - start for start, end in spans if start is not None and end is not None)
        return list(islice(timed, n))

    def _on_header(self, event: Mapping[str, Any]) -> None:
        if self.header:
            raise JournalError("a second header; two studies were written into one journal")
        method = event.get("method", {})
        _check_types(method, _METHOD)
        bounds = event.get("constraints", {})
        self.goal = Objective(event.get("mode", "min"), event.get("metric"), bounds)
        self.header = {k: v for k, v in event.items() if k != "kind"}

    def _on_session(self, event: Mapping[str, Any]) -> None:
        if self.session and self.stopped is None:
            self.seconds += max(0.0, self.latest - self.session["time"])
        _check_types(event.get("settings", {}), _SHOWN)
        self.session = {k: v for k, v in event.items() if k != "kind"}
        self.before = len(self.order)
        self.paused = dict.fromkeys(self.paused, False)
        self.stopped = None

    def _on_given(self, event: Mapping[str, Any]) -> None:
        self._add(_asked(event), "given")
        self.given.append(event["number"])
        self._succeed(event)

    def _on_points(self, event: Mapping[str, Any]) -> None:
        self.points.extend(event["configs"])

    def _on_asked(self, event: Mapping[str, Any]) -> None:
        source = event.get("source", "method")
        if source == "point" and event["config"] in self.points:
            self.points.remove(event["config"])
        self._add(_asked(event), source)

    def _on_report(self, event: Mapping[str, Any]) -> None:
        entry = self._pending(event["number"])
        for step, value in event["steps"]:
            entry.trial.curve[checked_step(step, 0)] = finite_number(value, "a value is")
        entry.trial.extra = dict(event.get("extra", {}))
        if "checkpoint" in event:
            step, path = event["checkpoint"]
            entry.trial.checkpoint = Checkpoint(checked_step(step, 0), str(path))

    def _on_paused(self, event: Mapping[str, Any]) -> None:
        self._end(event, State.STOPPED).extra = dict(event.get("extra", {}))
        self.paused[event["number"]] = True

    def _on_promoted(self, event: Mapping[str, Any]) -> None:
        number = event["number"]
        if number not in self.paused:
            raise JournalError(f"trial {number} was promoted, but not paused")
        del self.paused[number]
        trial = self.entries[number].trial
        trial.state, trial.started, trial.finished = State.PENDING, None, None

    def _on_retry(self, event: Mapping[str, Any]) -> None:
        entry = self._pending(event["number"])
        entry.trial.attempts += 1
        if event.get("lost"):
            entry.losses += 1
        else:
            entry.errors += 1

    def _on_interrupted(self, event: Mapping[str, Any]) -> None:
        for number in event["numbers"]:
            entry = self._pending(number)
            entry.trial.attempts += 1
            entry.losses += 1

    def _on_done(self, event: Mapping[str, Any]) -> None:
        self._succeed(event)

    def _on_stopped_early(self, event: Mapping[str, Any]) -> None:
        self._finish(event, State.STOPPED).extra = dict(event.get("extra", {}))

    def _on_failed(self, event: Mapping[str, Any]) -> None:
        trial = self._finish(event, State.FAILED)
        trial.reason, trial.cause = event["reason"], event.get("cause")
        entry = self.entries[trial.number]
        entry.traceback = event.get("traceback", "")
        entry.kind = event.get("alike", "")

    def _on_stopped(self, event: Mapping[str, Any]) -> None:
        self.stopped = {k: v for k, v in event.items() if k != "kind"}
        self.seconds += event.get("seconds", 0.0)

    def _add(self, trial: TrialRecord, source: str = "method") -> None:
        if trial.number in self.entries:
            raise JournalError(f"trial {trial.number} was asked twice")
        self.entries[trial.number] = Entry(trial, source)

    def _succeed(self, event: Mapping[str, Any]) -> None:
        extra = dict(event.get("extra", {}))
        finite_number(event["value"], "the value is")
        self.goal.excess(extra)  # refuses what is bounded and no number
        trial = self._finish(event, State.DONE)
        trial.value, trial.extra = event["value"], extra

    def _finish(self, event: Mapping[str, Any], state: State) -> TrialRecord:
        trial = self._end(event, state)
        self.order.append(trial.number)
        return trial

    def _end(self, event: Mapping[str, Any], state: State) -> TrialRecord:
        trial = self._pending(event["number"]).trial
        trial.state = state
        trial.attempts = event.get("attempts", trial.attempts)
        trial.started, trial.finished = event.get("started"), event.get("finished")
        self.latest = max(self.latest, trial.finished or 0.0)
        return trial

    def _pending(self, number: int) -> Entry:
        entry = self.entries.get(number)
        if entry is None or entry.trial.state is not State.PENDING:
            what = "was never asked" if entry is None else f"is {entry.trial.state} already"
            raise JournalError(f"a record about trial {number}, which {what}")
        return entry


def _asked(event: Mapping[str, Any]) -> TrialRecord:
    return TrialRecord(event["number"], event["config"], memo=dict(event.get("memo", {})))


def _check_types(event: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> None:
    for key, value in event.items():
        wanted = types.get(key)
        if wanted is None or type(value) in wanted:
            continue
        if not isinstance(value, wanted) or isinstance(value, bool):  # an int of Python
            raise TypeError(f"{key} is {value!r}")
