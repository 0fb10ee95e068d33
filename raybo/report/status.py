"""Status of studies as rich tables and JSON, read from their journals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from raybo.result import Result, StudySummary, load_record
from raybo.space.definition import space_from_definition
from raybo.space.vector import Vector
from raybo.study.journal.record import Record
from raybo.study.journal.storage import open_store
from raybo.study.objective import Objective
from raybo.study.trial import State, Trial

_REASONS = 5  # most frequent failures that are shown
_LONG = 30  # a list with more entries is shown in short
_EXACT = 1000  # a vector with more coordinates is given by their source
_STYLES = {"running": "cyan", "finished": "green", "damaged": "red", "error": "red"}
_FINISHED = ("max_trials", "max_seconds", "target", "exhausted", "finished")


def status_of(name: str, storage: str) -> dict[str, Any]:
    """Facts about a study, as JSON."""
    record, store = load_record(name, storage), open_store(storage, name)
    header, settings = record.header, record.session.get("settings", {})
    trials = record.trials
    counts = Counter(trial.state for trial in trials)
    done = [trial for trial in trials if trial.value is not None]
    loss = Objective(header["mode"]).loss
    best = min(done, key=lambda trial: loss(trial.value or 0.0), default=None)
    holder, stopped = store.holder(), record.stopped or {}
    reasons = Counter(trial.reason for trial in trials if trial.state is State.FAILED)
    return {
        "name": header["name"],
        "state": "running" if holder else stopped.get("outcome", "stopped"),
        "reason": "" if holder else stopped.get("reason", "cut off: resume it"),
        "done": counts[State.DONE],
        "failed": counts[State.FAILED],
        "pending": counts[State.PENDING],
        "max_trials": settings.get("max_trials"),
        "workers": settings.get("workers"),
        "seconds": _seconds(record, running=bool(holder)),
        "mode": header["mode"],
        "metric": header["metric"],
        "method": header["method"],
        "seed": header["seed"],
        "objective": header["objective"],
        "created": header["created"],
        "best_value": None if best is None else best.value,
        "best_number": None if best is None else best.number,
        "best_config": None if best is None else _config(best, header["space"]),
        "failures": dict(reasons.most_common(_REASONS)),
        "location": store.location,
    }


def _config(trial: Trial, definition: Any) -> Any:
    """Config in JSON; a vector by its coordinates, unless there are too many."""
    if definition.get("type") != "box" or definition["dim"] > _EXACT:
        return trial.config
    space = space_from_definition(definition)
    return {"x": [float(x) for x in space.from_json(trial.config)["x"]]}


def _seconds(record: Record, running: bool) -> float:
    """Seconds of all sessions; what one that was cut off took nobody knows."""
    began = float(record.session.get("time", time.time()))
    return round(record.seconds + (max(0.0, time.time() - began) if running else 0.0), 1)


def status_table(facts: Mapping[str, Any]) -> Table:
    """Facts of `status_of` as a table."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    limit = f" of {facts['max_trials']}" if facts["max_trials"] else ""
    table.add_row("study", Text(facts["name"], style="bold"))
    table.add_row("state", _state(facts["state"]).append(f"  {facts['reason']}", style="dim"))
    ended = facts["done"] + facts["failed"]
    counts = f"{facts['done']} done, {facts['failed']} failed, {facts['pending']} unfinished"
    table.add_row("trials", f"{ended}{limit}  ({counts})")
    table.add_row("time", f"{facts['seconds']:,.0f} s, begun {_date(facts['created'])}")
    method = facts["method"]
    options = [f"{key}={value}" for key, value in method["options"].items() if value is not None]
    table.add_row("method", Text(" ".join([method["name"], *options])))
    goal = f"{facts['mode']}imise {facts['metric'] or ''}"
    table.add_row("goal", Text(f"{goal}  {facts['objective'] or ''}"))
    if facts["best_value"] is not None:
        table.add_row("best", Text(f"{facts['best_value']:.8g}  trial {facts['best_number']}"))
        table.add_row("", Text(config_text(facts["best_config"])))
    for reason, count in facts["failures"].items():
        table.add_row("failed", Text(f"{count} x {reason}", style="red"))
    table.add_row("journal", Text(facts["location"]))
    return table


def study_table(studies: list[StudySummary]) -> Table:
    """Studies as a table, oldest first."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("name", "method", "state"):
        table.add_column(header, overflow="fold")
    for header in ("done", "failed", "best"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("begun", no_wrap=True)
    for study in studies:
        best = "" if study.best_value is None else f"{study.best_value:.6g}"
        table.add_row(
            Text(study.name, style="bold"),
            study.method,
            _state(study.state),
            str(study.done),
            str(study.failed),
            best,
            _date(study.created),
        )
    return table


def closing_text(result: Result, flags: str, trials: int | None) -> str:
    """Last words of a command that ran a study: what was found, where it is, what to do next.

    Parameters
    ----------
    result
        Of the study.
    flags
        What the next commands need to find it.
    trials
        Budget; a study that has used it goes on with twice as many.
    """
    best, name = result.best_trial, result.name
    lines = ["", f"No trial has a value: {result.stop_reason}."]
    if best is not None:
        of = f"trial {best.number} of {len(result.trials)}"
        lines = ["", f"Best value {best.value:.8g} ({of}):", "", config_text(best.config), ""]
    failed = Counter(trial.reason for trial in result.trials if trial.state is State.FAILED)
    if failed:
        (reason, often), n = failed.most_common(1)[0], failed.total()
        lines += [f"{n} of {len(result.trials)} trials failed, {often} of them with: {reason}", ""]
    more = f" --trials {2 * trials}" if trials and len(result.trials) >= trials else ""
    lines += [f"Journal  {_near(result.location)}", f"Report   raybo report {name}{flags}"]
    lines += [f"Table    raybo export {name} --to csv{flags}"]
    lines += [f"Go on    raybo resume {name}{more}{flags}"]
    return "\n".join(lines)


def config_text(config: Mapping[str, Any]) -> str:
    """`config` as YAML, indented; a large vector in short."""
    import yaml  # noqa: PLC0415  (slow to import, seldom needed)

    style: Any = {
        "default_flow_style": None,
        "sort_keys": False,
        "allow_unicode": True,
        "width": 90,
    }
    plain = yaml.safe_dump(_plain(config), **style)
    return "\n".join(f"    {line}" for line in plain.splitlines())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inside) for key, inside in value.items()}
    if isinstance(value, Vector):
        return _plain(list(value)) if value.dim <= _EXACT else repr(value)
    if isinstance(value, list | tuple):
        first = [_plain(inside) for inside in value[:_LONG]]
        return first if len(value) <= _LONG else [*first[:5], f"... {len(value)} in all"]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if value is None or isinstance(value, bool | int | str):
        return value
    return repr(value)


def _state(state: str) -> Text:
    word = "finished" if state in _FINISHED else state
    return Text(word, style=_STYLES.get(word, "yellow"))


def _near(location: str) -> str:
    """`location` as seen from the current folder, if it lies below it."""
    path, here = Path(location), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else location


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else ""
