"""Audit of a study whose processes are killed: each acknowledged result must be there once.

The audit does not trust the journal alone. Every evaluation logs its start and its end with the
value; every driver logs what its callback received. Evaluations return random values, so a result
that was lost and evaluated again differs from the first one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raybo.study.journal.journal import JOURNAL_FILE, parse_journal
from raybo.study.steps import Steps
from raybo.study.trial import State, Trial

STUDY = "study"
_EVALUATIONS = "evaluations.log"
_RECEIVED = "received.log"
_RESULT = "result.json"

ENDS = ("done", "failed", "stopped_early")  # kinds of events that end a trial

Results = dict[int, tuple[Any, Any]]  # config (its x) and value by number; failed: value None


@dataclass(frozen=True)
class LoggedObjective:
    """An objective that sleeps, returns a random value and logs both."""

    folder: str
    seconds: tuple[float, float] = (0.2, 0.6)  # shortest and longest evaluation
    frozen: float = 0.0  # configs with a smaller x stop their process before anything else
    steps: int = 0  # at which it reports

    def __call__(self, config: Mapping[str, Any]) -> float | Iterator[float]:
        """Return a random value, not a function of the config, or yield some."""
        if config["x"] < self.frozen:
            os.kill(os.getpid(), signal.SIGSTOP)
        return self._train(config["x"]) if self.steps else self._evaluate(config["x"])

    def _train(self, x: float) -> Iterator[float]:
        return (value for value, _ in self.resumable({"x": x}))

    def resumable(
        self, config: Mapping[str, Any], resume: str | None = None
    ) -> Iterator[tuple[float, str]]:
        """Yield random values and checkpoints, and log after which steps it went on."""
        rng, log = random.SystemRandom(), Path(self.folder) / _EVALUATIONS
        who = {"pid": os.getpid(), "x": config["x"]}
        begin = int(resume or 0)
        append_line(log, {"what": "start", **who, "begin": begin})
        for step in range(begin + 1, self.steps + 1):
            time.sleep(rng.uniform(*self.seconds) / self.steps)
            value = rng.random()
            if step == self.steps:
                append_line(log, {"what": "end", **who, "value": value})
            yield value, str(step)
            append_line(log, {"what": "start", **who, "step": step})

    def _evaluate(self, x: float) -> float:
        rng = random.SystemRandom()
        log, pid = Path(self.folder) / _EVALUATIONS, os.getpid()
        value = rng.random()
        append_line(log, {"what": "start", "pid": pid, "x": x})
        time.sleep(rng.uniform(*self.seconds))
        append_line(log, {"what": "end", "pid": pid, "x": x, "value": value})
        return value


@dataclass(frozen=True)
class LogCallback:
    """A callback that logs the trials it receives."""

    folder: Path

    def on_trial(self, trial: Trial) -> None:
        """Log a trial that was acknowledged."""
        x, value = trial.config["x"], trial.value
        line = {"driver": os.getpid(), "number": trial.number, "x": x, "value": value}
        append_line(self.folder / _RECEIVED, line)


def append_line(path: Path, item: Mapping[str, Any]) -> None:
    """Add a line in one write, so that processes can share a log.

    It starts with a newline: a line that a killed process left unfinished spoils no other.
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, f"\n{json.dumps(item)}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a log."""
    lines = []
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        if line.endswith(b"}"):
            lines.append(json.loads(line))
    return lines


def write_result(folder: Path, trials: list[Trial]) -> None:
    """Write what a driver returned to a file."""
    items = [[t.number, t.config["x"], t.value] for t in trials if t.state is not State.PENDING]
    (folder / _RESULT).write_text(json.dumps(items))


def evaluating(folder: Path) -> list[int]:
    """Return the processes whose last line is the start of an evaluation; some may be dead."""
    last = {line["pid"]: line["what"] for line in read_lines(folder / _EVALUATIONS)}
    return [pid for pid, what in last.items() if what == "start"]


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the study's journal, read from its bytes."""
    path = folder / STUDY / JOURNAL_FILE
    return parse_journal(path.read_bytes(), str(path)).events if path.exists() else []


def results_of(events: list[dict[str, Any]]) -> Results:
    """Return the results that a journal holds; of several for one trial, the first.

    Paused trials, which may go on, have none.
    """
    configs = {e["number"]: e["config"]["x"] for e in events if e["kind"] == "asked"}
    results: Results = {}
    for event in events:
        if event["kind"] in ENDS:
            number = event["number"]
            results.setdefault(number, (configs[number], event.get("value")))
    return results


def paused_in(events: list[dict[str, Any]]) -> Results:
    """Return the trials that are paused after the last event; they have no value."""
    configs = {e["number"]: e["config"]["x"] for e in events if e["kind"] == "asked"}
    last = {e["number"]: e["kind"] for e in events if e["kind"] in (*ENDS, "paused", "promoted")}
    return {n: (configs[n], None) for n, kind in last.items() if kind == "paused"}


@dataclass(frozen=True)
class Findings:
    """Numbers of trials, and the numbers of those with a fault."""

    done: int  # trials with a value
    failed: int
    evaluations: int  # started, those of killed workers included
    lost: set[int] = field(default_factory=set)
    twice: set[int] = field(default_factory=set)
    stuck: set[int] = field(default_factory=set)


def examine(folder: Path, trials: int | None, seen: Results, all_received: bool) -> Findings:
    """Return the faults of a study of `trials` trials that has ended.

    Parameters
    ----------
    folder
        Folder of the study and of the logs.
    trials
        Number of trials it should have; None: those that were asked.
    seen
        Results that were read in the journal while the study ran.
    all_received
        Whether one driver lived to the end, and so received every result.

    Returns
    -------
    Findings
        `lost`: results that were received or seen and are missing from the journal or differ in
        it, that no evaluation returned, or that the driver did not receive, and trials of which
        a rung or a checkpoint was forgotten. `twice`: trials that
        ended twice, were received twice, or share a config or an evaluation with another.
        `stuck`: trials that have not ended.
    """
    events, evaluations = read_events(folder), read_lines(folder / _EVALUATIONS)
    final = {**results_of(events), **paused_in(events)}
    asked = {event["number"] for event in events if event["kind"] == "asked"}
    received = [(h["number"], (h["x"], h["value"])) for h in read_lines(folder / _RECEIVED)]
    returned = {(e["x"], e["value"]) for e in evaluations if e["what"] == "end"}
    lost = {number for number, result in [*received, *seen.items()] if final.get(number) != result}
    lost |= {n for n, result in final.items() if result[1] is not None and result not in returned}
    lost |= _forgotten_rungs(events, evaluations) | _forgotten_checkpoints(events, evaluations)
    if all_received:
        lost |= final.keys() - {number for number, _ in received}
        lost |= _differing(folder / _RESULT, final)
    return Findings(
        done=sum(value is not None for _, value in final.values()),
        failed=sum(event["kind"] == "failed" for event in events),
        evaluations=sum(e["what"] == "start" and "step" not in e for e in evaluations),
        lost=lost,
        twice=_doubled(events, [number for number, _ in received], final),
        stuck=(asked if trials is None else set(range(trials))) - final.keys(),
    )


def _forgotten_rungs(events: list[dict[str, Any]], evaluations: list[dict[str, Any]]) -> set[int]:
    """Return the trials that went on from a rung which the journal does not hold."""
    sessions = [e["settings"] for e in events if e["kind"] == "session"]
    settings: dict[str, Any] = sessions[0] if sessions else {}
    rungs = Steps(settings.get("max_steps"), settings.get("stop_early", False)).rungs
    numbers = {e["config"]["x"]: e["number"] for e in events if e["kind"] == "asked"}
    reports = (e for e in events if e["kind"] == "report")
    held = {(e["number"], step) for e in reports for step, _ in e["steps"]}
    passed = {(numbers[e["x"]], e["step"]) for e in evaluations if e.get("step") in rungs}
    return {number for number, step in passed - held}


def _forgotten_checkpoints(
    events: list[dict[str, Any]], evaluations: list[dict[str, Any]]
) -> set[int]:
    """Return the trials that began before a step from which they had gone on with a checkpoint."""
    numbers: dict[float, int] = {
        e["config"]["x"]: e["number"] for e in events if e["kind"] == "asked"
    }
    kept: set[int] = {e["number"] for e in events if "checkpoint" in e}
    passed = dict.fromkeys(kept, 0)
    found: set[int] = set()
    for line in evaluations:
        number = numbers.get(line["x"], -1)  # -1: it was not in the journal when all was killed
        if number in kept:
            if line.get("begin", passed[number]) < passed[number]:
                found.add(number)
            passed[number] = max(passed[number], line.get("step", 0))
    return found


def _differing(path: Path, final: Results) -> set[int]:
    """Return the trials that differ between the returned result and the journal."""
    items = json.loads(path.read_text()) if path.exists() else []
    returned = {number: (x, value) for number, x, value in items}
    return {n for n in final.keys() | returned.keys() if final.get(n) != returned.get(n)}


def _doubled(events: list[dict[str, Any]], received: list[int], final: Results) -> set[int]:
    ends = Counter(e["number"] for e in events if e["kind"] in ENDS)
    configs = Counter(x for x, _ in final.values())
    values = Counter(value for _, value in final.values() if value is not None)
    counts = (*ends.items(), *Counter(received).items())
    shared = {n for n, (x, value) in final.items() if configs[x] > 1 or values[value] > 1}
    return {number for number, n in counts if n > 1} | shared
