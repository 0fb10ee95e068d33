"""Trial: one config and its result, as a user sees it and as a journal holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from raybo.errors import MALFORMED, JournalError
from raybo.space.any_space import AnySpace
from raybo.study.journal.journal import decode_event
from raybo.study.objective import Objective


class State(StrEnum):
    """Where a trial stands."""

    PENDING = "pending"  # asked, not yet told
    DONE = "done"
    STOPPED = "stopped"  # early, since its reports were worse than those of others
    FAILED = "failed"


class Checkpoint(NamedTuple):
    """Where a trial keeps what it needs to go on from a step."""

    step: int
    path: str


# Causes of failures (raybo/runtime/evaluations/failures.py): those that say something about the
# config, and those that say nothing, after which the point may be proposed again.
SAYS_SOMETHING = ("exception", "result", "timeout", "memory", "crash")
SAYS_NOTHING = ("transient", "lost", "setup", "interrupt", "metric")


@dataclass
class Trial:
    """One evaluation of the objective, as a user sees it.

    `value` is what the objective returned, whatever the mode; None until it is told, and for a
    trial that failed or was stopped early. `curve` has the values that it reported on the way, by
    step, and `checkpoint` the last one with a path, if it gave any.
    """

    number: int
    config: Mapping[str, Any]
    value: float | None = None
    state: State = State.PENDING
    reason: str | None = None  # why it failed
    cause: str | None = None  # class of the failure: raybo/runtime/evaluations/failures.py
    attempts: int = 0
    started: float | None = None  # seconds since the epoch
    finished: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)  # other entries of the result
    memo: dict[str, Any] = field(default_factory=dict)  # what the method noted, in JSON
    curve: dict[int, float] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None

    @property
    def counts(self) -> bool:
        """Whether its outcome says something about its config."""
        return self.state in (State.DONE, State.STOPPED) or (
            self.state is State.FAILED and self.cause not in SAYS_NOTHING
        )


@dataclass
class TrialRecord:
    """A trial with its config in JSON, as journals hold it and processes exchange it.

    The fields are those of `Trial`; `encode` and `decode` convert between the two.
    """

    number: int
    config: Any
    value: float | None = None
    state: State = State.PENDING
    reason: str | None = None
    cause: str | None = None
    attempts: int = 0
    started: float | None = None
    finished: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)
    curve: dict[int, float] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        curve = [[step, value] for step, value in self.curve.items()]
        return {**_fields_of(self), "state": self.state.value, "curve": curve}

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> TrialRecord:
        """Return the record that `to_json` wrote."""
        curve = {int(step): float(value) for step, value in item.get("curve", ())}
        step, path = item.get("checkpoint") or (0, "")
        checkpoint = Checkpoint(int(step), str(path)) if path else None
        state = State(item["state"])
        return cls(**{**item, "state": state, "curve": curve, "checkpoint": checkpoint})

    @classmethod
    def unread(cls, number: int, text: str) -> TrialRecord:
        """Return a pending trial; its config and memo are decoded from `text` on first use.

        `text` is the event of a journal with which the trial was asked. Few of very many trials
        are looked at, and where configs or memos are long, decoding takes most of the time.
        """
        trial = cls(number, None)
        del trial.config, trial.memo
        vars(trial)["_text"] = text
        return trial

    @property
    def text(self) -> str | None:
        """What `unread` was given, until it is decoded."""
        return vars(self).get("_text")

    if not TYPE_CHECKING:  # it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            """Return the config or memo of a trial that was not read before."""
            own = vars(self)
            if name not in ("config", "memo") or "_text" not in own:
                raise AttributeError(f"a TrialRecord has no {name!r}")
            try:
                event = decode_event(own["_text"])
                memo = event.get("memo", {})
                if not isinstance(memo, dict):
                    raise TypeError(f"memo is {memo!r}")
                self.config, self.memo = event["config"], memo
            except MALFORMED as error:
                raise JournalError(
                    f"trial {self.number}: its record in the journal is malformed: {error!r}"
                ) from error
            del own["_text"]
            return own[name]


def detached(trial: Trial) -> Trial:
    """Return a copy of `trial` whose dicts can be changed without changing those of `trial`."""
    names = ("config", "extra", "memo", "curve")
    dicts = {name: _copied(getattr(trial, name)) for name in names}
    return replace(trial, **dicts)


def _copied(value: Any) -> Any:
    return {k: _copied(v) for k, v in value.items()} if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Batch:
    """Reports of a trial.

    Attributes
    ----------
    steps : pairs of a step and a value
        In their order.
    checkpoint : Checkpoint, optional
        The latest.
    bounded : dict
        Entries of the latest report that constraints bound.
    """

    steps: tuple[tuple[int, float], ...] = ()
    checkpoint: Checkpoint | None = None
    bounded: Mapping[str, Any] = field(default_factory=dict)


AnyTrial = TypeVar("AnyTrial", Trial, TrialRecord)

_NAMES = tuple(f.name for f in fields(Trial))


def _fields_of(trial: Trial | TrialRecord) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in _NAMES}


def encode(trial: Trial, space: AnySpace) -> TrialRecord:
    """Return `trial` with its config in JSON."""
    return TrialRecord(**{**_fields_of(trial), "config": space.to_json(trial.config)})


def decode(record: TrialRecord, space: AnySpace) -> Trial:
    """Return the trial that `record` holds, its config decoded by `space`."""
    return Trial(**{**_fields_of(record), "config": space.from_json(record.config)})


def best_of(trials: Iterable[AnyTrial], objective: Objective) -> AnyTrial | None:
    """Return the trial of the best value within the constraints; None when there is none."""
    done = [t for t in trials if t.value is not None]
    if objective.constraints:
        done = [t for t in done if objective.allows(t.extra)]
    return min(done, key=lambda trial: objective.loss(trial.value or 0.0), default=None)
