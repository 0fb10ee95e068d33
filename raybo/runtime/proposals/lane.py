"""Lane: what the coordinator knows about one proposer and its part of the trial numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from raybo.methods.base import lane_of
from raybo.study.journal.record import Record
from raybo.study.trial import TrialRecord

_SMOOTHING = 0.3  # weight of the newest call in the mean time per proposal


@dataclass(frozen=True)
class Ready:
    """A proposal that waits for a worker."""

    number: int
    config: Any  # JSON
    memo: dict[str, Any]
    told: int  # trials of the lane that had finished when it was asked for


class Lane:
    """Numbers n with n = index modulo lanes: which are used, ready, or being proposed."""

    def __init__(self, index: int, lanes: int, record: Record) -> None:
        self.index = index
        self.ready: deque[Ready] = deque()
        self.calling = False
        self.exhausted = False
        self.deaths = 0  # of its proposer, in a row
        self.seconds: float | None = None  # per proposal
        self.told = 0  # trials that have finished
        self._lanes = lanes
        self._record = record
        self._claimed: set[int] = set()
        self._cursor = index
        self._unsent: dict[int, None] = {}
        self._dropped: list[int] = []
        self._told_at_call = 0
        self.reset()

    def reset(self) -> None:
        """Begin with a proposer that knows nothing."""
        self._unsent = {n: None for n in self._record.entries if self._is_own(n)}
        self._unsent.update({item.number: None for item in self.ready})
        self._dropped = []

    def _is_own(self, number: int) -> bool:
        return lane_of(number, self._lanes) == self.index

    @property
    def next_number(self) -> int:
        """Smallest number of the lane that is free."""
        while self._cursor in self._record.entries or self._cursor in self._claimed:
            self._cursor += self._lanes
        return self._cursor

    @property
    def claimed(self) -> int:
        """Number of proposals ready or in the making."""
        return len(self._claimed)

    def claim(self) -> int:
        """Take the next number."""
        number = self.next_number
        self._claimed.add(number)
        return number

    def release(self, numbers: Iterable[int]) -> None:
        """Give claimed numbers back."""
        for number in numbers:
            self._claimed.discard(number)
            self._cursor = min(self._cursor, number)

    def changed(self, number: int, finished: bool) -> None:
        """Note that the proposer has to hear of this trial."""
        self._unsent[number] = None
        self.told += finished

    def pop(self) -> Ready:
        """Take the oldest ready proposal; its trial is about to be recorded."""
        item = self.ready.popleft()
        self._claimed.discard(item.number)
        return item

    def drop_stale(self) -> None:
        """Throw away ready proposals that do not know all results; not during a call."""
        stale = [item.number for item in self.ready if item.told < self.told]
        if stale:
            self._dropped += [number for number in stale if number not in self._unsent]
            for number in stale:
                self._unsent.pop(number, None)
            self.ready = deque(item for item in self.ready if item.told >= self.told)
            self.release(stale)

    def begin_call(self) -> tuple[list[TrialRecord], list[int]]:
        """Updates and dropped numbers to send with a call."""
        self.calling = True
        self._told_at_call = self.told
        updates = [replace(self._trial(number)) for number in self._unsent]
        dropped, self._dropped, self._unsent = self._dropped, [], {}
        return updates, dropped

    def end_call(self, numbers: list[int], answer: dict[str, Any] | None) -> None:
        """Take the answer to a call for `numbers`; None when the proposer was lost."""
        self.calling = False
        items = answer["items"] if answer else []
        for number, config, memo in items:
            self.ready.append(Ready(number, config, memo, self._told_at_call))
        self.release(set(numbers) - {number for number, _, _ in items})
        if answer is None:
            self.deaths += 1
            self.reset()
            return
        self.deaths = 0
        if items:
            each = answer["seconds"] / len(items)
            old = each if self.seconds is None else self.seconds
            self.seconds = (1 - _SMOOTHING) * old + _SMOOTHING * each

    def _trial(self, number: int) -> TrialRecord:
        if number in self._record.entries:
            return self._record.entries[number].trial
        item = next(item for item in self.ready if item.number == number)
        return TrialRecord(number, item.config, memo=item.memo)
