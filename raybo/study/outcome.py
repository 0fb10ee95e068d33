"""Outcome: a study as data, finished or running, read from its journal without Ray."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from raybo.errors import MALFORMED, JournalError, RayboError, StudyError
from raybo.space.any_space import AnySpace
from raybo.space.definition import space_from_definition
from raybo.study.journal.bulk import in_bulk
from raybo.study.journal.record import Record
from raybo.study.journal.storage import Store, list_slugs, open_store
from raybo.study.objective import Constraints, Objective
from raybo.study.trial import State, Trial, TrialRecord, best_of, decode


@dataclass(frozen=True)
class Stop:
    """Why a session of a study ends."""

    kind: str  # "max_trials", "max_seconds", "target", "exhausted", "interrupted" or "error"
    text: str
    at_once: bool = False  # whether running trials are cancelled
    error: type[RayboError] | None = None  # raised where the session was started


@dataclass(frozen=True)
class Outcome:
    """A study at its end, or at the moment it was read."""

    name: str
    location: str  # folder or URI of the study
    mode: str
    metric: str | None
    method: Mapping[str, Any]  # name and options
    space: AnySpace
    trials: list[Trial] = field(repr=False)  # by number; those that did not finish are pending
    elapsed: float  # seconds, all sessions together
    stop: Stop | None  # None: the study runs, or its last session was killed
    use: float | None  # share of the time that workers were busy in the last session
    constraints: Constraints = field(default_factory=dict)  # bounds of other entries
    lanes: int = 1  # independent searches: `lane_of(trial.number, lanes)`
    seed: int | None = None
    objective: str | None = None  # where it can be imported from
    created: float | None = None  # seconds since the epoch
    workers: int | None = None  # of the last session
    tracebacks: Mapping[int, str] = field(default_factory=dict, repr=False)  # of failed trials
    paused: frozenset[int] = frozenset()  # stopped early, and may go on from their checkpoints

    @classmethod
    def load(
        cls, name: str, storage: str | os.PathLike[str] = "runs", space: AnySpace | None = None
    ) -> Self:
        """Read a study from its journal; it may be running.

        `space` is needed only where JSON cannot hold it: categorical values that are objects.
        """
        record = load_record(name, storage)
        space = space or _space_of(record)
        return cls.from_record(record, space, open_store(storage, name).location)

    @classmethod
    @in_bulk
    def from_record(cls, record: Record, space: AnySpace, location: str) -> Self:
        """Return the study that `record` holds, which is kept at `location`."""
        header, stopped = record.header, record.stopped
        return cls(
            name=header["name"],
            location=location,
            mode=header["mode"],
            metric=header.get("metric"),
            method=header["method"],
            space=space,
            trials=[decode(trial, space) for trial in record.trials],
            elapsed=record.seconds,
            stop=_stop_of(record),
            use=stopped.get("use") if stopped else None,
            constraints=header.get("constraints", {}),
            lanes=_lanes_of(header),
            seed=header.get("seed"),
            objective=header.get("objective"),
            created=header.get("created"),
            workers=record.session.get("settings", {}).get("workers"),
            tracebacks={n: e.traceback for n, e in record.entries.items() if e.traceback},
            paused=frozenset(record.paused),
        )

    @property
    def stop_reason(self) -> str:
        """Why the last session ended, in words."""
        return self.stop.text if self.stop else "not ended"

    @cached_property
    def best_trial(self) -> Trial | None:
        """Trial with the best value; None when no trial has one."""
        return best_of(self.trials, self.goal)

    @property
    def best_value(self) -> float | None:
        """Best value that the objective returned; None when there is none."""
        return self.best_trial.value if self.best_trial else None

    @property
    def best_config(self) -> dict[str, Any] | None:
        """Config with the best value; None when there is none."""
        return dict(self.best_trial.config) if self.best_trial else None

    @property
    def goal(self) -> Objective:
        """What was optimised, within which constraints."""
        return Objective(self.mode, self.metric, self.constraints)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per trial: its fields, then its parameters by their paths.

        A path such as "compress/svd/rank" that is also the name of a field is prefixed with
        "config/"; entries of `extra` are prefixed with "extra/". Where trials reported on their
        way there are `steps`, the last one, and `curve`, the values by step; where they gave
        checkpoints, the path of the last is `checkpoint`.
        """
        return [_row(trial, self.space) for trial in self.trials]


@dataclass(frozen=True)
class StudySummary:
    """One line of a list of studies."""

    name: str
    method: str
    done: int
    failed: int
    pending: int
    best_value: float | None
    mode: str
    state: str  # "running", "stopped" (killed), "damaged", or the kind of its Stop
    created: float
    error: str | None = None  # why the journal cannot be read
    stopped: int = 0  # trials that were stopped early
    paused: int = 0  # of these, trials that may go on


def load_record(name: str, storage: str | os.PathLike[str] = "runs") -> Record:
    """Read the record of a study: its header, settings and trials as the journal holds them."""
    record = open_store(storage, name).record()
    if not record.header:
        known = ", ".join(list_slugs(storage)[:20])
        raise StudyError(
            f"there is no study {name!r} in {str(storage)!r}; "
            + (f"it has {known}" if known else "it has no studies at all")
        )
    missing = [key for key in ("name", "space", "method", "mode") if key not in record.header]
    if missing:
        raise JournalError(f"study {name!r}: the header of its journal has no {missing[0]!r}")
    return record


def list_studies(storage: str | os.PathLike[str] = "runs") -> list[StudySummary]:
    """Return summaries of all studies in `storage`, oldest first; a damaged one says so."""
    found = []
    for slug in list_slugs(storage):
        store = open_store(storage, slug)
        try:
            found.append(summarize(store.record(), store, slug))
        except JournalError as error:
            found.append(StudySummary(slug, "", 0, 0, 0, None, "min", "damaged", 0.0, str(error)))
    return sorted(found, key=lambda summary: summary.created)


studies = list_studies  # the public name: raybo.studies


def delete_study(name: str, storage: str | os.PathLike[str] = "runs") -> str:
    """Remove a study with all that its folder holds; return where it was.

    Raises
    ------
    StudyError
        When there is no such study, it is running, or it is not kept in a folder.
    """
    load_record(name, storage)
    store = open_store(storage, name)
    if store.holder():
        raise StudyError(f"study {name!r} is running; stop it first")
    if "://" in str(storage):
        raise StudyError(
            f"{store.location} is not a folder; remove it with the storage's own tool"
        )
    shutil.rmtree(store.folder)
    return store.location


def summarize(record: Record, store: Store, slug: str) -> StudySummary:
    """Return the summary of a study; `slug` names it while its journal has no header."""
    header, stop, best = record.header, _stop_of(record), best_record(record)
    states = Counter(entry.trial.state for entry in record.entries.values())
    return StudySummary(
        name=header.get("name", slug),
        method=header.get("method", {}).get("name", ""),
        done=states[State.DONE],
        failed=states[State.FAILED],
        pending=states[State.PENDING],
        best_value=None if best is None else best.value,
        mode=header.get("mode", "min"),
        state="running" if store.holder() else stop.kind if stop else "stopped",
        created=header.get("created", 0.0),
        stopped=states[State.STOPPED],
        paused=len(record.paused),
    )


def best_record(record: Record) -> TrialRecord | None:
    """Return the trial with the best value; None when no trial has one."""
    return best_of(record.trials, record.goal)


def flat_config(config: Mapping[str, Any], space: AnySpace) -> dict[str, Any]:
    """Return the active parameters of a config by their paths; a choice has its branch's name."""
    choices = {c.name for c in space.columns if c.kind == "choice"} if space.dense else set()
    flat: dict[str, Any] = {}

    def walk(part: Mapping[str, Any], path: str) -> None:
        for key, value in part.items():
            here = f"{path}{key}"
            if here in choices and isinstance(value, Mapping):
                flat[here] = next(iter(value))
            if isinstance(value, Mapping):
                walk(value, f"{here}/")
            else:
                flat[here] = value

    walk(config, "")
    return flat


def encodable(text: str) -> str:
    """Return `text` with escapes for halves of surrogate pairs, which UTF-8 cannot hold.

    Python makes them of file names that are not UTF-8, for instance.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _row(trial: Trial, space: AnySpace) -> dict[str, Any]:
    row: dict[str, Any] = {k: v for k, v in vars(trial).items() if k not in ("config", "memo")}
    extra, curve, checkpoint = (row.pop(name) for name in ("extra", "curve", "checkpoint"))
    row["state"] = trial.state.value
    row["seconds"] = None
    if trial.started is not None and trial.finished is not None:
        row["seconds"] = trial.finished - trial.started
    if curve:
        row["steps"], row["curve"] = max(curve), {str(step): v for step, v in curve.items()}
    if checkpoint:
        row["checkpoint"] = checkpoint.path
    fields = set(row)
    for path, value in flat_config(trial.config, space).items():
        row[f"config/{path}" if path in fields else path] = value
    row |= {f"extra/{key}": value for key, value in extra.items()}
    return {key: encodable(v) if isinstance(v, str) else v for key, v in row.items()}


def _space_of(record: Record) -> AnySpace:
    try:
        return space_from_definition(record.header["space"], to_search=False)
    except RayboError:
        raise
    except MALFORMED as error:
        raise JournalError(f"the header of the journal holds no valid space: {error!r}") from error


def _stop_of(record: Record) -> Stop | None:
    stopped = record.stopped
    if stopped is None:
        return None
    return Stop(stopped.get("outcome", "finished"), stopped.get("reason", "finished"))


def _lanes_of(header: Mapping[str, Any]) -> int:
    """Lanes of a study; journals that do not record them are of REMBO with k, or of one lane."""
    k = header["method"].get("options", {}).get("k")
    return int(header.get("lanes") or (k if isinstance(k, int) else 1))
