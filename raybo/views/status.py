"""Show the status of studies as rich tables and JSON, read from their journals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from textwrap import indent
from typing import Any

from rich.table import Table
from rich.text import Text

from raybo.space.definition import space_from_definition
from raybo.study.journal.record import Record
from raybo.study.journal.storage import open_store, slug
from raybo.study.outcome import Outcome, StudySummary, best_record, load_record, summarize
from raybo.study.trial import State, TrialRecord
from raybo.views.text import (
    EXACT_COORDINATES,
    config_text,
    method_text,
    number,
    printable,
    python_text,
    stopped_text,
)

_REASONS = 5  # most frequent failures that are shown
_STYLES = {"running": "cyan", "finished": "green", "damaged": "red", "error": "red"}
_FINISHED = ("max_trials", "max_seconds", "target", "exhausted", "finished")


def status_of(name: str, storage: str) -> dict[str, Any]:
    """Return facts about a study, as JSON."""
    record, store = load_record(name, storage), open_store(storage, name)
    header, settings = record.header, record.session.get("settings", {})
    summary, best = summarize(record, store, slug(name)), best_record(record)
    running = summary.state == "running"
    trials = (entry.trial for entry in record.entries.values())
    reasons = Counter(t.reason for t in trials if t.state is State.FAILED)
    stopped = record.stopped or {"reason": "cut off: resume it"}
    return {
        "name": summary.name,
        "state": summary.state,
        "reason": "" if running else stopped.get("reason", ""),
        "done": summary.done,
        "failed": summary.failed,
        "stopped": summary.stopped,
        "paused": summary.paused,
        "pending": summary.pending,
        "max_trials": settings.get("max_trials"),
        "workers": settings.get("workers"),
        "seconds": _seconds(record, running),
        "mode": summary.mode,
        "metric": header.get("metric"),
        "method": header["method"],
        "seed": header.get("seed"),
        "objective": header.get("objective"),
        "created": summary.created,
        "best_value": summary.best_value,
        "best_number": None if best is None else best.number,
        "best_config": None if best is None else _config(best, header["space"]),
        "failures": dict(reasons.most_common(_REASONS)),
        "location": store.location,
        "resume_hint": record.session.get("resume_hint", ""),
    }


def status_table(facts: Mapping[str, Any]) -> Table:
    """Return the facts of `status_of` as a table."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    limit = f" of {facts['max_trials']}" if facts["max_trials"] else ""
    table.add_row("study", _cell(facts["name"], "bold"))
    state = _state(facts["state"]).append_text(_cell(f"  {facts['reason']}", "dim"))
    table.add_row("state", state)
    ended = facts["done"] + facts["failed"] + facts["stopped"]
    counts = f"{facts['done']} done, {facts['failed']} failed, {facts['pending']} unfinished"
    if facts["stopped"]:
        counts += f", {stopped_text(facts['stopped'], facts['paused'])}"
    table.add_row("trials", f"{ended}{limit}  ({counts})")
    table.add_row("time", f"{facts['seconds']:,.0f} s, started {_date(facts['created'])}")
    table.add_row("method", _cell(method_text(facts["method"])))
    goal = f"{facts['mode']}imise {facts['metric'] or ''}"
    table.add_row("goal", _cell(f"{goal}  {facts['objective'] or ''}"))
    if facts["best_value"] is not None:
        table.add_row("best", f"{facts['best_value']:.8g}  trial {facts['best_number']}")
        table.add_row("", Text(indent(config_text(facts["best_config"]), "    ")))
    for reason, count in facts["failures"].items():
        table.add_row("failed", _cell(f"{count} x {reason}", "red"))
    table.add_row("journal", _cell(facts["location"]))
    unfinished = ended < (facts["max_trials"] or 0) and facts["state"] != "running"
    if facts["resume_hint"] and unfinished:
        table.add_row("go on", _cell(facts["resume_hint"]))
    return table


def study_table(studies: Iterable[StudySummary]) -> Table:
    """Return the studies as a table, one row each."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("name", "method", "state"):
        table.add_column(header, overflow="fold")
    for header in ("done", "failed", "best"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("started", no_wrap=True)
    for study in studies:
        table.add_row(
            _cell(study.name, "bold"),
            _cell(study.method),
            _state(study.state),
            str(study.done),
            str(study.failed),
            "" if study.best_value is None else number(study.best_value),
            _date(study.created),
        )
    return table


def closing_text(outcome: Outcome, flags: str, resume: str) -> str:
    """Return what a command that ran a study prints last: the result and the next commands.

    Parameters
    ----------
    outcome
        The study.
    flags
        Options with which the next commands find it.
    resume
        How to go on with it.
    """
    best, name = outcome.best_trial, quote(outcome.name)
    name = f"-- {name}" if name.startswith("-") else name
    lines = ["", f"No trial has a value: {outcome.stop_reason}."]
    if best is not None:
        of = f"trial {best.number} of {len(outcome.trials)}"
        config = indent(python_text(outcome, best), "    ")
        lines = ["", f"Best value {best.value:.8g} ({of}):", "", config, ""]
    failed = Counter(trial.reason for trial in outcome.trials if trial.state is State.FAILED)
    if failed:
        (reason, often), n = failed.most_common(1)[0], failed.total()
        of = f"{n} of {len(outcome.trials)} trials failed"
        lines += [printable(f"{of}, {often} of them with: {reason}"), ""]
    lines += [f"Journal  {_near(outcome.location)}", f"Report   raybo report{flags} {name}"]
    lines += [f"Table    raybo export --to csv{flags} {name}"]
    if not (outcome.stop and outcome.stop.kind == "exhausted"):
        lines += [f"Resume   {resume}"]
    return "\n".join(lines)


def _config(trial: TrialRecord, definition: Any) -> Any:
    """Config in JSON; a vector by its coordinates, unless there are too many."""
    if definition.get("type") != "box" or definition["dim"] > EXACT_COORDINATES:
        return trial.config
    space = space_from_definition(definition)
    return {"x": [float(x) for x in space.from_json(trial.config)["x"]]}


def _seconds(record: Record, running: bool) -> float:
    """Seconds of all sessions; one that was killed counts up to its last result."""
    started = float(record.session.get("time", time.time()))
    return round(record.seconds + (max(0.0, time.time() - started) if running else 0.0), 1)


def _state(state: str) -> Text:
    word = "finished" if state in _FINISHED else state
    return _cell(word, _STYLES.get(word, "yellow"))


def _cell(text: str, style: str = "") -> Text:
    """Text of the user's, or of a journal's, that cannot command a terminal."""
    return Text(printable(text), style=style)


def _near(location: str) -> str:
    """`location` as seen from the current folder, if it lies below it."""
    path, here = Path(location), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else location


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else ""
