"""The state of a study, computed from its events."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

from raybo.errors import JournalError
from raybo.study.journal.journal import Journal, read_journal
from raybo.study.journal.record import Record
from raybo.study.outcome import best_record, list_studies

EVENTS: list[dict[str, object]] = [
    {"kind": "header", "name": "s"},
    {"kind": "session", "id": "a", "time": 100.0},
    {"kind": "given", "number": 0, "config": {"x": 9}, "value": 2.0, "finished": 100.0},
    {"kind": "points", "configs": [{"x": 1}, {"x": 2}]},
    {"kind": "asked", "number": 1, "config": {"x": 1}, "source": "point"},
    {"kind": "asked", "number": 2, "config": {"x": 5}, "memo": {"z": [1]}},
    {"kind": "asked", "number": 3, "config": {"x": 6}},
    {"kind": "retry", "number": 1, "cause": "crash", "reason": "died"},
    {"kind": "retry", "number": 2, "cause": "lost", "reason": "node", "lost": True},
    {
        "kind": "done",
        "number": 2,
        "value": 1.5,
        "extra": {"a": 1},
        "attempts": 2,
        "finished": 107.0,
    },
    {"kind": "failed", "number": 1, "reason": "no", "cause": "crash", "attempts": 2},
    {"kind": "interrupted", "numbers": [3]},
    {"kind": "session", "id": "b", "time": 200.0},
    {"kind": "stopped", "reason": "enough", "outcome": "max_trials", "seconds": 3.0},
]


def record_of(events: list[dict[str, object]], record: Record | None = None) -> Record:
    record = record or Record()
    for event in events:
        record.apply(event)
    return record


PAUSED: list[dict[str, object]] = [
    {"kind": "session", "id": "a", "time": 100.0},
    {"kind": "asked", "number": 0, "config": {"x": 1}},
    {"kind": "report", "number": 0, "steps": [[1, 2.0], [2, 1.0]], "checkpoint": [2, "a.pt"]},
    {"kind": "paused", "number": 0, "extra": {"a": 1}, "attempts": 1, "finished": 107.0},
]


def test_a_paused_trial_is_stopped_early_and_may_go_on() -> None:
    record = record_of(PAUSED)
    (trial,) = record.trials
    assert (trial.state, trial.extra, trial.attempts) == ("stopped", {"a": 1}, 1)
    assert trial.checkpoint == (2, "a.pt")
    assert (record.paused, record.order, record.n_ended) == ({0: True}, [], 1)
    assert record.latest == 107.0
    record_of([{"kind": "session", "id": "b", "time": 200.0}], record)
    assert record.paused == {0: False}
    record_of([{"kind": "promoted", "number": 0}], record)
    assert (record.pending, record.paused, record.n_ended) == ([0], {}, 0)
    assert (trial.state, trial.curve, trial.finished) == ("pending", {1: 2.0, 2: 1.0}, None)
    record_of([{"kind": "done", "number": 0, "value": 0.5, "attempts": 2}], record)
    assert (record.order, record.n_ended, trial.attempts) == ([0], 1, 2)


def test_only_a_paused_trial_is_promoted() -> None:
    for events in (PAUSED[:-1], [*PAUSED, {"kind": "promoted", "number": 0}], []):
        with pytest.raises(JournalError, match="trial 0 was promoted, but not paused"):
            record_of([*events, {"kind": "promoted", "number": 0}])


@pytest.mark.parametrize(
    ("outcome", "waits"), [("max_trials", False), ("exhausted", False), ("interrupted", True)]
)
def test_a_session_that_was_cut_short_may_have_left_trials_to_promote(
    outcome: str, waits: bool
) -> None:
    stopped: dict[str, object] = {"kind": "stopped", "reason": "", "outcome": outcome}
    assert record_of(PAUSED).may_promote
    assert record_of([*PAUSED, stopped]).may_promote == waits
    assert not record_of([*PAUSED[:-1], stopped]).may_promote


def test_events_become_trials() -> None:
    record = record_of(EVENTS)
    assert [t.state for t in record.trials] == ["done", "failed", "done", "pending"]
    assert [t.attempts for t in record.trials] == [0, 2, 2, 1]
    assert record.trials[2].extra == {"a": 1}
    assert record.trials[2].memo == {"z": [1]}
    assert (record.trials[1].reason, record.entries[1].errors) == ("no", 1)
    assert (record.order, record.given, record.pending) == ([0, 2, 1], [0], [3])
    assert record.points == [{"x": 2}]
    assert record.before == 3
    assert record.seconds == 7.0 + 3.0  # the killed session up to its last result
    assert record.stopped == {"reason": "enough", "outcome": "max_trials", "seconds": 3.0}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"kind": "header"}, "a second header"),
        ({"kind": "asked", "number": 2, "config": {}}, "trial 2 was asked twice"),
        ({"kind": "done", "number": 2, "value": 1.0}, "trial 2, which is done already"),
        ({"kind": "failed", "number": 7, "reason": ""}, "trial 7, which was never asked"),
        ({"kind": "magic"}, "unknown kind 'magic'"),
        ({}, "unknown kind None"),
    ],
)
def test_events_that_contradict_each_other_are_refused(
    event: dict[str, object], message: str
) -> None:
    with pytest.raises(JournalError, match=message):
        record_of(EVENTS).apply(event)


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "asked", "number": 1},
        {"kind": "asked", "number": "1", "config": {}},
        {"kind": "done", "number": 0, "value": "abc"},
        {"kind": "done", "number": 0, "value": 1.0, "started": True, "finished": 2.0},
        {"kind": "done", "number": 0, "value": 1.0, "extra": []},
        {"kind": "failed", "number": 0, "reason": 7},
        {"kind": "done", "number": 0, "value": 10**400},
        {"kind": "session", "id": "a", "time": "x"},
        {"kind": "session", "id": "a", "time": 1.0, "settings": {"max_trials": {}}},
        {"kind": "session", "id": "a", "time": 1.0, "resume_hint": 3},
        {"kind": "stopped", "reason": ["x"], "outcome": "error"},
        {"kind": "header", "name": "s", "mode": "up"},
        {"kind": "header", "name": "s", "created": "x"},
        {"kind": "header", "name": "s", "constraints": {"a": [None]}},
        {"kind": "header", "name": "s", "method": {"name": 3}},
    ],
)
def test_a_malformed_event_is_refused_with_its_line(
    tmp_path: Path, event: dict[str, object]
) -> None:
    journal = Journal(tmp_path)
    first = [] if event["kind"] == "header" else [{"kind": "asked", "number": 0, "config": {}}]
    journal.append(*first, event)
    journal.close()
    where = f"{journal.path}:{len(first) + 1}: "
    with pytest.raises(JournalError, match=re.escape(where)):
        Record.from_contents(read_journal(tmp_path))


def test_a_journal_leads_to_the_record_of_its_events(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(*EVENTS)
    journal.close()
    assert Record.from_contents(read_journal(tmp_path)) == record_of(EVENTS)


@pytest.mark.parametrize(
    "text",
    [b'{"kind":"done","number":0,"value":}', b'{"kind":"points"},"event":{}', b'{"kind":"\xff"}'],
)
def test_a_line_that_is_not_json_is_refused_though_its_checksum_is_right(
    tmp_path: Path, text: bytes
) -> None:
    journal = Journal(tmp_path)
    journal.append({"kind": "points", "configs": []})
    journal.close()
    rest = b'"v":1,"seq":1,"epoch":1,"event":%s}' % text
    with open(journal.path, "ab") as file:
        file.write(b'{"crc":"%08x",%s\n' % (zlib.crc32(rest), rest))
    with pytest.raises(JournalError, match=r"journal\.jsonl:2: not JSON"):
        Record.from_contents(read_journal(tmp_path))


def test_a_value_without_what_the_header_bounds_is_refused() -> None:
    record = Record()
    record.apply({"kind": "header", "name": "s", "constraints": {"a": [None, 5.0]}})
    for number in (0, 1, 2):
        record.apply({"kind": "asked", "number": number, "config": {}})
    record.apply({"kind": "done", "number": 0, "value": 1.0, "extra": {"a": 7}})
    assert best_record(record) is None
    for extra in ({}, {"a": []}):
        with pytest.raises(JournalError, match="'a'"):
            record.apply({"kind": "done", "number": 1, "value": 1.0, "extra": extra})
    record.apply({"kind": "done", "number": 2, "value": 2.0, "extra": {"a": 5}})
    assert best_record(record) is record.entries[2].trial


def test_one_bad_study_does_not_hide_the_others(tmp_path: Path) -> None:
    space, method = {"x": {"type": "float", "low": 0, "high": 1}}, {"name": "bo", "options": {}}
    for name, bounds in (("good", [None, 1.0]), ("bad", [None])):
        journal = Journal(tmp_path / name)
        header = {"kind": "header", "name": name, "space": space, "method": method}
        journal.append({**header, "constraints": {"a": bounds}})
        journal.close()
    assert {s.name: s.state for s in list_studies(tmp_path)} == {
        "bad": "damaged",
        "good": "stopped",
    }
