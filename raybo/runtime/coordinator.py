"""Coordinator: keeps every worker busy, and a study's record.

It waits for nothing but events: results, proposals, the clock. All decisions are taken in `_step`,
between two waits, so there is no lock. Its only state is the journal: a coordinator that is made
again replays it and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Iterable
from typing import Any

from raybo.errors import JournalError
from raybo.report.progress import Progress
from raybo.runtime.backend import Backend
from raybo.runtime.evaluations.failures import MAX_LOSSES, Failure, as_payload
from raybo.runtime.evaluations.pool import Ended, Pool
from raybo.runtime.proposals.supply import Supply
from raybo.runtime.session import Plan
from raybo.runtime.stopping import Tally
from raybo.runtime.writer import Ledger
from raybo.space.any_space import AnySpace
from raybo.study.journal.journal import timestamp
from raybo.study.objective import Objective
from raybo.study.outcome import Stop

_TICK = 0.25  # seconds between two looks at the clock
_NODES_SECONDS = 2.0  # between two looks at the nodes
_END = ("finished", "failed")


class Coordinator:
    """The decisions of one session.

    `state` is "running", then "draining" (no more trials are started) or "stopping" (those that
    run are cancelled), "closing", and at last "finished" or "failed"; `stop` says why.
    """

    def __init__(
        self, plan: Plan, ledger: Ledger, backend: Backend, space: AnySpace, objective: Objective
    ) -> None:
        self.state = "running"
        self.stop: Stop | None = None
        self.ledger = ledger
        self._plan = plan
        self._settings = plan.settings
        self._record = ledger.record
        self._objective = objective
        self._queue: deque[int] = deque()  # trials to try again
        self._limit = 0.0  # numbers from here on are beyond the budget
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Future[None]] = set()
        self._wanted, self._wanted_seconds, self._accounted = 0, 0.0, time.monotonic()
        epoch = ledger.journal.epoch
        self.pool = Pool(backend, plan.settings, space, epoch, self._ended, self._spawn)
        self._supply = Supply(backend, self._record, plan.lanes, self._fail, self._spawn)
        self._tally = Tally(self._record, objective, plan.lanes)

    async def run(self) -> None:
        """Work until the study ends."""
        self._begin()
        for job in (self.ledger.commit_forever, self.ledger.push_forever, self._watch_nodes):
            self._spawn(job())
        while self.state not in _END:
            self._step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK):
                    await self._wake.wait()
            self._wake.clear()
        for task in self._tasks:
            task.cancel()

    def drain(self) -> None:
        """Start no more trials; end when those that run have finished."""
        if self.state == "running":
            self.stop = Stop("interrupted", "interrupted: drained")
            self._move_to("draining")

    def stop_now(self) -> None:
        """Cancel all that runs, and end."""
        if self.state in ("running", "draining"):
            self.stop = Stop("interrupted", "interrupted: stopped", at_once=True)
            self.pool.cancel_all()
            self._move_to("stopping")

    def snapshot(self) -> Progress:
        """The figures to show."""
        elapsed = self._elapsed()
        state = "draining" if self.state == "closing" else self.state
        running = list(self.pool.running)
        return self._tally.snapshot(
            self._plan.name, state, self._use(), elapsed, running, self._settings
        )

    # -- beginning and end -------------------------------------------------------------------

    def _begin(self) -> None:
        add, record, plan = self.ledger.add, self._record, self._plan
        if not record.header:
            add("header", **plan.header)
        elif record.pending and record.stopped is None:
            add("interrupted", numbers=record.pending, time=timestamp())
        if record.session.get("id") != plan.session:
            settings = self._settings.to_json()
            add("session", id=plan.session, time=timestamp(), settings=settings, who=plan.who)
            self._tally = Tally(record, self._objective, plan.lanes)
            self._add_known_points()
        self._limit = _first_beyond(self._settings.max_trials, record.given)
        for number in record.pending:
            if record.entries[number].losses < MAX_LOSSES:
                self._queue.append(number)
            else:
                text = f"interrupted {MAX_LOSSES} times by the end of its coordinator or driver"
                self._add_failure(number, Failure("lost", text, "lost"), attempts=0)

    def _add_known_points(self) -> None:
        """Record the user's own points, unless an earlier session did."""
        entries = self._record.entries
        known = [(entries[n].trial.config, entries[n].trial.value) for n in self._record.given]
        for config, value in self._plan.given:
            if (config, value) not in known:
                number, now = self._supply.next_number, timestamp()
                self.ledger.add("given", number=number, config=config, value=value, finished=now)
                self._finished(number)
        asked = [e.trial.config for e in entries.values() if e.source == "point"]
        points = [c for c in self._plan.points if c not in asked and c not in self._record.points]
        if points:
            self.ledger.add("points", configs=points)

    def _step(self) -> None:
        self.pool.expire()
        if self.state == "running":
            self._check_limits()
        if self.state == "running":
            self._supply.refresh(self._settings.workers, self.pool.duration())
            self._fill()
            self._prepare()
            self._check_end()
        self._account()
        if self.state in ("draining", "stopping") and not self.pool.running:
            self._move_to("closing")
            self._spawn(self._close())

    def _check_limits(self) -> None:
        stop = self._tally.reason_to_stop(self._settings, self._elapsed())
        if stop is None:
            return
        self.stop = stop
        if stop.at_once:
            self.pool.cancel_all()
        self._move_to("stopping" if stop.at_once else "draining")

    def _check_end(self) -> None:
        """Move on when there is nothing left to start, nor to wait for."""
        more = self._room() > 0
        if self.pool.running or (more and (self._queue or self._record.points)):
            return
        if more and (self._supply.claimed or self._supply.open_lanes(self._limit)):
            return
        self.stop = Stop("max_trials", f"max_trials reached: {self._settings.max_trials}")
        if more and self._supply.exhausted:
            self.stop = Stop("exhausted", "every point of the space was tried")
        self.stop = self._tally.all_failed() or self.stop
        self._move_to("draining")

    async def _close(self) -> None:
        stop = self.stop or Stop("finished", "finished")
        self.ledger.add(
            "stopped",
            reason=stop.text,
            outcome=stop.kind,
            error=stop.error,
            time=timestamp(),
            seconds=round(self._elapsed(), 3),
            use=round(self._use(), 4),
        )
        await self.ledger.flush()
        await self.ledger.close()
        self._move_to("failed" if stop.error else "finished")

    def _fail(self, kind: str, text: str) -> None:
        """End the study with an error."""
        if self.state in ("running", "draining"):
            self.stop = Stop("error", text, at_once=True, error=kind)
            self.pool.cancel_all()
            self._move_to("stopping")

    # -- trials ------------------------------------------------------------------------------

    def _room(self) -> int:
        """Trials that may still be started."""
        if self._settings.max_trials is None:
            return self._settings.workers * 2  # always some
        finished = len(self._record.order) - len(self._record.given)
        return self._settings.max_trials - finished - len(self.pool.running)

    def _fill(self) -> None:
        """Give every free worker a trial."""
        while len(self.pool.running) < self._settings.workers and self._room() > 0:
            number = self._next_trial()
            if number is None:
                return
            self.pool.submit(number, self._record.entries[number].trial.config)

    def _next_trial(self) -> int | None:
        """Number of a trial to evaluate: one to try again, a point of the user's, a proposal."""
        if self._queue:
            return self._queue.popleft()
        if self._record.points:
            number, config = self._supply.next_number, self._record.points[0]
            self.ledger.add("asked", number=number, config=config, source="point")
            self._supply.lane_of(number).changed(number, finished=False)
            return number
        item = self._supply.take()
        if item is None:
            return None
        self.ledger.add("asked", number=item.number, config=item.config, memo=item.memo)
        return item.number

    def _prepare(self) -> None:
        waiting = len(self._queue) + len(self._record.points)
        idle = max(0, self._settings.workers - len(self.pool.running) - waiting)
        self._supply.prepare(self.pool, idle, self._room() - waiting, self._limit)

    def _ended(self, end: Ended) -> None:
        entry = self._record.entries[end.number]
        span: dict[str, Any] = {"started": end.started, "finished": end.finished}
        if end.failure is None:
            attempts = entry.trial.attempts + 1
            found = {"value": end.value, "extra": end.extra, "attempts": attempts}
            self.ledger.add("done", number=end.number, **found, **span)
            self._finished(end.number)
        elif end.failure.allows_retry(entry.errors, entry.losses, self._settings.retries):
            why = {"cause": end.failure.cause, "reason": end.failure.reason}
            self.ledger.add("retry", number=end.number, lost=end.failure.lost, **why, **span)
            self._queue.append(end.number)
        else:
            self._add_failure(end.number, end.failure, **span)

    def _add_failure(self, number: int, failure: Failure, attempts: int = 1, **span: Any) -> None:
        attempts += self._record.entries[number].trial.attempts
        self.ledger.add("failed", number=number, attempts=attempts, **as_payload(failure), **span)
        self._finished(number)

    def _finished(self, number: int) -> None:
        self._tally.finished(number)
        self._supply.lane_of(number).changed(number, finished=True)

    async def _watch_nodes(self) -> None:
        while True:
            self._queue.extend(await self.pool.check_nodes())
            self._wake.set()
            await asyncio.sleep(_NODES_SECONDS)

    # -- machinery ---------------------------------------------------------------------------

    def _elapsed(self) -> float:
        """Seconds of this session, restarts included."""
        session = self._record.session
        if session.get("id") != self._plan.session:
            return 0.0
        return max(0.0, time.time() - float(session["time"]))

    def _use(self) -> float:
        """Busy share of the workers since the first trial, while there was work for them.

        A worker counts as wanted while it runs a trial or one could still be started for it: the
        last trials of a budget, which leave workers without work, do not lower the figure.
        """
        self._account()
        return min(1.0, self.pool.busy_seconds() / max(1e-9, self._wanted_seconds))

    def _account(self) -> None:
        now = time.monotonic()
        self._wanted_seconds += self._wanted * (now - self._accounted)
        self._accounted = now
        running = len(self.pool.running)
        startable = max(0, self._room()) if self.state == "running" else 0
        self._wanted = min(self._settings.workers, running + startable) if self.pool.count else 0

    def _move_to(self, state: str) -> None:
        self.state = state
        self._wake.set()
        self.ledger.changed.set()

    def _spawn(self, job: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._guarded(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, job: Awaitable[None]) -> None:
        """Run a job, then look around; a journal that cannot be written ends the study at once."""
        try:
            await job
        except JournalError as error:
            self.stop = Stop("error", str(error), at_once=True, error="JournalError")
            self.pool.cancel_all()
            self.ledger.journal.close()
            self._move_to("failed")
        except Exception as error:  # noqa: BLE001  (a fault of raybo's own must not hang the study)
            self._fail("StudyFailed", "".join(traceback.format_exception(error)))
        self._wake.set()


def _first_beyond(max_trials: int | None, given: Iterable[int]) -> float:
    """First number beyond the budget, so that each lane gets its equal share of those below."""
    if max_trials is None:
        return math.inf
    limit = max_trials
    for number in sorted(given):
        limit += number <= limit
    return limit
