"""Session: one call of optimize, with all that its coordinator needs to start or start again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raybo.study.steps import Steps
from raybo.study.trial import TrialRecord

Resources = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Settings:
    """Limits of a session and its use of the cluster; the arguments of optimize explain them."""

    max_trials: int | None
    max_seconds: float | None
    target: float | None
    workers: int
    resources: Resources
    timeout: float | None
    retries: int
    max_failures: int | None = None
    patience: int | None = None
    max_steps: int | None = None
    stop_early: bool = False
    over: str = "steps"

    @property
    def steps(self) -> Steps:
        """What trials report on their way."""
        return Steps(self.max_steps, self.stop_early, self.over)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON; resources that JSON cannot hold are None."""
        resources = None if callable(self.resources) else plain_resources(self.resources)
        return {**vars(self), "resources": resources}


@dataclass(frozen=True)
class Session:
    """One call of optimize."""

    id: str
    storage: str
    spool: str  # folder of a journal that is uploaded to a URI
    holder: Mapping[str, Any]  # driver, host, session: written into the lock of the journal
    header: Mapping[str, Any]  # of the study: the first event of its journal
    settings: Settings
    code: str | None = None  # hash of the objective, to notice that it changes
    resume_hint: str = ""  # how to go on with the study, for people
    points: tuple[Any, ...] = ()  # configs in JSON to evaluate first
    given: tuple[Mapping[str, Any], ...] = ()  # known points in JSON: config, value, extra
    opening: tuple[TrialRecord, ...] = ()  # proposals for the first trials of a new study
    processes: int = 0  # that run coroutines; 0 where each evaluation has a process
    resumes: bool = False  # whether the objective can go on from a checkpoint

    @property
    def name(self) -> str:
        """Name of the study."""
        return str(self.header["name"])

    @property
    def lanes(self) -> int:
        """Number of lanes of the method."""
        return int(self.header["lanes"])


@dataclass(frozen=True)
class Payload:
    """References into Ray's object store to what the processes of a session need."""

    session: Any  # the Session, the space and the Objective, for the coordinator
    work: Any  # the Work of the evaluations
    search: Any  # the Search of the proposers


def plain_resources(resources: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the resources as JSON, or None where JSON cannot hold them (a placement group)."""

    def is_plain(value: Any) -> bool:
        if isinstance(value, Mapping):
            return all(isinstance(k, str) and is_plain(v) for k, v in value.items())
        return value is None or isinstance(value, str | int | float)

    return dict(resources) if is_plain(resources) else None
