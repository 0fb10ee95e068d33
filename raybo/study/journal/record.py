"""Record: the state of a study, folded from the events of its journal.

Event        What it says
header       what the study is: name, space, method, mode, metric, seed, ...; the first event
session      a driver began or went on, with these settings
given        a point whose value the user knew
points       configs that the user wants evaluated first
asked        a trial was made and started; its config and the memo of the method
retry        an attempt failed and the trial is tried again
interrupted  these trials were running when the coordinator or the driver died
done         a trial has a value
failed       a trial has none, and why
stopped      the session ended, and why

A proposal is journalled when its trial starts, not when it is prepared: what was prepared and
never started leaves no trace and is proposed again with fresher data, and no trial is ever left
pending that nobody evaluated. An `asked` event always stands before all others of its trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from raybo.errors import JournalError
from raybo.study.journal.journal import Contents
from raybo.study.trial import State, TrialRecord


@dataclass
class Entry:
    """A trial, and what only the runtime needs to know about it."""

    trial: TrialRecord
    source: str = "method"  # "method", "point" or "given"
    errors: int = 0  # attempts that failed by themselves
    losses: int = 0  # attempts lost with a node, a coordinator or a driver
    cause: str = ""  # of the failure
    kind: str = ""  # failures alike have the same
    traceback: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return {**vars(self), "trial": self.trial.to_json()}

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Entry:
        """Entry written by `to_json`."""
        return cls(**{**item, "trial": TrialRecord.from_json(item["trial"])})


@dataclass
class Record:
    """All that a journal says about a study."""

    header: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)  # the last one
    before: int = 0  # trials that had finished when it began
    stopped: dict[str, Any] | None = None  # how it ended; None while it runs or after a kill
    seconds: float = 0.0  # of the sessions that ended; a killed one up to its last result
    latest: float = 0.0  # when the last trial finished
    points: list[Any] = field(default_factory=list)  # configs to evaluate first, not yet asked
    entries: dict[int, Entry] = field(default_factory=dict)  # by number, in the order of asking
    order: list[int] = field(default_factory=list)  # numbers in the order of finishing
    given: list[int] = field(default_factory=list)  # numbers of points whose value the user knew

    @classmethod
    def from_contents(cls, contents: Contents) -> Record:
        """Record of a journal."""
        record = cls() if contents.state is None else cls._from_json(contents.state)
        return record.apply_all(contents.events)

    def apply_all(self, events: Iterable[Mapping[str, Any]]) -> Record:
        """Fold events, in order."""
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: Mapping[str, Any]) -> None:
        """Fold one event."""
        handler = getattr(self, f"_on_{event.get('kind')}", None)
        if handler is None:
            raise JournalError(
                f"a record of the unknown kind {event.get('kind')!r}; it was written by a newer "
                "release: use that one"
            )
        handler(event)

    def to_json(self) -> dict[str, Any]:
        """As JSON, for a snapshot."""
        entries = [entry.to_json() for entry in self.entries.values()]
        return {**vars(self), "entries": entries}

    @classmethod
    def _from_json(cls, state: Mapping[str, Any]) -> Record:
        entries = [Entry.from_json(item) for item in state["entries"]]
        return cls(**{**state, "entries": {e.trial.number: e for e in entries}})

    @property
    def trials(self) -> list[TrialRecord]:
        """All trials, by number."""
        return [self.entries[number].trial for number in sorted(self.entries)]

    @property
    def pending(self) -> list[int]:
        """Numbers of the trials that were asked and have not finished, by number."""
        return sorted(n for n, e in self.entries.items() if e.trial.state is State.PENDING)

    def _on_header(self, event: Mapping[str, Any]) -> None:
        if self.header:
            raise JournalError("a second header; two studies were written into one journal")
        self.header = {k: v for k, v in event.items() if k != "kind"}

    def _on_session(self, event: Mapping[str, Any]) -> None:
        if self.session and self.stopped is None:
            self.seconds += max(0.0, self.latest - self.session["time"])
        self.session = {k: v for k, v in event.items() if k != "kind"}
        self.before = len(self.order)
        self.stopped = None

    def _on_given(self, event: Mapping[str, Any]) -> None:
        self._add(event, "given")
        self.given.append(event["number"])
        self._finish(event, State.DONE)
        self.entries[event["number"]].trial.value = event["value"]

    def _on_points(self, event: Mapping[str, Any]) -> None:
        self.points.extend(event["configs"])

    def _on_asked(self, event: Mapping[str, Any]) -> None:
        source = event.get("source", "method")
        if source == "point" and event["config"] in self.points:
            self.points.remove(event["config"])
        self._add(event, source)

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
        trial = self._finish(event, State.DONE)
        trial.value = event["value"]
        trial.extra = dict(event.get("extra", {}))

    def _on_failed(self, event: Mapping[str, Any]) -> None:
        trial = self._finish(event, State.FAILED)
        trial.reason = event["reason"]
        entry = self.entries[trial.number]
        entry.cause, entry.traceback = event.get("cause", ""), event.get("traceback", "")
        entry.kind = event.get("alike", "")

    def _on_stopped(self, event: Mapping[str, Any]) -> None:
        self.stopped = {k: v for k, v in event.items() if k != "kind"}
        self.seconds += event.get("seconds", 0.0)

    def _add(self, event: Mapping[str, Any], source: str) -> None:
        number = event["number"]
        if number in self.entries:
            raise JournalError(f"trial {number} was asked twice")
        trial = TrialRecord(number, event["config"], memo=dict(event.get("memo", {})))
        self.entries[number] = Entry(trial, source)

    def _finish(self, event: Mapping[str, Any], state: State) -> TrialRecord:
        trial = self._pending(event["number"]).trial
        trial.state = state
        trial.attempts = event.get("attempts", trial.attempts)
        trial.started, trial.finished = event.get("started"), event.get("finished")
        self.latest = max(self.latest, trial.finished or 0.0)
        self.order.append(trial.number)
        return trial

    def _pending(self, number: int) -> Entry:
        entry = self.entries.get(number)
        if entry is None or entry.trial.state is not State.PENDING:
            what = "was never asked" if entry is None else f"is {entry.trial.state} already"
            raise JournalError(f"a record about trial {number}, which {what}")
        return entry
