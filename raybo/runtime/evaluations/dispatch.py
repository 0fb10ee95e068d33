"""Dispatch: gives attempts to evaluators, and follows them.

Attempts wait here until an evaluator with a free slot has loaded the objective, and count as
started when they are sent to it.

A process that dies takes all its attempts along, and nobody knows whose fault it was. Each of them
is tried again. An attempt whose process died a second time shares the next one with a quarter of
the others at most, then with a sixteenth, and so on: one that kills its process is soon alone in
it, and fails; the others go on. So it is with a process that a coroutine blocks: it is killed when
the time of an attempt in it is up, which then proves nothing, and it does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ray
from ray import exceptions

from raybo.runtime.evaluations.evaluate import Evaluation
from raybo.runtime.evaluations.evaluator import Order
from raybo.runtime.evaluations.failures import Failure, failure_of_process, failure_of_ray
from raybo.runtime.timeouts import CANCEL_SECONDS

logger = logging.getLogger(__name__)

# Attempts in a process, unless the cluster has no room for as many processes: each costs a second
# to start, and takes that many attempts along when it dies.
SLOTS = 100


def n_processes(workers: int, most: int) -> int:
    """Return how many processes to use for `workers` slots, with room for `most` of them."""
    return max(1, min(math.ceil(workers / SLOTS), most))


@dataclass(eq=False)
class Job:
    """An attempt, waiting or in a process."""

    order: Order
    answer: asyncio.Future[Evaluation | Failure]
    process: _Process | None = None
    cancelled: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # once it has left its process


@dataclass(eq=False)
class _Process:
    """An evaluator."""

    actor: Any
    node: str = ""
    pid: int = 0  # 0 until it has loaded the objective
    jobs: dict[str, Job] = field(default_factory=dict)  # by attempt
    starts: list[Order] = field(default_factory=list)  # to be sent
    cancels: list[str] = field(default_factory=list)  # to be sent
    culprits: list[int] = field(default_factory=list)  # trials for which it was killed
    blocked: bool = False  # whether it was killed because it did not answer


class Dispatch:
    """The evaluators of a study.

    Parameters
    ----------
    start_actor
        Starts an evaluator and returns its handle.
    workers, processes
        Attempts at a time, and evaluators to divide them among.
    started
        Is told that an attempt starts, on which node and in which process.
    """

    def __init__(
        self,
        start_actor: Callable[[], Any],
        workers: int,
        processes: int,
        started: Callable[[str, str, int], None],
    ) -> None:
        self._start_actor = start_actor
        self._n_processes = processes
        self._slots = math.ceil(workers / processes)
        self._started = started
        self._processes: list[_Process] = []
        self._waiting: dict[str, Job] = {}  # by attempt
        self._deaths: Counter[int] = Counter()  # of processes, by the trials that were in them
        self._tasks: set[asyncio.Task[None]] = set()
        self._planned = False  # whether messages are about to be sent

    def submit(self, order: Order) -> Job:
        """Have an attempt made as soon as there is a slot."""
        job = Job(order, asyncio.get_running_loop().create_future())
        self._waiting[order.attempt] = job
        self._plan()
        return job

    def cancel(self, job: Job) -> None:
        """Give an attempt up; a process in which it does not end is killed."""
        attempt = job.order.attempt
        job.cancelled = True
        if self._waiting.pop(attempt, None) is not None:
            job.gone.set()
        elif job.process is not None and attempt in job.process.jobs:
            job.process.cancels.append(attempt)
            self._plan()

    async def end(self, job: Job) -> bool:
        """Give up an attempt that takes too long; return whether that is its own doing.

        It is not where its process was lost meanwhile: `answer` says how.
        """
        self.cancel(job)
        await job.gone.wait()
        return not job.answer.done()

    async def close(self) -> None:
        """Return when the attempts that were given up have ended, or their processes have."""
        self._work()
        cancels = [task for task in self._tasks if task.get_name() == _CANCEL]
        if cancels:
            await asyncio.wait(cancels, timeout=2 * CANCEL_SECONDS)

    # -- what to send ------------------------------------------------------------------------

    def _plan(self) -> None:
        """Send messages soon, together with those for other attempts of this moment."""
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._planned = False
        wanted = len(self._waiting) + sum(len(p.jobs) for p in self._processes)
        while len(self._processes) < min(self._n_processes, math.ceil(wanted / self._slots)):
            process = _Process(self._start_actor())
            self._processes.append(process)
            self._spawn(self._follow(process))
        self._assign()
        for process in self._processes:
            if process.starts:
                process.actor.start.remote(process.starts)
                process.starts = []
            if process.cancels:
                self._spawn(self._cancel(process, process.cancels), _CANCEL)
                process.cancels = []

    def _assign(self) -> None:
        """Choose a process for each waiting attempt for which one has room.

        Attempts that need a process with few others come first, and those with the fewest are
        kept free for them.
        """
        free = [p for p in self._processes if p.pid and len(p.jobs) < self._room(p)]
        waiting = self._waiting.values() if free else ()
        for job in sorted(waiting, key=lambda job: -self._deaths[job.order.number]):
            if not free:
                break
            process = min(free, key=lambda p: len(p.jobs))
            if len(process.jobs) < min(self._room(process), self._share(job)):
                self._give(job, process)
                if len(process.jobs) < self._room(process):
                    continue
            free.remove(process)

    def _give(self, job: Job, process: _Process) -> None:
        attempt = job.order.attempt
        del self._waiting[attempt]
        job.process = process
        process.jobs[attempt] = job
        process.starts.append(job.order)
        self._started(attempt, process.node, process.pid)

    def _share(self, job: Job) -> int:
        """Return how many attempts may be in the process of this one, itself included."""
        return max(1, self._slots >> 2 * max(0, self._deaths[job.order.number] - 1))

    def _room(self, process: _Process) -> int:
        jobs = process.jobs.values() if self._deaths else ()
        return min((self._share(job) for job in jobs), default=self._slots)

    # -- what comes back ---------------------------------------------------------------------

    async def _follow(self, process: _Process) -> None:
        """Take what a process answers until it dies."""
        try:
            found = await process.actor.load.remote()
            if isinstance(found, Failure):
                self._refuse(process, found)
                return
            process.node, process.pid = found
            self._plan()
            while True:
                for attempt, evaluation in await process.actor.ended.remote():
                    job = process.jobs.get(attempt)
                    if job is not None and not job.cancelled:
                        self._deaths.pop(job.order.number, None)
                        _answer(job, evaluation)
                        _leave(job)
                self._plan()
        except exceptions.RayTaskError as error:  # a fault of raybo's own ends the study
            for job in [*process.jobs.values(), *self._waiting.values()]:
                if not job.answer.done():
                    job.answer.set_exception(error)
        except exceptions.RayError as error:
            if process.pid:
                self._lose(process, error)
            else:
                self._refuse(process, failure_of_ray(error))

    def _lose(self, process: _Process, error: exceptions.RayError) -> None:
        """Answer the attempts of a process that has died, or cannot be reached."""
        self._processes.remove(process)
        ray.kill(process.actor)
        others = len(process.jobs) - 1
        for job in list(process.jobs.values()):
            if not process.culprits:
                self._deaths[job.order.number] += 1
            _answer(job, failure_of_process(error, others, process.culprits, process.blocked))
            _leave(job)
        self._plan()

    def _refuse(self, process: _Process, failure: Failure) -> None:
        """Answer the attempts that waited for a process which could not be started."""
        self._processes.remove(process)
        ray.kill(process.actor)
        for job in list(self._waiting.values())[: self._slots]:
            del self._waiting[job.order.attempt]
            _answer(job, failure)
        self._plan()

    async def _cancel(self, process: _Process, attempts: list[str]) -> None:
        try:
            async with asyncio.timeout(2 * CANCEL_SECONDS):
                stuck = await process.actor.cancel.remote(attempts)
        except TimeoutError:
            n = len(process.jobs)
            if n > 1:
                logger.warning(_BLOCKED, n, 2 * CANCEL_SECONDS)
                process.blocked = True
                ray.kill(process.actor)  # which the wait for its answers notices
                return
            stuck = attempts
        except exceptions.RayError:  # it is dead, which the wait for its answers notices
            return
        if stuck:
            numbers = [process.jobs[a].order.number for a in stuck if a in process.jobs]
            logger.warning("trials %s do not end when cancelled: their process is killed", numbers)
            process.culprits += numbers
            ray.kill(process.actor)
        for attempt in attempts:
            if attempt in process.jobs:
                _leave(process.jobs[attempt])
        self._plan()

    def _spawn(self, job: Any, name: str | None = None) -> None:
        task = asyncio.get_running_loop().create_task(job, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_CANCEL = "cancel"  # name of tasks
_BLOCKED = (
    "a process with %d trials has not answered for %g s, when the time of one of them was up: it "
    "is killed, and they are tried again. A coroutine that computes for long or calls time.sleep "
    "blocks all others in its process: give such work to asyncio.to_thread"
)


def _leave(job: Job) -> None:
    """Take an attempt out of its process."""
    if job.process is not None:
        del job.process.jobs[job.order.attempt]
    job.gone.set()


def _answer(job: Job, answer: Evaluation | Failure) -> None:
    if not job.answer.done():
        job.answer.set_result(answer)
