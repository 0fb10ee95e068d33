"""What the coordinator knows about a proposer."""

from __future__ import annotations

from typing import Any

from raybo.runtime.proposals.lane import Lane
from raybo.study.journal.record import Record


def answer(*numbers: int) -> dict[str, Any]:
    items = [(n, {"x": n}, {"memo": n}) for n in numbers]
    return {"items": items, "seconds": 0.5 * len(numbers), "error": None}


def call(lane: Lane, n: int) -> list[int]:
    numbers = [lane.claim() for _ in range(n)]
    lane.begin_call()
    lane.end_call(numbers, answer(*numbers))
    return numbers


def ask(record: Record, lane: Lane) -> int:
    item = lane.pop()
    record.apply({"kind": "asked", "number": item.number, "config": item.config})
    return item.number


def test_numbers_are_those_of_the_lane_and_never_given_twice() -> None:
    record = Record()
    record.apply({"kind": "asked", "number": 4, "config": {}})
    lane = Lane(1, 3, record)
    assert call(lane, 2) == [1, 7]
    assert [ask(record, lane), lane.next_number] == [1, 10]
    assert lane.claimed == 1


def test_numbers_that_were_not_proposed_are_free_again() -> None:
    lane = Lane(0, 1, Record())
    numbers = [lane.claim() for _ in range(3)]
    lane.begin_call()
    lane.end_call(numbers, answer(0))
    assert (lane.next_number, lane.claimed) == (1, 1)


def test_each_change_is_sent_once() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    call(lane, 1)
    number = ask(record, lane)
    assert lane.begin_call() == ([], [])
    lane.end_call([], answer())
    record.apply({"kind": "done", "number": number, "value": 2.0})
    lane.changed(number, finished=True)
    updates, dropped = lane.begin_call()
    assert [(u.number, u.state, u.value) for u in updates] == [(0, "done", 2.0)]
    assert dropped == []
    lane.end_call([], answer())
    assert lane.begin_call() == ([], [])


def test_a_new_proposer_is_told_everything_also_what_is_ready() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    call(lane, 2)
    ask(record, lane)
    numbers = [lane.claim()]
    lane.begin_call()
    lane.end_call(numbers, None)
    assert lane.deaths == 1
    updates, _ = lane.begin_call()
    assert [u.number for u in updates] == [0, 1]
    assert updates[1].memo == {"memo": 1}
    assert lane.next_number == 2


def test_stale_proposals_are_dropped_and_their_numbers_proposed_again() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    call(lane, 3)
    number = ask(record, lane)
    lane.drop_stale()
    assert len(lane.ready) == 2
    record.apply({"kind": "done", "number": number, "value": 1.0})
    lane.changed(number, finished=True)
    lane.drop_stale()
    assert (len(lane.ready), lane.claimed, lane.next_number) == (0, 0, 1)
    assert lane.begin_call()[1] == [1, 2]


def test_stale_proposals_that_a_new_proposer_never_saw_are_not_sent_at_all() -> None:
    record = Record()
    lane = Lane(0, 1, record)
    call(lane, 2)
    number = ask(record, lane)
    lane.reset()
    record.apply({"kind": "done", "number": number, "value": 1.0})
    lane.changed(number, finished=True)
    lane.drop_stale()
    updates, dropped = lane.begin_call()
    assert ([u.number for u in updates], dropped) == ([0], [])
