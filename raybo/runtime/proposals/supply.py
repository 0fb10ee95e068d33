"""Supply: proposals, made ahead of demand by one proposer per lane."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable

from raybo.methods.base import lane_of
from raybo.runtime.backend import Backend, ProposerFailed, ProposerLost
from raybo.runtime.evaluations.pool import Pool
from raybo.runtime.proposals.lane import Lane, Ready
from raybo.runtime.proposals.pacing import INSTANT, buffer_size, is_fresh, next_haste, usual_pace
from raybo.study.journal.record import Record

_MAX_DEATHS = 5  # of a proposer, in a row: the method kills its process


class Supply:
    """The lanes of a study; `fail` is called with class and text of an error that must end it."""

    def __init__(
        self,
        backend: Backend,
        record: Record,
        lanes: int,
        fail: Callable[[str, str], None],
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self.lanes = [Lane(index, lanes, record) for index in range(lanes)]
        for number in record.order:
            self.lane_of(number).told += 1
        self._backend = backend
        self._fail = fail
        self._spawn = spawn
        self._fresh = False
        self._haste = 0
        self._rate = 0.0  # trials that finish in a second

    def lane_of(self, number: int) -> Lane:
        """Lane that a trial belongs to."""
        return self.lanes[lane_of(number, len(self.lanes))]

    @property
    def next_number(self) -> int:
        """Smallest number that is free."""
        return min(lane.next_number for lane in self.lanes)

    @property
    def exhausted(self) -> bool:
        """Whether a lane has no points left."""
        return any(lane.exhausted for lane in self.lanes)

    @property
    def claimed(self) -> int:
        """Proposals ready or in the making."""
        return sum(lane.claimed for lane in self.lanes)

    def open_lanes(self, limit: float) -> list[Lane]:
        """Lanes that can propose a trial with a number below `limit`."""
        return [x for x in self.lanes if not x.exhausted and x.next_number < limit]

    def take(self) -> Ready | None:
        """Next proposal: the ready one with the smallest number."""
        ready = [lane for lane in self.lanes if lane.ready]
        return min(ready, key=lambda lane: lane.ready[0].number).pop() if ready else None

    def refresh(self, workers: int, duration: float) -> None:
        """Throw away proposals that could know more, if a worker may wait for better ones."""
        seconds = self._pace()
        self._fresh = seconds is not None and is_fresh(seconds, workers, duration)
        for lane in self.lanes if self._fresh else ():
            if not lane.calling:
                lane.drop_stale()

    def prepare(self, pool: Pool, idle: int, room: int, limit: float) -> None:
        """Ask the proposers for what will be wanted soon, at most `room` in all."""
        instant = pool.measured and pool.duration() < INSTANT
        self._rate = len(pool.running) / max(pool.duration(), 1e-3) if pool.measured else 0.0
        pace = self._pace() or 0.0
        if not instant:
            pace = max(pace, usual_pace(self._rate))  # those of the design took no time
        size = buffer_size(pool.expected(), idle, pace, instant, self._fresh)
        want = min(size, room)
        share = max(1, want // len(self.lanes))  # those that are busy now will make theirs
        calls: dict[int, list[int]] = {}
        for _ in range(want - self.claimed):
            free = [
                lane
                for lane in self.open_lanes(limit)
                if not lane.calling and len(calls.get(lane.index, ())) < share
            ]
            if not free:
                break
            lane = min(free, key=lambda lane: lane.next_number)
            calls.setdefault(lane.index, []).append(lane.claim())
        for index, numbers in calls.items():
            self._spawn(self._call(self.lanes[index], numbers, self.lanes[index].begin_call()))

    def _pace(self) -> float | None:
        """Seconds per proposal, all lanes working; None while unknown."""
        lanes = [lane for lane in self.lanes if not lane.exhausted]
        known = [lane.seconds for lane in lanes if lane.seconds is not None]
        return statistics.fmean(known) / len(lanes) if known else None

    async def _call(self, lane: Lane, numbers: list[int], news: tuple[object, object]) -> None:
        answer = None
        self._haste = next_haste(self._haste, self._pace() or 0.0, self._rate)
        try:
            answer = await self._backend.propose(lane.index, *news, numbers, self._haste)
        except ProposerLost as error:
            if lane.deaths + 1 >= _MAX_DEATHS:
                self._fail(
                    "StudyFailed",
                    f"the process of the method died {_MAX_DEATHS} times in a row at trial "
                    f"{numbers[0]} ({error}); give its machine more memory, or use another method",
                )
        except ProposerFailed as error:
            self._fail("StudyFailed", f"the method failed at trial {numbers[0]}:\n{error}")
        lane.end_call(numbers, answer)
        if answer is not None and answer["error"] is not None:
            kind, message = answer["error"]
            lane.exhausted = kind == "SpaceExhausted"
            if not lane.exhausted:
                self._fail(kind, f"the method failed at trial {numbers[0]}: {message}")
