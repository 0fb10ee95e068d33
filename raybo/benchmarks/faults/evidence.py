"""Evidence about a study under attack: what was evaluated and handed over, and what is left of it.

It is gathered beside the journal, by others than its writer. Every evaluation notes its beginning
and its end, with its result; every driver notes what its callback was handed. Evaluations return
random values, so that a result which was lost and evaluated again is told from the first one.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raybo.study.journal.journal import JOURNAL_FILE, parse_journal
from raybo.study.trial import State, Trial

STUDY = "study"
_EVALUATIONS = "evaluations.log"
_HANDED = "handed.log"
_RESULT = "result.json"

Results = dict[int, tuple[Any, Any]]  # config (its x) and value by number; failed: value None


@dataclass(frozen=True)
class Witness:
    """An objective that takes some time and notes, in a log of its own, what it was asked."""

    folder: str
    seconds: tuple[float, float] = (0.2, 0.6)  # an evaluation takes something between

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Random value, not a function of the config."""
        rng = random.SystemRandom()
        log, pid, x = Path(self.folder) / _EVALUATIONS, os.getpid(), config["x"]
        value = rng.random()
        append_line(log, {"what": "begin", "pid": pid, "x": x})
        time.sleep(rng.uniform(*self.seconds))
        append_line(log, {"what": "end", "pid": pid, "x": x, "value": value})
        return value


@dataclass(frozen=True)
class Receipt:
    """A callback that notes what it was handed."""

    folder: Path

    def on_trial(self, trial: Trial) -> None:
        """Note a trial that was acknowledged."""
        x, value = trial.config["x"], trial.value
        line = {"driver": os.getpid(), "number": trial.number, "x": x, "value": value}
        append_line(self.folder / _HANDED, line)


def append_line(path: Path, item: Mapping[str, Any]) -> None:
    """Add a line in one write, so that processes can share a log.

    Begun with a newline: what a killed process left half-written spoils no other line.
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, f"\n{json.dumps(item)}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines of a log."""
    lines = []
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        if line.endswith(b"}"):
            lines.append(json.loads(line))
    return lines


def write_result(folder: Path, trials: list[Trial]) -> None:
    """Keep what a driver returned."""
    items = [[t.number, t.config["x"], t.value] for t in trials if t.state is not State.PENDING]
    (folder / _RESULT).write_text(json.dumps(items))


def evaluating(folder: Path) -> list[int]:
    """Processes whose last note is the beginning of an evaluation; some may be dead."""
    last = {line["pid"]: line["what"] for line in read_lines(folder / _EVALUATIONS)}
    return [pid for pid, what in last.items() if what == "begin"]


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Events of the study's journal, from its own bytes: no snapshot is used."""
    path = folder / STUDY / JOURNAL_FILE
    return parse_journal(path.read_bytes(), str(path)).events if path.exists() else []


def results_of(events: list[dict[str, Any]]) -> Results:
    """Results that a journal holds; of several for one trial, the first."""
    configs = {e["number"]: e["config"]["x"] for e in events if e["kind"] == "asked"}
    results: Results = {}
    for event in events:
        if event["kind"] in ("done", "failed"):
            number = event["number"]
            results.setdefault(number, (configs[number], event.get("value")))
    return results


@dataclass(frozen=True)
class Findings:
    """What became of a study's results."""

    done: int  # trials with a value
    failed: int
    evaluations: int  # begun, those of killed workers included
    lost: set[int] = field(default_factory=set)
    twice: set[int] = field(default_factory=set)
    stuck: set[int] = field(default_factory=set)


def examine(folder: Path, trials: int, seen: Results, all_handed: bool) -> Findings:
    """Findings about a study of `trials` trials that has ended.

    Parameters
    ----------
    folder
        Holds the study and the logs about it.
    trials
        Its budget.
    seen
        Results that somebody read in the journal while the study ran.
    all_handed
        Whether one driver followed it to the end, which then was handed every result.

    Returns
    -------
    Findings
        `lost`: results that were handed over or seen in the journal and are not in it now as they
        were, that no evaluation gave, or that the driver was not told of. `twice`: trials that
        ended twice, were handed over twice, or share a config or an evaluation with
        another. `stuck`: trials that have not ended.
    """
    events, evaluations = read_events(folder), read_lines(folder / _EVALUATIONS)
    final = results_of(events)
    handed = [(h["number"], (h["x"], h["value"])) for h in read_lines(folder / _HANDED)]
    given = {(e["x"], e["value"]) for e in evaluations if e["what"] == "end"}
    lost = {number for number, result in [*handed, *seen.items()] if final.get(number) != result}
    lost |= {n for n, result in final.items() if result[1] is not None and result not in given}
    if all_handed:
        lost |= final.keys() - {number for number, _ in handed}
        lost |= _differing(folder / _RESULT, final)
    return Findings(
        done=sum(value is not None for _, value in final.values()),
        failed=sum(value is None for _, value in final.values()),
        evaluations=sum(e["what"] == "begin" for e in evaluations),
        lost=lost,
        twice=_doubled(events, [number for number, _ in handed], final),
        stuck=set(range(trials)) - final.keys(),
    )


def _differing(path: Path, final: Results) -> set[int]:
    """Trials of the returned result that are not as in the journal, or missing."""
    items = json.loads(path.read_text()) if path.exists() else []
    returned = {number: (x, value) for number, x, value in items}
    return {n for n in final.keys() | returned.keys() if final.get(n) != returned.get(n)}


def _doubled(events: list[dict[str, Any]], handed: list[int], final: Results) -> set[int]:
    ends = Counter(e["number"] for e in events if e["kind"] in ("done", "failed"))
    configs = Counter(x for x, _ in final.values())
    values = Counter(value for _, value in final.values() if value is not None)
    counts = (*ends.items(), *Counter(handed).items())
    shared = {n for n, (x, value) in final.items() if configs[x] > 1 or values[value] > 1}
    return {number for number, n in counts if n > 1} | shared
