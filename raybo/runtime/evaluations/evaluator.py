"""Evaluator: a process that evaluates many configs at a time, by coroutines.

Its coordinator starts attempts, cancels them, and waits for those that have ended, each in a
message for many of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import ray

from raybo.runtime.evaluations.evaluate import Evaluation, Work, evaluate_coroutine
from raybo.runtime.evaluations.failures import Failure, failure_of_loading
from raybo.runtime.evaluations.output import output_of, share_streams
from raybo.runtime.timeouts import (
    CANCEL_SECONDS,
    CONFIRM_SECONDS,
    LOAD_SECONDS,
    MESSAGE_SECONDS,
)
from raybo.study.trial import Batch, Checkpoint

Report = Callable[[str, Batch], Coroutine[Any, Any, bool]]


@dataclass(frozen=True)
class Order:
    """An attempt to start."""

    attempt: str
    config: Mapping[str, Any]
    begin: Checkpoint | None = None

    @property
    def number(self) -> int:
        """Number of its trial."""
        return int(self.attempt.split(".")[1])


class Evaluator:
    """Runs attempts in the event loop that calls it; `report` takes batches elsewhere."""

    def __init__(self, work: Work, report: Report) -> None:
        self._work = work
        self._report = report
        self._running: dict[str, asyncio.Task[None]] = {}  # by attempt
        self._ended: list[tuple[str, Evaluation]] = []
        self._news = asyncio.Event()
        self._answered = 0.0  # when the last answer was given

    def start(self, orders: Iterable[Order]) -> None:
        """Start attempts."""
        for order in orders:
            task = asyncio.get_running_loop().create_task(self._run(order))
            self._running[order.attempt] = task

    async def ended(self) -> list[tuple[str, Evaluation]]:
        """Return the attempts that have ended since the last call, as soon as there is one.

        Answers are MESSAGE_SECONDS apart, so that those of many short trials share a message.
        """
        await self._news.wait()
        await asyncio.sleep(max(0.0, self._answered + MESSAGE_SECONDS - time.monotonic()))
        self._answered = time.monotonic()
        self._news.clear()
        ended, self._ended = self._ended, []
        return ended

    async def cancel(self, attempts: Iterable[str]) -> list[str]:
        """Cancel attempts; return those that have not ended CANCEL_SECONDS later."""
        tasks = {a: self._running[a] for a in attempts if a in self._running}
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=CANCEL_SECONDS)
        return [attempt for attempt, task in tasks.items() if not task.done()]

    async def _run(self, order: Order) -> None:
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        sent: list[Future[bool]] = []  # the answer to the last batch; they arrive in their order

        def send(batch: Batch, waits: bool) -> bool | asyncio.Future[bool]:
            answer = asyncio.run_coroutine_threadsafe(self._report(order.attempt, batch), loop)
            sent[:] = [answer]
            if not waits:
                return True
            if threading.get_ident() != thread:  # of asyncio.to_thread: it may wait
                return answer.result()
            return asyncio.wrap_future(answer)

        try:
            with output_of(order.number, self._work.folder):
                found = await evaluate_coroutine(self._work, order.config, send, order.begin)
            if sent:  # once the attempt has ended, the coordinator takes no reports of it
                await asyncio.wrap_future(sent[0])
        finally:
            del self._running[order.attempt]
        self._ended.append((order.attempt, found))
        self._news.set()


@ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)
class EvaluatorActor:
    """An Evaluator in another process; `payload` has references to the Work and coordinator."""

    def __init__(self, payload: list[Any]) -> None:
        self._work, self._coordinator = payload
        self._evaluator: Evaluator | None = None
        share_streams()
        _allow_many_files()

    async def load(self) -> tuple[str, int] | Failure:
        """Load the objective; return the node and the process."""
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                work: Work = await self._work
        except BaseException as error:  # noqa: BLE001  (the user's modules are imported here)
            return failure_of_loading(error)
        self._evaluator = Evaluator(work, self._report)
        return str(ray.get_runtime_context().get_node_id()), os.getpid()

    async def start(self, orders: list[Order]) -> None:  # noqa: D102
        self._loaded.start(orders)

    async def ended(self) -> list[tuple[str, Evaluation]]:  # noqa: D102
        return await self._loaded.ended()

    async def cancel(self, attempts: list[str]) -> list[str]:  # noqa: D102
        return await self._loaded.cancel(attempts)

    @property
    def _loaded(self) -> Evaluator:
        if self._evaluator is None:
            raise RuntimeError("the objective is not loaded")
        return self._evaluator

    async def _report(self, attempt: str, batch: Batch) -> bool:
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                return bool(await self._coordinator.report.remote(attempt, batch))
        except ray.exceptions.ActorDiedError:  # its successor runs this trial again
            return False
        except (ray.exceptions.RayError, TimeoutError):  # it is slow, or cannot be reached
            return True


def _allow_many_files() -> None:
    """Raise the limit of open files as far as allowed: a process started takes three of them."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource  # noqa: PLC0415

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
