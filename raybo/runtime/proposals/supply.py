"""Supply: proposals made ahead of demand, by one proposer per lane."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice, takewhile

from raybo.arrays import Array
from raybo.errors import SpaceExhausted
from raybo.methods.base import FULL, lane_of
from raybo.runtime.backend import Backend, ProposerFailed, ProposerLost
from raybo.runtime.deaths import MAX_DEATHS
from raybo.runtime.proposals.lane import Lane
from raybo.runtime.proposals.pacing import (
    INSTANT_SECONDS,
    buffer_size,
    is_fresh,
    longest_call,
    next_effort,
    typical_seconds,
)
from raybo.runtime.proposals.proposer import Call
from raybo.runtime.stopping import failed
from raybo.study.journal.record import Record
from raybo.study.outcome import Stop
from raybo.study.trial import TrialRecord


class Supply:
    """The lanes of a study; `problem` says why the study has to stop, if its method failed.

    Proposals of an `opening` are ready from the start, unless there are results.
    """

    def __init__(
        self,
        backend: Backend,
        record: Record,
        lanes: int,
        workers: int,
        spawn: Callable[[Awaitable[None]], None],
        opening: Sequence[TrialRecord] = (),
    ) -> None:
        self.problem: Stop | None = None
        self._workers = workers
        self._lanes = [Lane(index, lanes, record) for index in range(lanes)]
        for trial in () if record.order else opening:
            if trial.number not in record.entries:
                self._lanes[lane_of(trial.number, lanes)].offer(trial)
        self._backend = backend
        self._spawn = spawn
        self._fresh = False  # whether each proposal waits for the result before it
        self._effort = FULL
        self._rate = 0.0  # trials that finish per second

    @property
    def next_number(self) -> int:
        """Smallest number that is free."""
        return min(lane.next_number for lane in self._lanes)

    @property
    def exhausted(self) -> bool:
        """Whether a lane has no points left."""
        return any(lane.exhausted for lane in self._lanes)

    def has_more(self, limit: float) -> bool:
        """Whether a trial is ready, being proposed, or can be, with a number below `limit`."""
        return self._n_claimed > 0 or bool(self._open_lanes(limit))

    def changed(self, number: int, finished: bool) -> None:
        """Note a trial that is new to its proposer, or has finished."""
        self._lanes[lane_of(number, len(self._lanes))].changed(number, finished)

    def take(self) -> TrialRecord | None:
        """Return the ready proposal with the smallest number, if there is one."""
        ready = {n: lane for lane in self._lanes if (n := lane.next_ready) is not None}
        return ready[min(ready)].pop() if ready else None

    def refresh(self, duration: float) -> None:
        """Drop proposals that have not seen every result, if workers may wait for new ones.

        One worker always waits, so that its trials are those of ask and tell.
        """
        call = self._mean(lambda lane: lane.call_seconds)
        workers = self._workers / len(self._lanes)
        prompt = call is not None and is_fresh(call, workers, duration)
        self._fresh = prompt or self._workers == 1
        for lane in self._lanes if self._fresh else ():
            if not lane.calling:
                lane.drop_stale()

    def prepare(
        self,
        finishes: Sequence[float] | Array,
        duration: float | None,
        idle: int,
        room: int,
        limit: float,
    ) -> None:
        """Ask the proposers for the trials that will be needed soon.

        Parameters
        ----------
        finishes
            Seconds until each running trial is expected to finish.
        duration
            Seconds that a trial takes; None while unknown.
        idle
            Workers that wait for a trial.
        room
            Trials that may still be started.
        limit
            First number beyond the budget.
        """
        free = [lane for lane in self._open_lanes(limit) if not lane.calling]
        if not free:
            return
        instant = duration is not None and duration < INSTANT_SECONDS
        in_flight = len(finishes) + min(idle, room)
        self._rate = 0.0 if duration is None else in_flight / max(duration, 1e-3)
        call = self._mean(lambda lane: lane.call_seconds) or 0.0
        seconds = (self._mean(lambda lane: lane.more_seconds) or 0.0) / len(self._lanes)
        backlog = idle * seconds
        if not instant:  # proposals of an initial design take no time, those of a model will
            seconds = max(seconds, typical_seconds(self._rate))
        wanted = min(room, buffer_size(finishes, idle, seconds, call, instant, self._fresh))
        share = max(1, wanted // len(self._lanes))  # lanes that compute now make theirs later
        numbers = heapq.merge(*(islice(lane.free_numbers(), share) for lane in free))
        below = takewhile(lambda number: number < limit, numbers)
        calls: dict[int, list[int]] = {}
        for number in list(islice(below, max(0, wanted - self._n_claimed))):
            calls.setdefault(lane_of(number, len(self._lanes)), []).append(number)
        for index, claimed in calls.items():
            lane = self._lanes[index]
            lane.claim(claimed)
            self._start_call(lane, claimed, longest_call(duration, backlog, lane.overhead))

    @property
    def _n_claimed(self) -> int:
        return sum(lane.n_claimed for lane in self._lanes)

    def _open_lanes(self, limit: float) -> list[Lane]:
        return [x for x in self._lanes if not x.exhausted and x.next_number < limit]

    def _mean(self, seconds: Callable[[Lane], float | None]) -> float | None:
        """Return the mean of a time of all lanes; None while unknown."""
        known = [time for lane in self._lanes if (time := seconds(lane)) is not None]
        return statistics.fmean(known) if known else None

    def _start_call(self, lane: Lane, numbers: list[int], longest: float) -> None:
        if self._workers > 1:
            seconds = (self._mean(lambda lane: lane.seconds) or 0.0) / len(self._lanes)
            self._effort = next_effort(self._effort, seconds, self._rate)
        call = lane.begin_call(numbers, self._effort, longest)
        self._spawn(self._call(lane, call, numbers))

    async def _call(self, lane: Lane, call: Call, numbers: list[int]) -> None:
        answer = None
        try:
            answer = await self._backend.propose(lane.index, call)
        except ProposerLost as error:
            if not lane.deaths.add():
                self.problem = failed(
                    f"the process of the method died {MAX_DEATHS} times in a row at trial "
                    f"{numbers[0]} ({error}); give its machine more memory, or use another method"
                )
        except ProposerFailed as error:
            self.problem = failed(f"the method failed at trial {numbers[0]}:\n{error}")
        lane.end_call(numbers, answer)
        problem = None if answer is None else answer.error
        if isinstance(problem, SpaceExhausted):
            lane.exhausted = True
        elif problem is not None:
            text = f"the method failed at trial {numbers[0]}: {problem}"
            self.problem = failed(text, type(problem))
