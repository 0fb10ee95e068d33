"""Evaluations, and the reasons of failures."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from ray import exceptions

from raybo.runtime.evaluations.evaluate import Evaluation, Work, evaluate
from raybo.runtime.evaluations.failures import (
    MAX_LOSSES,
    Failure,
    failure_of_exception,
    failure_of_node,
    failure_of_ray,
    failure_of_result,
    failure_of_timeout,
)
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.objective import Objective


@pytest.mark.parametrize(
    ("error", "cause", "reason"),
    [
        (exceptions.OutOfMemoryError("x"), "memory", "out of memory: Ray's monitor killed"),
        (exceptions.WorkerCrashedError(), "crash", "worker process died"),
        (exceptions.NodeDiedError("gone"), "lost", "the node died"),
        (exceptions.RuntimeEnvSetupError("no pip"), "setup", "runtime environment failed"),
        (exceptions.TaskUnschedulableError("never"), "setup", "resources cannot be had"),
        (exceptions.TaskCancelledError(), "lost", "TaskCancelledError"),
        (exceptions.ObjectLostError("a" * 56, None, ""), "lost", "ObjectLostError"),
        (exceptions.RaySystemError("broken"), "lost", "RaySystemError: "),
    ],
)
def test_each_of_rays_errors_has_its_cause(error: Exception, cause: str, reason: str) -> None:
    failure = failure_of_ray(error)
    assert failure.cause == cause
    assert reason in failure.reason
    assert len(failure.reason) <= 300


def test_an_error_in_the_worker_itself_is_told_from_rays_own() -> None:
    problem = ModuleNotFoundError("No module named 'mine'")
    error = exceptions.RayTaskError("f", "Traceback", problem).as_instanceof_cause()
    failure = failure_of_ray(error)
    assert failure.cause == "exception"
    assert "ModuleNotFoundError: No module named 'mine'; give the workers" in failure.reason


@pytest.mark.parametrize(
    ("failure", "errors", "losses", "again"),
    [
        (Failure("crash", "", ""), 0, 9, True),
        (Failure("crash", "", ""), 1, 0, False),
        (Failure("memory", "", ""), 0, 0, True),
        (Failure("transient", "", ""), 0, 0, True),
        (Failure("exception", "", ""), 0, 0, False),
        (failure_of_result("nan"), 0, 0, False),
        (failure_of_timeout(5), 0, 0, False),
        (failure_of_node("abc"), 5, MAX_LOSSES - 1, True),
        (failure_of_node("abc"), 0, MAX_LOSSES, False),
    ],
)
def test_what_is_tried_again(failure: Failure, errors: int, losses: int, again: bool) -> None:
    assert failure.allows_retry(errors, losses, retries=1) == again


def run(function: Any) -> Evaluation:
    space = Space({"x": Float(0, 1)})
    return evaluate(Work(function, space, Objective("min", "loss")), {"x": 0.5})


def test_an_evaluation_has_value_extra_and_times() -> None:
    before = time.time()
    found = run(lambda config: {"loss": config["x"], "steps": 3})
    assert (found.value, found.extra, found.failure) == (0.5, {"steps": 3}, None)
    assert before <= found.started <= found.started + found.seconds <= time.time() + 0.01


def test_the_reason_of_an_exception_names_the_users_line() -> None:
    def objective(_: Any) -> float:
        json.loads("{")  # raises in the library, called from here
        return 0.0

    failure = run(objective).failure
    assert failure is not None
    assert failure.cause == "exception"
    assert failure.reason.startswith("JSONDecodeError: Expecting property name")
    assert failure.reason.endswith(f"(test_failures.py:{objective.__code__.co_firstlineno + 1})")
    assert "json.loads" in failure.traceback


class Own(BaseException):
    """An exception of the user's, beside Exception."""


@pytest.mark.parametrize(
    "error",
    [GeneratorExit("x"), KeyboardInterrupt("x"), SystemExit("x"), Own("x"), StopIteration("x")],
    ids=repr,
)
def test_whatever_an_objective_raises_is_the_failure_of_its_trial(error: BaseException) -> None:
    def objective(_: Any) -> float:
        raise error

    found = run(objective)
    assert found.value is None
    assert found.failure is not None
    assert found.failure.cause == (
        "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"
    )
    assert found.failure.reason.startswith(f"{type(error).__name__}: x (test_failures.py:")


def test_a_reason_can_be_written_in_utf8() -> None:
    """A file name that is not UTF-8 comes as lone surrogates, which no report could write."""
    failure = failure_of_exception(ValueError("file \udcff not found"))
    assert failure.reason == "ValueError: file \\udcff not found"
    assert failure.traceback.encode("utf-8")


def test_errors_that_may_pass_are_told_by_their_class() -> None:
    class CudaOutOfMemoryError(RuntimeError):
        pass

    for error in (OSError("disk"), ConnectionError()):
        assert failure_of_exception(error).cause == "transient"
    for error in (MemoryError(), CudaOutOfMemoryError()):
        assert failure_of_exception(error).cause == "memory"
    assert failure_of_exception(RuntimeError()).reason == "RuntimeError"


def test_long_texts_are_cut() -> None:
    failure = failure_of_exception(ValueError("x\n" * 10_000))
    assert len(failure.reason) <= 400
    assert "\n" not in failure.reason
