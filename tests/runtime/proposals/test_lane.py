"""What the coordinator keeps of one lane."""

from __future__ import annotations

from itertools import islice

import pytest

from raybo.runtime.proposals.lane import Lane
from raybo.runtime.proposals.proposer import Call, Proposals
from raybo.study.journal.record import Record
from raybo.study.trial import TrialRecord


def answer(*numbers: int) -> Proposals:
    trials = [TrialRecord(n, {"x": n}, memo={"memo": n}) for n in numbers]
    return Proposals(trials, 0.5 * len(numbers))


def claim(lane: Lane, n: int) -> list[int]:
    """Take the next `n` free numbers."""
    numbers = list(islice(lane.free_numbers(), n))
    lane.claim(numbers)
    return numbers


def propose(lane: Lane, n: int) -> list[int]:
    """Have `n` trials proposed, and return their numbers."""
    numbers = claim(lane, n)
    lane.begin_call(numbers)
    lane.end_call(numbers, answer(*numbers))
    return numbers


def call(lane: Lane) -> Call:
    """Call the proposer for nothing but the news."""
    made = lane.begin_call([])
    lane.end_call([], answer())
    return made


def start(record: Record, lane: Lane) -> int:
    trial = lane.pop()
    record.apply({"kind": "asked", "number": trial.number, "config": trial.config})
    return trial.number


def finish(record: Record, lane: Lane, number: int) -> None:
    record.apply({"kind": "done", "number": number, "value": 2.0})
    lane.changed(number, finished=True)


def test_numbers_are_those_of_the_lane_and_never_given_twice() -> None:
    record = Record()
    record.apply({"kind": "asked", "number": 4, "config": {}})
    lane = Lane(1, 3, record)
    assert propose(lane, 2) == [1, 7]
    assert [start(record, lane), lane.next_number] == [1, 10]
    assert lane.n_claimed == 1


def test_numbers_that_were_not_proposed_are_free_again() -> None:
    lane = Lane(0, 1, Record())
    numbers = claim(lane, 3)
    lane.begin_call(numbers)
    lane.end_call(numbers, answer(0))
    assert (lane.next_number, lane.n_claimed) == (1, 1)


def test_each_change_is_sent_once() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    propose(lane, 1)
    number = start(record, lane)
    assert call(lane) == Call([], [], [])
    finish(record, lane, number)
    sent = call(lane)
    assert [(t.number, t.state, t.value) for t in sent.updates] == [(0, "done", 2.0)]
    assert sent.dropped == []
    assert call(lane) == Call([], [], [])


def test_a_new_proposer_is_sent_every_trial_also_those_that_are_ready() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    propose(lane, 2)
    start(record, lane)
    numbers = claim(lane, 1)
    lane.begin_call(numbers)
    lane.end_call(numbers, None)
    sent = call(lane)
    assert [(t.number, t.memo) for t in sent.updates] == [(0, {}), (1, {"memo": 1})]
    assert lane.next_number == 2


def test_stale_proposals_are_dropped_and_their_numbers_proposed_again() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    propose(lane, 3)
    number = start(record, lane)
    lane.drop_stale()
    assert lane.ready == [1, 2]
    finish(record, lane, number)
    lane.drop_stale()
    assert (lane.ready, lane.n_claimed, lane.next_number) == ([], 0, 1)
    assert call(lane).dropped == [1, 2]


def test_proposals_made_in_the_place_of_others_are_used_although_another_trial_has_ended() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    propose(lane, 4)
    running = [start(record, lane) for _ in range(3)]
    finish(record, lane, running[0])
    lane.drop_stale()
    assert lane.ready == []
    propose(lane, 1)
    finish(record, lane, running[1])
    lane.drop_stale()
    assert lane.ready == [3]
    start(record, lane)
    propose(lane, 1)
    finish(record, lane, running[2])
    lane.drop_stale()
    assert lane.ready == []


def test_stale_proposals_are_not_sent_to_a_new_proposer() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    propose(lane, 2)
    number = start(record, lane)
    lost = claim(lane, 1)
    lane.begin_call(lost)
    lane.end_call(lost, None)
    finish(record, lane, number)
    lane.drop_stale()
    assert [t.number for t in call(lane).updates] == [0]


def test_times_of_calls_and_of_proposals() -> None:
    """A call that fits a model and makes one proposal does not stand for the others."""
    lane = Lane(0, 1, Record())
    propose(lane, 1)
    assert lane.seconds is lane.call_seconds is None  # the first loads libraries
    for n, seconds in ((1, 0.21), (64, 0.84)):
        numbers = claim(lane, n)
        lane.begin_call(numbers)
        lane.end_call(numbers, Proposals([TrialRecord(k, {"x": k}) for k in numbers], seconds))
    assert lane.seconds == pytest.approx(1.05 / 65)
    assert lane.more_seconds == pytest.approx(0.01)
    assert lane.call_seconds is not None
    numbers = claim(lane, 1)
    lane.begin_call(numbers)
    lane.end_call(numbers, None)  # another proposer loads them again
    before = lane.seconds
    propose(lane, 1)
    assert lane.seconds == before
