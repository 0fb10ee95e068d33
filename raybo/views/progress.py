"""Progress: the figures of a running study at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LaneStatus:
    """Progress of one lane, such as an embedding of REMBO."""

    index: int
    done: int  # trials with a value
    running: int
    best: float | None  # as the objective returned it


@dataclass(frozen=True)
class Progress:
    """The figures that a view shows; values as the objective returned them, times in seconds."""

    name: str
    done: int  # trials with a value
    running: int
    failed: int
    total: int | None  # max_trials; None when there is no such limit
    best_value: float | None
    best_number: int | None
    best_config_text: str  # short, one line
    elapsed: float  # of this call of optimize
    eta: float | None  # seconds left; None while unknown
    workers: int
    use: float  # busy share of the workers while there was work for them, in [0, 1]
    rate: float  # trials finished per second, recently
    lanes: tuple[LaneStatus, ...]
    mode: str  # "min" or "max"
    state: str  # "starting", "running", "draining", "stopping", "finished" or "failed"
    shares: Mapping[str, float] = field(default_factory=dict)  # of the members of `auto`
    stopped: int = 0  # trials that were stopped early
    paused: int = 0  # of these, trials that may go on
    steps: float | None = None  # share of all steps that the ended trials ran; None without steps

    @property
    def ended(self) -> int:
        """Trials that have ended, in whatever way."""
        return self.done + self.failed + self.stopped
