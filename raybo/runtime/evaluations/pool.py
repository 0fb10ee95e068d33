"""Pool: the evaluations in flight.

Each attempt at a trial has an id. An attempt that was given up (timeout, dead node) is forgotten,
so that a result that comes later, or twice, is dropped.

A node that falls silent is noticed by Ray's health check, but its tasks only after seven minutes:
the pool watches the nodes itself and gives up the attempts on dead ones. Attempts that had not
begun are sent again, since they may have been on their way there.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from raybo.runtime.backend import Backend
from raybo.runtime.evaluations.failures import (
    Failure,
    failure_of_node,
    failure_of_setup,
    failure_of_timeout,
)
from raybo.runtime.session import Settings
from raybo.space.any_space import AnySpace

_RECENT = 50  # trials whose durations predict the next


@dataclass(eq=False)
class Attempt:
    """One try at a trial."""

    number: int
    id: str
    submitted: float
    handle: Any = None
    started: float | None = None  # when it said so
    node: str = ""
    place: str = ""


@dataclass(frozen=True)
class Ended:
    """How an attempt ended: with a value, or with a failure."""

    number: int
    value: float | None
    extra: Mapping[str, Any]
    failure: Failure | None
    started: float  # seconds since the epoch
    finished: float


class Pool:
    """Attempts by the number of their trial; `report` is called with each that ends."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        space: AnySpace,
        epoch: int,
        report: Callable[[Ended], None],
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self.running: dict[int, Attempt] = {}
        self._backend = backend
        self._settings = settings
        self._space = space
        self._epoch = epoch
        self._report = report
        self._spawn = spawn
        self.count = 0  # attempts so far
        self._busy = 0.0
        self._durations: deque[float] = deque(maxlen=_RECENT)
        self._dead: set[str] = set()

    def submit(self, number: int, config: Any) -> None:
        """Start an attempt at a trial."""
        self.count += 1
        attempt = Attempt(number, f"{self._epoch}.{number}.{self.count}", time.monotonic())
        self.running[number] = attempt
        try:
            resources = self._settings.resources
            if callable(resources):
                resources = resources(self._space.from_json(config))
            attempt.handle = self._backend.submit(attempt.id, config, resources)
        except Exception as error:  # noqa: BLE001  (the user's callable, or Ray's refusal of it)
            text = f"resources: {type(error).__name__}: {error}"
            self._spawn(self._refuse(attempt, failure_of_setup(text)))
        else:
            self._spawn(self._follow(attempt))

    def started(self, attempt_id: str, node: str, pid: int) -> None:
        """Note that an attempt has begun, and where."""
        attempt = self.running.get(int(attempt_id.split(".")[1]))
        if attempt is not None and attempt.id == attempt_id and attempt.started is None:
            attempt.started = time.monotonic()
            attempt.node, attempt.place = node, f"pid {pid} on node {node[:8]}"

    def expire(self) -> None:
        """Give up the attempts that have run for longer than the timeout."""
        timeout = self._settings.timeout
        if timeout is None:
            return
        for attempt in list(self.running.values()):
            if attempt.started is not None and time.monotonic() - attempt.started > timeout:
                self._give_up(attempt, failure_of_timeout(timeout))

    def cancel_all(self) -> None:
        """End all attempts; their trials stay pending."""
        for attempt in self.running.values():
            self._busy += self._age(attempt)
            if attempt.handle is not None:
                self._backend.cancel(attempt.handle)
        self.running.clear()

    async def check_nodes(self) -> list[int]:
        """Give up attempts on dead nodes; returns trials whose attempts are to be sent again."""
        dead = await self._backend.dead_nodes()
        fresh, self._dead = dead - self._dead, self._dead | dead
        for attempt in list(self.running.values()):
            if attempt.node in dead:
                self._give_up(attempt, failure_of_node(attempt.node))
        unsure = [a for a in self.running.values() if fresh and a.started is None and a.handle]
        for attempt in unsure:
            self._backend.cancel(attempt.handle)
            del self.running[attempt.number]
        return [attempt.number for attempt in unsure]

    @property
    def measured(self) -> bool:
        """Whether a trial has finished, so that `duration` is more than a guess."""
        return bool(self._durations)

    def duration(self) -> float:
        """Seconds that a trial takes; while none has finished, those of the oldest so far."""
        if self._durations:
            return statistics.median(self._durations)
        now = time.monotonic()
        return max((now - attempt.submitted for attempt in self.running.values()), default=0.0)

    def expected(self) -> list[float]:
        """Seconds until each running trial is expected to finish."""
        left = self.duration() - time.monotonic()
        return [attempt.submitted + left for attempt in self.running.values()]

    def busy_seconds(self) -> float:
        """Seconds spent in evaluations so far, summed over the workers."""
        return self._busy + sum(map(self._age, self.running.values()))

    def _age(self, attempt: Attempt) -> float:
        return 0.0 if attempt.started is None else time.monotonic() - attempt.started

    async def _refuse(self, attempt: Attempt, failure: Failure) -> None:
        self._end(attempt, {}, failure)

    async def _follow(self, attempt: Attempt) -> None:
        outcome = await self._backend.outcome(attempt.handle)
        if isinstance(outcome, Failure):
            self._end(attempt, {}, outcome)
        else:
            self._end(attempt, outcome, outcome.get("failure"))

    def _give_up(self, attempt: Attempt, failure: Failure) -> None:
        self._backend.cancel(attempt.handle)
        self._end(attempt, {}, failure)

    def _end(self, attempt: Attempt, outcome: Mapping[str, Any], failure: Failure | None) -> None:
        if self.running.get(attempt.number) is not attempt:
            return  # given up before
        del self.running[attempt.number]
        now = time.monotonic()
        seconds = float(outcome.get("seconds", self._age(attempt)))
        started = float(outcome.get("started", time.time() - seconds))
        self._busy += seconds
        if failure is None:
            self._durations.append(now - attempt.submitted)
        elif failure.cause in ("crash", "memory", "lost") and attempt.place:
            failure = replace(failure, reason=f"{failure.reason} ({attempt.place})")
        self._report(
            Ended(
                attempt.number,
                outcome.get("value"),
                outcome.get("extra", {}),
                failure,
                round(started, 6),
                round(started + seconds, 6),
            )
        )
