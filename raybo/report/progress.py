"""Progress: the figures of a running study at one moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LaneStatus:
    """Progress of one lane, such as an embedding of REMBO."""

    index: int
    done: int  # trials with a value
    running: int
    best: float | None  # the user's own value


@dataclass(frozen=True)
class Progress:
    """The figures that a live view shows; values are the user's own, times are in seconds."""

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
    rate: float  # trials finished per second, lately
    lanes: tuple[LaneStatus, ...]
    mode: str  # "min" or "max"
    state: str  # "starting", "running", "draining", "stopping", "finished" or "failed"
