"""Coordinator: keeps every worker busy, and the record of a study complete.

It waits for nothing but events: results, proposals, the clock. All decisions are taken in `_step`,
between two waits, so there is no lock. Its only state is the journal: a coordinator that is
started again replays it and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from raybo.errors import JournalError
from raybo.runtime.backend import Backend
from raybo.runtime.evaluations.ages import RECENT_TRIALS
from raybo.runtime.evaluations.evaluate import Evaluation
from raybo.runtime.evaluations.failures import MAX_LOSSES, Failure
from raybo.runtime.evaluations.pool import Pool
from raybo.runtime.proposals.supply import Supply
from raybo.runtime.session import Session
from raybo.runtime.stopping import Ending, StopRules, failed
from raybo.runtime.timeouts import GATHER_SECONDS, IDLE_SECONDS, NODES_SECONDS, TICK_SECONDS
from raybo.runtime.totals import Totals
from raybo.runtime.writer import JournalWriter
from raybo.space.any_space import AnySpace
from raybo.study.curves import Course, course_of
from raybo.study.journal.journal import timestamp
from raybo.study.objective import Objective
from raybo.study.outcome import Stop
from raybo.study.trial import Batch, Checkpoint, State, TrialRecord
from raybo.views.progress import Progress


class Command(StrEnum):
    """What the driver wants; Ctrl-C changes it."""

    RUN = "run"
    DRAIN = "drain"  # start no more trials; end when those that run have finished
    STOP = "stop"  # cancel all that runs, and end
    END = "end"  # as DRAIN, because a callback says so


class Phase(StrEnum):
    """Where a session stands."""

    RUNNING = "running"
    DRAINING = "draining"  # no more trials are started
    STOPPING = "stopping"  # the running trials were cancelled
    CLOSING = "closing"  # the last events are being written
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True)
class News:
    """What a driver learns from a poll."""

    trials: list[TrialRecord]  # acknowledged since the last poll
    progress: Progress
    stop: Stop | None  # why the session has ended; None while it goes on
    orphaned: bool = False  # whether Ray's own process on the coordinator's node has died
    paused: Sequence[TrialRecord] = ()  # in this session and still, when it has ended


class Coordinator:
    """Runs one session of a study; `elapsed` seconds of it have passed by the driver's clock."""

    def __init__(
        self,
        session: Session,
        writer: JournalWriter,
        backend: Backend,
        space: AnySpace,
        objective: Objective,
        elapsed: float = 0.0,
        nodes_seconds: float = NODES_SECONDS,
    ) -> None:
        self._session = session
        self._settings = session.settings
        self._writer = writer
        self._record = writer.record
        self._nodes_seconds = nodes_seconds
        self._began = time.monotonic() - elapsed
        self._phase = Phase.RUNNING
        self._stop: Stop | None = None
        self._retries: deque[int] = deque()  # trials to try again
        self._wake = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        self._polled = time.monotonic()
        self._wanted, self._wanted_seconds, self._accounted = 0, 0.0, time.monotonic()
        self._worked = time.monotonic()  # when a trial ran last, or none could be started
        self._finite = space.cardinality is not None
        self._objective = objective
        self._space = space
        self._steps = self._settings.steps
        self._courses: dict[int, Course] = {}  # of the trials that have reported
        self._news_at_rungs = True  # since paused trials were last looked at
        self._backend = backend
        durations = self._record.recent_durations(RECENT_TRIALS)
        self._pool = Pool(backend, self._settings, space, writer.epoch, self._spawn, durations)
        self._supply = Supply(
            backend,
            self._record,
            session.lanes,
            self._settings.workers,
            self._spawn,
            session.opening,
        )
        self._totals = Totals(objective, session.lanes)
        self._rules = StopRules(self._settings, objective)
        self._begin()
        self._limit = _first_beyond(self._settings.max_trials, self._record.given)

    # -- for the driver and the workers ------------------------------------------------------

    async def poll(self, after: int, wait: float, command: Command = Command.RUN) -> News:
        """Return the trials acknowledged after the first `after`, as soon as there are any.

        Returns within about `wait` seconds in any case. The first call starts the session.
        """
        self._polled = time.monotonic()
        if self._main is None:
            self._main = asyncio.get_running_loop().create_task(self._run())
        self._obey(command)
        if not self._writer.acknowledged(after) and not self._main.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._writer.changed.wait()
                await asyncio.sleep(GATHER_SECONDS)
        self._writer.changed.clear()
        trials = self._writer.acknowledged(after)
        if not self._main.done():
            return News(trials, self.progress(), None)
        self._main.result()  # raises what ended it, if anything did
        paused = self._writer.paused() if self._phase is Phase.FINISHED else ()
        return News(trials, self.progress(), self._stop, paused=paused)

    def loading(self, attempt: str, node: str, pid: int) -> None:
        """Note that a worker loads the objective for an attempt."""
        self._pool.loading(attempt, node, pid)

    def started(self, attempt: str, node: str, pid: int) -> None:
        """Note that an attempt has started, and where."""
        self._pool.started(attempt, node, pid)

    async def report(self, attempt: str, batch: Batch) -> bool:
        """Record values of a trial on its way; return whether it goes on.

        A trial goes on from a rung, or with a checkpoint, when that is on disk.
        """
        number = self._pool.number_of(attempt)
        if number is None:
            return False
        goes_on = self._add_reports(number, batch)
        if batch.steps[-1][0] in self._steps.rungs or batch.checkpoint is not None:
            await self._writer.written()
        return goes_on

    @property
    def seconds_since_poll(self) -> float:
        """Seconds since the driver last asked for news."""
        return time.monotonic() - self._polled

    def progress(self) -> Progress:
        """Return the figures to show."""
        return self._totals.progress(
            self._session.name,
            self._state(),
            self._use(),
            self._elapsed(),
            self._pool.running,
            self._settings,
            len(self._record.paused),
        )

    def _state(self) -> str:
        """Return the state to show; where no trial runs, what is being waited for."""
        if self._phase is Phase.CLOSING:
            return Phase.DRAINING.value
        if self._phase is Phase.FINISHED and self._stop and self._stop.kind == Ending.INTERRUPTED:
            return Ending.INTERRUPTED.value
        if self._phase is Phase.RUNNING and not self._record.order:
            if not self._pool.used:
                return "starting: the method prepares the first trials"
            if not self._pool.has_started:
                return "starting: workers load the objective"
        if self._phase is Phase.RUNNING and time.monotonic() - self._worked > IDLE_SECONDS:
            return "the method prepares the next trials"
        return self._phase.value

    # -- beginning and end -------------------------------------------------------------------

    def _begin(self) -> None:
        """Record the session, unless this coordinator goes on with it, and count its trials."""
        add, record, session = self._writer.add, self._record, self._session
        if not record.header:
            add("header", **session.header)
        elif record.pending and record.stopped is None:
            add("interrupted", numbers=record.pending, time=timestamp())
        is_new = record.session.get("id") != session.id
        if is_new:
            settings = self._settings.to_json()
            about = {"code": session.code, "resume_hint": session.resume_hint}
            who = session.holder
            add("session", id=session.id, time=timestamp(), settings=settings, who=who, **about)
        for number in record.entries:
            self._note(number)
        for number in (*record.order, *record.paused):
            self._totals.add(record.entries[number])
        for number in record.order[record.before :]:
            self._rules.add(record.entries[number])
        if is_new:
            self._add_known_points()
        for number in record.pending:
            if record.entries[number].losses < MAX_LOSSES:
                self._retries.append(number)
            else:
                text = f"interrupted {MAX_LOSSES} times by the end of its coordinator or driver"
                self._add_failure(number, Failure("lost", text, "lost"), attempts=0)

    def _add_known_points(self) -> None:
        """Record the user's own points, unless an earlier session did."""
        entries = self._record.entries
        known = [(entries[n].trial.config, entries[n].trial.value) for n in self._record.given]
        for point in self._session.given:
            if (point["config"], point["value"]) not in known:
                number, now = self._supply.next_number, timestamp()
                self._writer.add("given", number=number, finished=now, **point)
                self._finished(number)
        waiting = list(self._record.points)
        known = [e.trial.config for e in entries.values() if self._finite or e.source == "point"]
        points: list[Any] = []
        for config in self._session.points:
            if config not in [*known, *waiting, *(points if self._finite else ())]:
                points.append(config)
        if points:
            self._writer.add("points", configs=points)

    async def _run(self) -> None:
        """Work until the session ends."""
        for job in (self._writer.commit_forever, self._writer.upload_forever, self._watch_nodes):
            self._spawn(job())
        while self._phase not in (Phase.FINISHED, Phase.FAILED):
            self._step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
        for task in self._tasks:
            task.cancel()
        self._writer.changed.set()

    def _step(self) -> None:
        self._pool.expire()
        for number, evaluation in self._pool.take_ended():
            self._add_evaluation(number, evaluation)
        if self._phase is Phase.RUNNING:
            self._check_rules()
        if self._phase is Phase.RUNNING:
            self._supply.refresh(self._pool.typical_seconds() or self._pool.longest_seconds())
            self._fill()
            self._prepare()
            self._check_end()
        self._account()
        ending = self._phase in (Phase.DRAINING, Phase.STOPPING)
        if ending and self._stop is not None and not self._pool.n_running:
            self._move_to(Phase.CLOSING)
            self._spawn(self._close(self._stop))

    def _obey(self, command: Command) -> None:
        if command is Command.DRAIN and self._phase is Phase.RUNNING:
            self._end(Stop(Ending.INTERRUPTED, "interrupted: drained"))
        elif command is Command.END and self._phase is Phase.RUNNING:
            self._end(Stop(Ending.CALLBACK, "a callback ended the study"))
        elif command is Command.STOP and self._phase in (Phase.RUNNING, Phase.DRAINING):
            self._end(Stop(Ending.INTERRUPTED, "interrupted: stopped", at_once=True))

    def _check_rules(self) -> None:
        stop = self._supply.problem or self._rules.check(self._totals.best_value, self._elapsed())
        if stop is not None:
            self._end(stop)

    def _check_end(self) -> None:
        """End the session when there is nothing left to start, nor to wait for."""
        room = self._room() > 0
        if self._pool.n_running or (room and (self._retries or self._record.points)):
            return
        if room and self._supply.has_more(self._limit):
            return
        exhausted = room and self._supply.exhausted
        self._end(self._rules.at_end(self._totals.best_value, exhausted))

    def _end(self, stop: Stop) -> None:
        """Start no more trials, and cancel those that run if `stop` says so."""
        self._stop = stop
        if stop.at_once:
            self._pool.cancel_all()
        self._move_to(Phase.STOPPING if stop.at_once else Phase.DRAINING)

    async def _close(self, stop: Stop) -> None:
        self._writer.add(
            "stopped",
            reason=stop.text,
            outcome=str(stop.kind),
            error=None if stop.error is None else stop.error.__name__,
            time=timestamp(),
            seconds=round(self._elapsed(), 3),
            use=round(self._use(), 4),
        )
        await self._writer.flush()
        await self._backend.close()
        await self._writer.close()
        self._move_to(Phase.FAILED if stop.error else Phase.FINISHED)

    def _abort(self, stop: Stop) -> None:
        """End now, without another event: the journal cannot be written, or not be closed."""
        self._stop = stop
        self._pool.cancel_all()
        self._writer.release()
        self._move_to(Phase.FAILED)

    # -- trials ------------------------------------------------------------------------------

    def _room(self) -> int:
        """Return how many trials may still be started."""
        if self._settings.max_trials is None:
            return self._settings.workers * 2  # always some
        return self._settings.max_trials - self._record.n_ended - self._pool.n_running

    def _fill(self) -> None:
        """Give every free worker a trial."""
        while self._pool.n_running < self._settings.workers:
            trial = self._next_trial()
            if trial is None:
                return
            self._pool.submit(trial.number, trial.config, self._begin_of(trial))

    def _begin_of(self, trial: TrialRecord) -> Checkpoint | None:
        """Return the checkpoint from which a trial can go on; a mean is of all instances."""
        resumes = self._session.resumes and self._steps.over == "steps"
        return trial.checkpoint if resumes else None

    def _next_trial(self) -> TrialRecord | None:
        """Return a trial to evaluate.

        One to try again, a point of the user's, a paused one that is among the best now, or a
        proposal. A paused one has its place among the trials of the study already.
        """
        entries, room = self._record.entries, self._room() > 0
        if room and self._retries:
            return entries[self._retries.popleft()].trial
        if room and self._record.points:
            number, config = self._supply.next_number, self._record.points[0]
            self._writer.add("asked", number=number, config=config, source="point")
            self._supply.changed(number, finished=False)
            return entries[number].trial
        promoted = self._promote()
        if promoted is not None:
            return promoted
        trial = self._supply.take() if room else None
        if trial is not None:
            self._writer.add("asked", number=trial.number, config=trial.config, memo=trial.memo)
        return trial

    def _promote(self) -> TrialRecord | None:
        """Return a paused trial that is among the best now, and no longer paused."""
        if not self._news_at_rungs:  # all trials are compared, which takes a while
            return None
        number = self._steps.promotable(self._record.paused, self._courses)
        if number is None:
            self._news_at_rungs = False
            return None
        entry = self._record.entries[number]
        self._totals.remove(entry)
        self._writer.add("promoted", number=number, time=timestamp())
        self._supply.changed(number, finished=False)
        return entry.trial

    def _prepare(self) -> None:
        """Have proposals computed for the workers that will soon be free."""
        if self._record.points:
            return  # a proposal could be one of these, of which the proposers are told when asked
        pool, waiting = self._pool, len(self._retries)
        idle = max(0, self._settings.workers - pool.n_running - waiting)
        if not idle and not pool.has_started:
            return  # workers are loading, and proposers that start would slow them down
        finishes, duration = pool.seconds_left(), pool.typical_seconds()
        self._supply.prepare(finishes, duration, idle, self._room() - waiting, self._limit)

    def _add_evaluation(self, number: int, evaluation: Evaluation) -> None:
        """Record what an attempt gave, and whether its trial is tried again."""
        entry, failure = self._record.entries[number], evaluation.failure
        span: dict[str, Any] = {
            "started": round(evaluation.started, 6),
            "finished": round(evaluation.started + evaluation.seconds, 6),
        }
        if evaluation.reports.steps:
            self._add_reports(number, evaluation.reports)
        if failure is None:
            about = {"attempts": entry.trial.attempts + 1, "extra": evaluation.extra, **span}
            if evaluation.value is None:
                goes_on_later = self._begin_of(entry.trial) is not None
                kind = "paused" if goes_on_later else "stopped_early"
                self._writer.add(kind, number=number, **about)
            else:
                self._writer.add("done", number=number, value=evaluation.value, **about)
            self._finished(number)
        elif failure.allows_retry(entry.errors, entry.losses, self._settings.retries):
            why = {"cause": failure.cause, "reason": failure.reason}
            self._writer.add("retry", number=number, lost=failure.lost, **why, **span)
            self._retries.append(number)
        else:
            self._add_failure(number, failure, attempts=1, **span)

    def _add_reports(self, number: int, batch: Batch) -> bool:
        """Record reports, and return whether their trial goes on."""
        about: dict[str, Any] = {"extra": batch.bounded} if batch.bounded else {}
        if batch.checkpoint is not None:
            about["checkpoint"] = list(batch.checkpoint)
        self._writer.add("report", number=number, steps=[list(s) for s in batch.steps], **about)
        self._supply.changed(number, finished=False)
        self._note(number)
        step = batch.steps[-1][0]
        self._news_at_rungs = self._news_at_rungs or step in self._steps.rungs
        return self._steps.goes_on(number, step, self._courses)

    def _note(self, number: int) -> None:
        """Note how a trial goes, for the rule that stops others; those that fail say nothing."""
        trial, known = self._record.entries[number].trial, self._courses.pop(number, None)
        if not self._steps.rungs or not trial.curve or trial.state is State.FAILED:
            return
        row = np.empty(0) if known is None else known.row
        if known is None and self._space.dense:
            row = self._space.encode(self._space.from_json(trial.config))
        self._courses[number] = course_of(trial, row, self._objective)

    def _add_failure(self, number: int, failure: Failure, attempts: int, **span: Any) -> None:
        self._writer.add(
            "failed",
            number=number,
            attempts=self._record.entries[number].trial.attempts + attempts,
            cause=failure.cause,
            reason=failure.reason,
            alike=failure.kind,
            traceback=failure.traceback,
            **span,
        )
        self._finished(number)

    def _finished(self, number: int) -> None:
        entry = self._record.entries[number]
        self._note(number)
        self._news_at_rungs = True
        self._totals.add(entry, now=True)
        self._rules.add(entry)
        self._supply.changed(number, finished=True)

    async def _watch_nodes(self) -> None:
        while True:
            self._retries.extend(await self._pool.check_nodes())
            self._wake.set()
            await asyncio.sleep(self._nodes_seconds)

    # -- time and tasks ----------------------------------------------------------------------

    def _elapsed(self) -> float:
        """Return the seconds of this session, restarts of the coordinator included."""
        return time.monotonic() - self._began

    def _use(self) -> float:
        """Return the busy share of the workers since the first trial, while there was work.

        A worker counts as wanted while it runs a trial or one could still be started for it: the
        last trials of a budget, which leave workers without work, do not lower the figure.
        """
        self._account()
        return min(1.0, self._pool.busy_seconds() / max(1e-9, self._wanted_seconds))

    def _account(self) -> None:
        now = time.monotonic()
        self._wanted_seconds += self._wanted * (now - self._accounted)
        self._accounted = now
        running = self._pool.n_running
        startable = max(0, self._room()) if self._phase is Phase.RUNNING else 0
        if running or not startable:
            self._worked = now
        self._wanted = min(self._settings.workers, running + startable) if self._pool.used else 0

    def _move_to(self, phase: Phase) -> None:
        self._phase = phase
        self._wake.set()
        self._writer.changed.set()

    def _spawn(self, job: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._guarded(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, job: Awaitable[None]) -> None:
        """Run a job, then take another step; an error in it ends the study."""
        try:
            await job
        except JournalError as error:
            self._abort(failed(str(error), JournalError))
        except Exception as error:  # noqa: BLE001  (a fault of raybo's own must not hang the study)
            stop = failed("".join(traceback.format_exception(error)))
            if self._phase in (Phase.RUNNING, Phase.DRAINING):
                self._end(stop)
            else:
                self._abort(stop)
        self._wake.set()


def _first_beyond(max_trials: int | None, given: Iterable[int]) -> float:
    """Return the first number beyond the budget; below it each lane has an equal share."""
    if max_trials is None:
        return math.inf
    limit = max_trials
    for number in sorted(given):
        limit += number <= limit
    return limit
