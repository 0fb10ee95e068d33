"""Reports: values of a trial on its way, from its worker to the coordinator.

At a rung the coordinator says whether the trial goes on, and the worker waits for that. It also
waits until a checkpoint is in the journal, so that the files of earlier ones can be removed. All
other reports travel in batches: the rule does not need them, and there may be thousands a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from raybo.errors import ObjectiveError, StudyError
from raybo.runtime.evaluations.plain_json import plain_extra
from raybo.study.objective import Objective
from raybo.study.steps import Steps, checked_step
from raybo.study.trial import Batch, Checkpoint

BATCH_SECONDS = 1.0  # between two batches; a live view is not read faster
MAX_PATH = 4096  # characters of a checkpoint: a Linux path has no more
# Takes a batch, and whether its answer is wanted: go on? A coroutine gets it later.
Send = Callable[[Batch, bool], bool | asyncio.Future[bool]]


def keep_going(batch: Batch, waits: bool) -> bool:  # noqa: ARG001
    """Send nothing, and stop nothing."""
    return True


class Reports:
    """What one attempt at a trial has reported, and whether it is over.

    Parameters
    ----------
    objective
        Reads what is reported.
    send
        Takes a batch to the coordinator.
    steps
        What is reported, and when the trial is complete or may be stopped.
    begin
        Step and path of the checkpoint that the attempt starts from.
    """

    def __init__(
        self,
        objective: Objective,
        send: Send,
        steps: Steps,
        begin: Checkpoint | None = None,
    ) -> None:
        self._objective = objective
        self._send = send
        self._steps = steps
        self._unsent: list[tuple[int, float]] = []
        self._checkpoint: Checkpoint | None = None
        self._answers: set[asyncio.Future[bool]] = set()  # that have not come
        self._sent = time.monotonic()
        self._begin = self._last = begin.step if begin else 0
        self.value: float | None = None  # of the last report
        self.extra: dict[str, Any] = {}
        self.stopped = False  # by the coordinator
        self.complete = False  # max_steps are reached

    def add(
        self,
        result: Any,
        step: Any = None,
        checkpoint: Any = None,
        extra: Mapping[str, Any] | None = None,
    ) -> bool:
        """Take a report; return whether the trial goes on.

        Raises
        ------
        ObjectiveError
            When it is no finite number, or its step is none: the trial has failed.
        """
        if self.stopped or self.complete:
            return False
        last = None if self.value is None else (self._last, self.value)
        try:
            step = self._checked_step(step)
            path = None if checkpoint is None else _checked_path(checkpoint)
            value, found = self._parse(result, extra or {})
            self.value = self._steps.so_far(step, value, last)
        except StudyError as error:
            raise ObjectiveError(str(error)) from None
        except ObjectiveError as error:
            raise type(error)(f"at step {step}: {error}") from None
        self._last, self.extra = step, plain_extra(found)
        self._unsent.append((step, self.value))
        if path is not None:
            self._checkpoint = Checkpoint(step, path)
        self.complete = self._steps.complete(step)
        if self.complete:
            return False
        if step in self._steps.rungs or path is not None:
            self._ask()
        elif time.monotonic() - self._sent > BATCH_SECONDS:
            self._send(self.take(), False)
        return not self.stopped

    def _checked_step(self, step: Any) -> int:
        try:
            return checked_step(step, self._last)
        except StudyError as error:
            if self._last == self._begin > 0:
                raise StudyError(f"{error}, and this trial was resumed there") from None
            raise

    def _parse(self, result: Any, extra: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        if not extra:
            return self._objective.parse(result)
        named = result if isinstance(result, Mapping) else {self._objective.metric or "": result}
        metric = self._objective.metric or next(iter(named), None)
        return replace(self._objective, metric=metric).parse({**named, **extra})

    def take(self) -> Batch:
        """Return what has not been sent; it counts as sent from now on."""
        bounded = {name: self.extra[name] for name in self._objective.constraints if self._unsent}
        batch = Batch(tuple(self._unsent), self._checkpoint, bounded)
        self._unsent, self._checkpoint, self._sent = [], None, time.monotonic()
        return batch

    def follow(self, generator: Generator[Any, Any, Any]) -> None:
        """Take what a generator yields until it ends or the trial is over, then close it."""
        with contextlib.closing(generator):
            for item in generator:
                if not self._add_item(item):
                    return
        self._check_yielded()

    async def follow_async(self, generator: AsyncGenerator[Any, Any]) -> None:
        """As `follow`, for an async generator."""
        async with contextlib.aclosing(generator):
            async for item in generator:
                goes_on = self._add_item(item)
                await self.settled()
                if not goes_on or self.stopped:
                    return
        self._check_yielded()

    async def settled(self) -> None:
        """Return when the coordinator has answered all that it was asked."""
        if self._answers:
            await asyncio.wait(self._answers)

    def _ask(self) -> None:
        """Send what was reported, and have the answer decide whether the trial is stopped."""
        answer = self._send(self.take(), True)
        if isinstance(answer, asyncio.Future):
            self._answers.add(answer)
            answer.add_done_callback(self._answered)
        else:
            self.stopped = not answer

    def _answered(self, answer: asyncio.Future[bool]) -> None:
        self._answers.discard(answer)
        self.stopped = self.stopped or not answer.result()

    def _add_item(self, item: Any) -> bool:
        pair = isinstance(item, tuple) and len(item) == 2
        result, checkpoint = item if pair else (item, None)
        return self.add(result, checkpoint=checkpoint)

    def _check_yielded(self) -> None:
        if self.value is None:
            where = f", resumed after step {self._begin}," if self._begin else ""
            raise ObjectiveError(f"the generator{where} ended without yielding a value")


def _checked_path(given: Any) -> str:
    """Return the path of a checkpoint as text."""
    path = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(path, str):
        raise ObjectiveError(
            f"the checkpoint is of the type {type(given).__name__}, not a path; yield the value, "
            "or the value and the path of a checkpoint: a str or an os.PathLike"
        )
    if not 0 < len(path) <= MAX_PATH:
        raise ObjectiveError(
            f"the checkpoint is a path of {len(path)} characters; it has 1 to {MAX_PATH}"
        )
    return path


_current: list[Reports] = []  # of the trial that this process evaluates
# Of the coroutine that calls, where a process evaluates several trials.
_coroutine: ContextVar[Reports | None] = ContextVar("reports", default=None)


@contextlib.contextmanager
def reporting(reports: Reports, alone: bool = True) -> Iterator[None]:
    """Have `report` report to `reports` meanwhile; unless `alone`, only from this coroutine."""
    if not alone:
        _coroutine.set(reports)
        yield
        return
    _current.append(reports)
    try:
        yield
    finally:
        _current.remove(reports)


def report(
    value: float | Mapping[str, Any],
    step: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **extra: Any,
) -> bool:
    """Report a value on the way, from inside an objective; return whether to go on.

    False means that the trial is over: return from the objective, its value no longer counts.
    Outside of a study nothing is reported and the answer is True. In a coroutine it never waits,
    so the answer to a report may come with a later one; an async generator waits for it.

    Parameters
    ----------
    value
        The metric so far, or a dict with it.
    step
        Counts from 1 and increases, also after a resumption; the next one unless given.
    checkpoint
        Path from which an objective that takes `resume` can go on after this step. When the answer
        comes it is in the journal (in a coroutine, soon), and earlier ones are not needed.
    **extra
        Other entries, as in a dict that an objective returns.
    """
    found = _coroutine.get() or (_current[-1] if _current else None)
    return True if found is None else found.add(value, step, checkpoint, extra)
