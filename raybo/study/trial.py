"""A trial: one config, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Where a trial stands."""

    PENDING = "pending"  # asked, not yet told
    DONE = "done"
    FAILED = "failed"


@dataclass
class Trial:
    """One evaluation of the objective; `value` is the user's own value, None until it is told."""

    number: int
    config: Mapping[str, Any]
    value: float | None = None
    state: State = State.PENDING
    reason: str | None = None  # why it failed
    attempts: int = 0
    started: float | None = None  # seconds since the epoch
    finished: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)  # what else the objective returned
    memo: dict[str, Any] = field(default_factory=dict)  # what the method noted with the proposal
