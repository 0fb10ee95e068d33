"""A short journal beside a long one, which leads to the same record sooner.

A journal has at least two lines for every trial. The short one holds many trials in a line, each
of their fields as a column; of their configs and memos, which may be long, it says in which bytes
of the journal they are. It begins with the number of bytes of the journal for which it stands, and
their CRC32; what follows them in the journal is read as always.

The journal itself is never changed, and all its bytes are verified all the same. The short journal
is made of it, written beside and renamed: one that is missing, cut, damaged or of another journal
is not used, and anybody may remove it.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import Any

from raybo.errors import MALFORMED, JournalError, RayboError
from raybo.study.journal.bulk import in_bulk
from raybo.study.journal.journal import JOURNAL_FILE, Contents, Event, encode_line, parse_journal
from raybo.study.journal.record import Entry, Record
from raybo.study.objective import finite_number
from raybo.study.trial import Checkpoint, State, TrialRecord

logger = logging.getLogger(__name__)

COMPACT_FILE = "journal.compact.jsonl"
_FORMAT = 1
_TOGETHER = 1000  # trials of a line

_Types = Mapping[str, set[type]]
_NUMBER: set[type] = {int, float, NoneType}
_TEXT: set[type] = {str, NoneType}
_TRIAL: _Types = {"number": {int}, "value": _NUMBER, "state": {str}, "reason": _TEXT,
                  "cause": _TEXT, "attempts": {int}, "started": _NUMBER, "finished": _NUMBER,
                  "extra": {dict}, "curve": {list}, "checkpoint": {list, NoneType}}  # fmt: skip
_ENTRY: _Types = {"source": {str}, "errors": {int}, "losses": {int}, "kind": {str},
                  "traceback": {str}}  # fmt: skip
_TOTALS: _Types = {"before": {int}, "seconds": {int, float}, "latest": {int, float}}
# What JSON holds in another form.
_TO_JSON: Mapping[str, Callable[[Any], Any]] = {"curve": lambda curve: [*curve.items()]}
_FROM_JSON: Mapping[str, Callable[[Any], Any]] = {
    "state": State,
    "curve": lambda pairs: {int(step): float(value) for step, value in pairs},
    "checkpoint": lambda pair: pair and Checkpoint(int(pair[0]), str(pair[1])),
}


def read_record(folder: Path) -> Record:
    """Return the record of the study in `folder`; needs no lock, writes nothing."""
    return _read(folder)[0]


def compact(folder: Path) -> None:
    """Write the short journal of the one in `folder`; where that fails, readers take longer."""
    target = folder / COMPACT_FILE
    beside = target.with_name(f"{target.name}.new")  # as after a kill, which is overwritten
    try:
        record, contents, data = _read(folder)
        first = {"compact": _FORMAT, "size": contents.size, "seq": contents.next_seq,
                 "epoch": contents.epoch,
                 "journal": zlib.crc32(memoryview(data)[: contents.size])}  # fmt: skip
        events = chain([first], _events(record, data))
        with open(beside, "wb") as file:
            file.writelines(encode_line(event, seq, 0) for seq, event in enumerate(events))
        beside.replace(target)
    except (OSError, MemoryError, RayboError, *MALFORMED) as error:
        logger.warning("%s: could not be written: %s", target, error)
        beside.unlink(missing_ok=True)


@in_bulk
def _read(folder: Path) -> tuple[Record, Contents, bytes]:
    """Record of a journal, what it holds after the short one, and its bytes."""
    short = _bytes(folder / COMPACT_FILE)  # first: the journal may grow, and be compacted again
    data, label = _bytes(folder / JOURNAL_FILE), str(folder / JOURNAL_FILE)
    try:
        return *_from_short(short, data, label), data
    except (RayboError, *MALFORMED):
        contents = parse_journal(data, label)
        return Record.from_contents(contents), contents, data


def _from_short(short: bytes, data: bytes, label: str) -> tuple[Record, Contents]:
    """Record of a journal of the bytes `data`, by the bytes of a short one.

    Raises
    ------
    RayboError, or one of MALFORMED
        When it does not stand for the beginning of the journal.
    """
    events = iter(parse_journal(short, COMPACT_FILE).events)
    first = next(events, {})
    size = first["size"]
    if first["compact"] != _FORMAT or first["journal"] != zlib.crc32(memoryview(data)[:size]):
        raise JournalError("the short journal is of another journal")
    record, last = Record(), None
    for event in events:
        last = event.get("kind")
        if last == "trials":
            _add_trials(record, event, data)
        elif last == "totals":
            _set_totals(record, event)
        else:
            record.apply(event)
    if last != "totals":
        raise JournalError("the short journal is cut")
    contents = parse_journal(data, label, size, first["seq"], first["epoch"])
    record.follow(contents)
    return record, contents


def _events(record: Record, data: bytes) -> Iterator[Event]:
    """Yield the events of a short journal, the last of them with the totals."""
    if record.header:
        yield {"kind": "header", **record.header}
    if record.session:
        yield {"kind": "session", **record.session}
    entries, after = iter(record.entries.values()), 0
    while some := [*islice(entries, _TOGETHER)]:
        trials = [entry.trial for entry in some]
        asked: list[Any] = []
        for trial in trials:
            place = _place(trial, data, after)
            asked.append(place or {"config": trial.config, "memo": trial.memo})
            after = place[1] if place else after
        yield {"kind": "trials", "asked": asked, "trial": _columns(trials, _TRIAL),
               "entry": _columns(some, _ENTRY)}  # fmt: skip
    if record.points:
        yield {"kind": "points", "configs": record.points}
    if record.stopped is not None:
        yield {"kind": "stopped", **record.stopped}
    yield {"kind": "totals", "order": record.order, "given": record.given,
           "paused": [*record.paused.items()],
           **{name: getattr(record, name) for name in _TOTALS}}  # fmt: skip


def _place(trial: TrialRecord, data: bytes, after: int) -> tuple[int, int] | None:
    """First and last byte of its text, after that of the trial before; None if it was decoded."""
    if trial.text is None:
        return None
    text = trial.text.encode()
    begin = data.find(text, after)
    return None if begin < 0 else (begin, begin + len(text))


def _columns(items: Sequence[Any], names: _Types) -> dict[str, list[Any]]:
    """Fields of trials, or of entries, without those in which all are new."""
    new = vars(TrialRecord(-1, None)) | vars(Entry(TrialRecord(-1, None)))
    columns = {name: [getattr(item, name) for item in items] for name in names}
    return {
        name: [*map(_TO_JSON[name], column)] if name in _TO_JSON else column
        for name, column in columns.items()
        if column.count(new[name]) < len(column)
    }


def _add_trials(record: Record, event: Event, data: bytes) -> None:
    numbers, asked = event["trial"]["number"], event["asked"]
    trials = [_trial(n, found, data) for n, found in zip(numbers, asked, strict=True)]
    entries = [Entry(trial) for trial in trials]
    _fill(trials, event["trial"], _TRIAL)
    _fill(entries, event["entry"], _ENTRY)
    for trial in trials:
        if trial.value is not None:
            finite_number(trial.value, "the value is")
            record.goal.excess(trial.extra)  # refuses what is bounded and no number
    record.entries |= zip(numbers, entries, strict=True)


def _trial(number: int, asked: Any, data: bytes) -> TrialRecord:
    if isinstance(asked, dict):
        _check([asked["memo"]], {dict})
        return TrialRecord(number, asked["config"], memo=asked["memo"])
    begin, end = asked
    return TrialRecord.unread(number, data[begin:end].decode())


def _fill(items: Sequence[Any], columns: Mapping[str, list[Any]], names: _Types) -> None:
    """Set the fields of trials, or of entries."""
    for name, column in columns.items():
        _check(column, names[name])
        read = _FROM_JSON.get(name)
        for item, value in zip(items, column if read is None else map(read, column), strict=True):
            setattr(item, name, value)


def _set_totals(record: Record, event: Event) -> None:
    for name, types in _TOTALS.items():
        _check([event[name]], types)
        setattr(record, name, event[name])
    record.order, record.given, record.paused = (
        event["order"],
        event["given"],
        dict(event["paused"]),
    )
    _check(record.paused.values(), {bool})
    for numbers in (record.order, record.given, record.paused):
        if not record.entries.keys() >= set(numbers):
            raise JournalError("the short journal counts trials that it does not hold")


def _check(values: Any, types: set[type]) -> None:
    if not {*map(type, values)} <= types:
        raise TypeError(f"values are of other types than {types}")


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
