"""Pool: the evaluations that are running.

Each attempt at a trial has an id. An attempt that was given up (timeout, dead node) is forgotten,
so that a result that comes later, or twice, is dropped.

Ray's health check notices a dead node within seconds, but fails its tasks only after seven
minutes: the pool watches the nodes itself and gives up the attempts on dead ones. Attempts
that had not started are sent again, since they may have been on their way there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.runtime.backend import Backend
from raybo.runtime.evaluations.ages import Ages
from raybo.runtime.evaluations.evaluate import Evaluation
from raybo.runtime.evaluations.failures import (
    Failure,
    failure_of_node,
    failure_of_setup,
    failure_of_timeout,
)
from raybo.runtime.session import Settings
from raybo.runtime.timeouts import LOAD_SECONDS
from raybo.space.any_space import AnySpace
from raybo.study.trial import Checkpoint

GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples, modulo 1, fill [0, 1) evenly


@dataclass(eq=False)
class Attempt:
    """One try at a trial; the times are of the monotonic clock."""

    number: int
    id: str
    submitted: float
    handle: Any = None
    loading: float | None = None  # since when its worker loads the objective
    started: float | None = None
    node: str = ""
    place: str = ""
    overdue: bool = False


class Pool:
    """Attempts that run, and the evaluations of those that ended.

    `durations` are those of trials of earlier sessions, in seconds: they predict the first.
    """

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        space: AnySpace,
        epoch: int,
        spawn: Callable[[Awaitable[None]], None],
        durations: Iterable[float] = (),
    ) -> None:
        self.has_started = False  # whether the objective has been called for any trial
        self._backend = backend
        self._settings = settings
        self._space = space
        self._epoch = epoch
        self._spawn = spawn
        self._attempts: dict[int, Attempt] = {}  # by the number of their trial, oldest first
        self._ended: list[tuple[int, Evaluation]] = []
        self._n_submitted = 0
        self._busy = 0.0  # seconds of the attempts that ended
        self._ages = Ages(durations)
        self._dead_nodes: set[str] = set()

    @property
    def running(self) -> list[int]:
        """Numbers of the trials that run."""
        return list(self._attempts)

    @property
    def n_running(self) -> int:
        """Number of trials that run."""
        return len(self._attempts)

    @property
    def used(self) -> bool:
        """Whether any trial has been submitted."""
        return self._n_submitted > 0

    def submit(self, number: int, config: Any, begin: Checkpoint | None = None) -> None:
        """Start an attempt at a trial, from a checkpoint if one is given."""
        self._n_submitted += 1
        attempt = Attempt(number, f"{self._epoch}.{number}.{self._n_submitted}", time.monotonic())
        self._attempts[number] = attempt
        try:
            resources = self._settings.resources
            if callable(resources):
                resources = resources(self._space.from_json(config))
            attempt.handle = self._backend.submit(attempt.id, config, resources, begin)
        except BaseException as error:  # noqa: BLE001  (the user's callable, or Ray's refusal)
            text = f"resources: {type(error).__name__}: {error}"
            self._spawn(self._refuse(attempt, failure_of_setup(text)))
        else:
            self._spawn(self._follow(attempt))

    def number_of(self, attempt_id: str) -> int | None:
        """Return the trial of an attempt that runs; None for one that was given up."""
        attempt = self._find(attempt_id)
        return None if attempt is None else attempt.number

    def take_ended(self) -> list[tuple[int, Evaluation]]:
        """Return the trials whose attempts ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def loading(self, attempt_id: str, node: str, pid: int) -> None:
        """Note that the worker of an attempt loads the objective."""
        attempt = self._find(attempt_id)
        if attempt is not None and attempt.started is None:
            attempt.loading = time.monotonic()
            attempt.node, attempt.place = node, f"pid {pid} on node {node[:8]}"

    def started(self, attempt_id: str, node: str, pid: int) -> None:
        """Note that an attempt has started, and where."""
        attempt = self._find(attempt_id)
        if attempt is not None and attempt.started is None:
            self.has_started = True
            attempt.started = time.monotonic()
            attempt.node, attempt.place = node, f"pid {pid} on node {node[:8]}"

    def expire(self) -> None:
        """Give up the attempts that take longer than the timeout, each by a task."""
        timeout, now = self._settings.timeout, time.monotonic()
        if timeout is None:
            return
        for attempt in list(self._attempts.values()):
            if attempt.started is not None:
                deadline = attempt.started + timeout
            elif attempt.loading is not None:
                deadline = attempt.loading + LOAD_SECONDS + timeout
            else:  # it waits for resources, which does not count
                continue
            if now > deadline and not attempt.overdue:
                attempt.overdue = True
                self._spawn(self._time_out(attempt, timeout))

    def cancel_all(self) -> None:
        """End all attempts; their trials stay pending."""
        for attempt in self._attempts.values():
            self._busy += _age(attempt)
            if attempt.handle is not None:
                self._backend.cancel(attempt.handle)
        self._attempts.clear()

    async def check_nodes(self) -> list[int]:
        """Give up attempts on dead nodes; return the trials whose attempts are sent again."""
        dead = await self._backend.dead_nodes()
        fresh, self._dead_nodes = dead - self._dead_nodes, self._dead_nodes | dead
        for attempt in list(self._attempts.values()):
            if attempt.node in dead:
                self._give_up(attempt, failure_of_node(attempt.node))
        attempts = self._attempts.values() if fresh else ()
        unsure = [a for a in attempts if a.started is None and a.handle is not None]
        for attempt in unsure:
            self._backend.cancel(attempt.handle)
            del self._attempts[attempt.number]
        return [attempt.number for attempt in unsure]

    def typical_seconds(self) -> float | None:
        """Return the seconds that a trial takes; None until one has finished."""
        return self._ages.typical

    def longest_seconds(self) -> float:
        """Return how long the oldest attempt has been running."""
        oldest = next(iter(self._attempts.values()), None)
        return 0.0 if oldest is None else time.monotonic() - oldest.submitted

    def seconds_left(self) -> Array:
        """Return the seconds until each running trial is expected to finish."""
        now, attempts = time.monotonic(), self._attempts.values()
        ages = np.fromiter((now - attempt.submitted for attempt in attempts), float, len(attempts))
        numbers = np.fromiter(self._attempts, float, len(attempts))
        return self._ages.expected_left(ages, numbers * GOLDEN_RATIO % 1.0, now)

    def busy_seconds(self) -> float:
        """Return the seconds spent in evaluations so far, summed over the workers."""
        return self._busy + sum(map(_age, self._attempts.values()))

    def _find(self, attempt_id: str) -> Attempt | None:
        attempt = self._attempts.get(int(attempt_id.split(".")[1]))
        return attempt if attempt is not None and attempt.id == attempt_id else None

    async def _follow(self, attempt: Attempt) -> None:
        found = await self._backend.evaluation(attempt.handle)
        self._end(attempt, _failed(found, attempt) if isinstance(found, Failure) else found)

    async def _time_out(self, attempt: Attempt, timeout: float) -> None:
        if await self._backend.end(attempt.handle):
            self._end(attempt, _failed(failure_of_timeout(timeout), attempt))

    async def _refuse(self, attempt: Attempt, failure: Failure) -> None:
        self._end(attempt, _failed(failure, attempt))

    def _give_up(self, attempt: Attempt, failure: Failure) -> None:
        self._backend.cancel(attempt.handle)
        self._end(attempt, _failed(failure, attempt))

    def _end(self, attempt: Attempt, evaluation: Evaluation) -> None:
        if self._attempts.get(attempt.number) is not attempt:
            return  # given up before
        del self._attempts[attempt.number]
        failure = evaluation.failure
        if failure is None:
            now = time.monotonic()
            self._ages.finished(now - attempt.submitted, now)
        elif failure.cause in ("crash", "memory", "lost") and attempt.place:
            failure = replace(failure, reason=f"{failure.reason} ({attempt.place})")
            evaluation = replace(evaluation, failure=failure)
        self._busy += evaluation.seconds
        self._ended.append((attempt.number, evaluation))


def _failed(failure: Failure, attempt: Attempt) -> Evaluation:
    seconds = _age(attempt)
    return Evaluation(failure=failure, started=time.time() - seconds, seconds=seconds)


def _age(attempt: Attempt) -> float:
    """Return the seconds since an attempt started; 0 if it has not."""
    return 0.0 if attempt.started is None else time.monotonic() - attempt.started
