"""Plan: all that a coordinator is told when it is made, or made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Resources = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Settings:
    """How long a study runs, and with how much of the cluster."""

    max_trials: int | None
    max_seconds: float | None
    target: float | None
    workers: int
    resources: Resources
    timeout: float | None
    retries: int

    def to_json(self) -> dict[str, Any]:
        """As JSON; resources that are a callable are None."""
        resources = None if callable(self.resources) else plain_resources(self.resources)
        return {**vars(self), "resources": resources}


@dataclass(frozen=True)
class Plan:
    """One session of a study."""

    name: str
    storage: str
    spool: str  # folder for a journal on its way to a URI
    session: str  # an id of the call to optimize
    who: Mapping[str, Any]  # driver, host, session: for the lock
    header: Mapping[str, Any]  # of a new journal
    settings: Settings
    lanes: int
    points: tuple[Any, ...] = ()  # configs in JSON
    given: tuple[tuple[Any, float], ...] = ()  # configs in JSON, and their values


def plain_resources(resources: Mapping[str, Any]) -> dict[str, Any] | None:
    """Resources as JSON, or None where JSON cannot hold them (a placement group)."""

    def is_plain(value: Any) -> bool:
        if isinstance(value, Mapping):
            return all(isinstance(k, str) and is_plain(v) for k, v in value.items())
        return value is None or isinstance(value, str | int | float)

    return dict(resources) if is_plain(resources) else None
