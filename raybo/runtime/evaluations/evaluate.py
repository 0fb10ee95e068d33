"""Evaluation of one config. This module is loaded by the workers, hence imports no torch."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import ray

from raybo.errors import MetricError, ObjectiveError
from raybo.runtime.evaluations.failures import (
    Failure,
    failure_of_exception,
    failure_of_loading,
    failure_of_metric,
    failure_of_result,
)
from raybo.runtime.evaluations.output import output_of
from raybo.runtime.evaluations.plain_json import plain_extra
from raybo.runtime.evaluations.reports import Reports, Send, keep_going, reporting
from raybo.runtime.timeouts import CONFIRM_SECONDS, LOAD_SECONDS
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective
from raybo.study.steps import Steps
from raybo.study.trial import Batch, Checkpoint


@dataclass(frozen=True)
class Work:
    """What every evaluation needs: put into the object store once, read once per process."""

    function: Callable[[dict[str, Any]], Any]
    space: AnySpace
    objective: Objective
    folder: str | None = None  # of the study, for what is printed; None where it is no folder
    steps: Steps = field(default_factory=Steps)

    @functools.cached_property
    def resumes(self) -> bool:
        """Whether the function can go on from a checkpoint."""
        return takes_resume(self.function)


@dataclass(frozen=True)
class Evaluation:
    """What one attempt at a trial gave: a value, or a failure, or neither if it was stopped."""

    value: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None
    started: float = 0.0  # seconds since the epoch
    seconds: float = 0.0
    reports: Batch = field(default_factory=Batch)  # those not sent before


class _Outcome:
    """What an attempt comes to: whatever its objective raises meanwhile becomes a failure.

    Whatever the objective does, short of ending its process, becomes plain data: an exception that
    cannot be pickled, or a result that is huge, never leaves the worker.
    """

    def __init__(self, objective: Objective, reports: Reports) -> None:
        self._objective, self._reports = objective, reports
        self._started, self._clock = time.time(), time.perf_counter()
        self._value: float | None = None
        self._extra: dict[str, Any] = {}
        self._failure: Failure | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        match error:
            case MetricError():
                self._failure = failure_of_metric(str(error))
            case ObjectiveError():
                self._failure = failure_of_result(str(error))
            case BaseException():  # also SystemExit, GeneratorExit and the like
                self._failure = failure_of_exception(error)
        return True

    def take(self, result: Any) -> None:
        """Take what the objective returned, or what it reported if its trial is over."""
        reports = self._reports
        if reports.stopped or reports.complete:
            self._value, self._extra = None if reports.stopped else reports.value, reports.extra
        else:
            value, found = self._objective.parse(result)
            self._value, self._extra = value, plain_extra(found)

    def evaluation(self) -> Evaluation:
        """Return the outcome as plain data."""
        seconds, left = time.perf_counter() - self._clock, self._reports.take()
        value = None if self._failure else self._value
        return Evaluation(value, self._extra, self._failure, self._started, seconds, left)


def evaluate(
    work: Work,
    config: Mapping[str, Any],
    send: Send = keep_going,
    begin: Checkpoint | None = None,
) -> Evaluation:
    """Return the evaluation of a config, given in JSON.

    `send` takes reports to the coordinator, and `begin` is the checkpoint to start from.
    """
    reports = Reports(work.objective, send, work.steps, begin)
    outcome = _Outcome(work.objective, reports)
    with reporting(reports), outcome:
        result = _call(work, config, begin)
        if inspect.isgenerator(result):
            reports.follow(result)
            reports.complete = not reports.stopped
        elif inspect.iscoroutine(result):
            result.close()
            raise ObjectiveError(
                "the objective returned a coroutine; give the async function itself, or a "
                "functools.partial of it, not a function that calls it"
            )
        outcome.take(result)
    return outcome.evaluation()


async def evaluate_coroutine(
    work: Work,
    config: Mapping[str, Any],
    send: Send = keep_going,
    begin: Checkpoint | None = None,
) -> Evaluation:
    """Return the evaluation of a config by a coroutine or an async generator; see `evaluate`."""
    reports = Reports(work.objective, send, work.steps, begin)
    outcome = _Outcome(work.objective, reports)
    with reporting(reports, alone=False), outcome:
        result = _call(work, config, begin)
        if inspect.isasyncgen(result):
            await reports.follow_async(result)
            reports.complete = not reports.stopped
        else:
            result = await result
            await reports.settled()
        outcome.take(result)
    return outcome.evaluation()


def is_async(function: Any) -> bool:
    """Whether an objective is an `async def`, with or without `yield`."""
    call = getattr(type(function), "__call__", None)  # noqa: B004  (its code is wanted)
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(f) for f in (function, call) for is_kind in kinds)


def _call(work: Work, config: Mapping[str, Any], begin: Checkpoint | None) -> Any:
    """Call the objective; one that has an argument `resume` is given the path to start from."""
    decoded = work.space.from_json(config)
    if work.resumes:
        return work.function(decoded, resume=begin.path if begin else None)  # type: ignore[call-arg]
    return work.function(decoded)


def takes_resume(function: Callable[..., Any]) -> bool:
    """Whether an objective can go on from a checkpoint."""
    try:
        return "resume" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions in C have no signature
        return False


@ray.remote(max_retries=0)
def evaluate_remotely(
    payload: list[Any],
    attempt: str,
    config: Mapping[str, Any],
    begin: Checkpoint | None = None,
) -> Evaluation:
    """Evaluate in a worker, after telling the coordinator that the attempt starts, and where.

    `payload` holds a reference to the Work, the coordinator, and whether to wait until it knows
    of the attempt: a limit on the time of an attempt needs its start.
    """
    work_ref, coordinator, confirm = payload
    try:
        if work_ref.hex() not in _loaded:
            coordinator.loading.remote(attempt, _node(), os.getpid())
        work = _load(work_ref)
    except BaseException as error:  # noqa: BLE001  (the user's modules are imported here)
        return Evaluation(failure=failure_of_loading(error), started=time.time())
    message = coordinator.started.remote(attempt, _node(), os.getpid())
    if confirm:
        ray.wait([message], timeout=CONFIRM_SECONDS)

    sent: list[Any] = []  # the answer to the last batch; they arrive in their order

    def send(batch: Batch, waits: bool) -> bool:
        sent[:] = [coordinator.report.remote(attempt, batch)]
        if not waits:
            return True
        try:
            return bool(ray.get(sent[0], timeout=CONFIRM_SECONDS))
        except ray.exceptions.ActorDiedError:  # its successor runs this trial again
            return False
        except ray.exceptions.RayError:  # it is slow, or cannot be reached for a while
            return True

    with output_of(int(attempt.split(".")[1]), work.folder):
        evaluation = evaluate(work, config, send, begin)
    if sent:  # once the attempt has ended, the coordinator takes no reports of it
        ray.wait(sent, timeout=CONFIRM_SECONDS)
    return evaluation


@ray.remote(max_retries=0)
def load_remotely(payload: list[Any]) -> None:
    """Load the objective in a worker, before there is something to evaluate.

    `payload` holds a reference to the Work. What goes wrong is told by the first evaluation.
    """
    with contextlib.suppress(BaseException):
        _load(payload[0])


_loaded: dict[str, Work] = {}  # the last study's, by reference; a process serves many trials


def _load(ref: ray.ObjectRef[Work]) -> Work:
    """Return the Work of a study."""
    key = ref.hex()
    if key not in _loaded:
        work: Work = ray.get(ref, timeout=LOAD_SECONDS)
        _loaded.clear()
        _loaded[key] = work
    return _loaded[key]


@functools.cache
def _node() -> str:
    return str(ray.get_runtime_context().get_node_id())
