"""Lane: the trials of one proposer, as the coordinator sees them."""

from __future__ import annotations

import itertools
import statistics
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from raybo.methods.base import FULL, Effort, lane_of
from raybo.runtime.deaths import Deaths
from raybo.runtime.proposals.pacing import CALL_SECONDS, LONGEST_CALL
from raybo.runtime.proposals.proposer import Call, Proposals
from raybo.study.journal.record import Record
from raybo.study.trial import TrialRecord

RECENT_CALLS = 10  # say how long the next takes; fits make calls uneven


class Unsent:
    """Numbers of trials whose news a proposer has not been sent."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._changed = dict.fromkeys(numbers)  # in the order of their changes
        self._dropped: list[int] = []

    def change(self, number: int) -> None:
        """Note that a trial is new or has changed."""
        self._changed[number] = None

    def drop(self, number: int) -> None:
        """Note that a proposal will not be evaluated."""
        self._changed.pop(number, None)
        self._dropped.append(number)

    def take(self) -> tuple[list[int], list[int]]:
        """Return the changed and the dropped numbers, which count as sent from now on."""
        taken = list(self._changed), self._dropped
        self._changed, self._dropped = {}, []
        return taken


@dataclass(frozen=True)
class _Past:
    """A call that was answered."""

    made: int  # proposals
    work: float  # seconds of its proposer
    seconds: float  # from its begin to its end


@dataclass(frozen=True)
class _Ready:
    """A proposal that waits for a worker."""

    trial: TrialRecord
    n_seen: int  # trials of the lane that had finished when it was asked for


class Lane:
    """The numbers of one lane: used in the record, ready to start, or being proposed."""

    def __init__(self, index: int, lanes: int, record: Record) -> None:
        self.index = index
        self.calling = False  # whether its proposer is computing
        self.exhausted = False
        self.deaths = Deaths()  # of its proposer
        self._lanes = lanes
        self._record = record
        self._ready: deque[_Ready] = deque()
        self._claimed: set[int] = set()  # numbers ready or being proposed
        self._dropped = False  # whether proposals were dropped since one was last used
        self._cursor = index
        self._n_finished = sum(lane_of(number, lanes) == index for number in record.order)
        self._n_seen = 0  # trials that had finished at the last call
        self._called = 0.0  # when that was
        self._cold = True  # whether its proposer has yet to load libraries
        self._calls: deque[_Past] = deque(maxlen=RECENT_CALLS)
        self._unsent = self._all_trials()

    @property
    def seconds(self) -> float | None:
        """Mean time per proposal, of all recent ones: calls that fit a model make few."""
        made = sum(call.made for call in self._calls)
        return sum(call.work for call in self._calls) / made if made else None

    @property
    def more_seconds(self) -> float | None:
        """Time that one more proposal takes in a call that makes others."""
        if len({call.made for call in self._calls}) < 2:
            return self.seconds
        made, work = zip(*((call.made, call.work) for call in self._calls), strict=True)
        return max(0.0, statistics.linear_regression(made, work).slope)

    @property
    def call_seconds(self) -> float | None:
        """Mean time of a call."""
        return statistics.fmean(call.seconds for call in self._calls) if self._calls else None

    @property
    def overhead(self) -> float:
        """Mean time of a call beside its proposals."""
        times = [max(0.0, call.seconds - call.work) for call in self._calls]
        return statistics.fmean(times) if times else CALL_SECONDS

    @property
    def next_number(self) -> int:
        """Smallest number of the lane that is free."""
        while self._cursor in self._record.entries or self._cursor in self._claimed:
            self._cursor += self._lanes
        return self._cursor

    @property
    def n_claimed(self) -> int:
        """Number of proposals that are ready or being computed."""
        return len(self._claimed)

    @property
    def next_ready(self) -> int | None:
        """Number of the oldest proposal that is ready, if there is one."""
        return self._ready[0].trial.number if self._ready else None

    @property
    def ready(self) -> list[int]:
        """Numbers of the proposals that are ready, oldest first."""
        return [item.trial.number for item in self._ready]

    def free_numbers(self) -> Iterator[int]:
        """Numbers of the lane that are free, the smallest first."""
        for number in itertools.count(self.next_number, self._lanes):
            if number not in self._record.entries and number not in self._claimed:
                yield number

    def claim(self, numbers: Iterable[int]) -> None:
        """Take free numbers."""
        self._claimed.update(numbers)

    def offer(self, trial: TrialRecord) -> None:
        """Take a proposal that its proposer does not know."""
        self._claimed.add(trial.number)
        self._ready.append(_Ready(trial, self._n_finished))
        self._unsent.change(trial.number)

    def changed(self, number: int, finished: bool) -> None:
        """Note that a trial of the record is new to the proposer, or has finished."""
        self._unsent.change(number)
        self._n_finished += finished

    def pop(self) -> TrialRecord:
        """Take the oldest ready proposal; its trial is about to be recorded."""
        trial = self._ready.popleft().trial
        self._dropped = False
        self._claimed.discard(trial.number)
        return trial

    def drop_stale(self) -> None:
        """Drop ready proposals that have not seen every result; not during a call.

        Proposals in whose place others were dropped stay: with many workers some trial ends during
        every call, and none would ever be used.
        """
        stale = [item for item in self._ready if item.n_seen < self._n_finished]
        if not stale or self._dropped:
            return
        self._dropped = True
        for item in stale:
            self._unsent.drop(item.trial.number)
            self._ready.remove(item)
        self._release(item.trial.number for item in stale)

    def begin_call(
        self, numbers: list[int], effort: Effort = FULL, seconds: float = LONGEST_CALL
    ) -> Call:
        """Return a call of the proposer for `numbers`, claimed before; see Call."""
        self.calling = True
        self._called = time.monotonic()
        self._n_seen = self._n_finished
        changed, dropped = self._unsent.take()
        updates = [self._trial(number) for number in changed]
        return Call(updates, dropped, numbers, effort, seconds)

    def end_call(self, numbers: list[int], answer: Proposals | None) -> None:
        """Take the answer to a call for `numbers`; None when the proposer was lost."""
        self.calling = False
        seconds = time.monotonic() - self._called
        trials = answer.trials if answer else []
        self._ready.extend(_Ready(trial, self._n_seen) for trial in trials)
        self._release(set(numbers) - {trial.number for trial in trials})
        if answer is None:
            self._unsent = self._all_trials()  # for a proposer that knows none
            self._cold = True
            return
        self.deaths.reset()
        if trials and self._cold:
            self._cold = False  # its time says nothing of the next
        elif trials:
            self._calls.append(_Past(len(trials), answer.seconds, seconds))

    def _release(self, numbers: Iterable[int]) -> None:
        """Give claimed numbers back."""
        for number in numbers:
            self._claimed.discard(number)
            self._cursor = min(self._cursor, number)

    def _all_trials(self) -> Unsent:
        entries = self._record.entries
        recorded = (n for n in entries if lane_of(n, self._lanes) == self.index)
        return Unsent([*recorded, *self.ready])

    def _trial(self, number: int) -> TrialRecord:
        if number in self._record.entries:
            return self._record.entries[number].trial
        return next(item.trial for item in self._ready if item.trial.number == number)
