"""Numbers, durations, configs and studies as text for people."""

from __future__ import annotations

import html
import json
import pprint
from collections import Counter
from collections.abc import Mapping
from textwrap import indent
from typing import Any

from raybo.space.vector import Vector
from raybo.study.outcome import Outcome, flat_config
from raybo.study.trial import Trial
from raybo.views.summary import searches

EXACT_COORDINATES = 1000  # a vector with more coordinates is shown by how they are computed
_LINE_CHARACTERS = 60  # of a config in one line
_NOTEBOOK_ROWS = 10  # best trials in a notebook
_LIST_ENTRIES = 30  # a longer list is cut
_SEARCHES = 5  # shown, the last ones


def number(value: float) -> str:
    """Return a value in a table."""
    return f"{value:.6g}"


def duration(seconds: float) -> str:
    """Return a time span: "1:05", "2:00:00", "3d 4h"."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d {hours % 24}h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def stopped_text(stopped: int, resumable: int) -> str:
    """Return how many trials were stopped early, and how many of these can go on."""
    return f"{stopped} stopped early" + (f" ({resumable} resumable)" if resumable else "")


def rate(per_second: float) -> str:
    """Return a rate per second, minute or hour, whichever gives a number of one or more."""
    if per_second >= 1:
        return f"{per_second:.1f}/s"
    return f"{60 * per_second:.1f}/min" if 60 * per_second >= 1 else f"{3600 * per_second:.1f}/h"


def printable(text: str) -> str:
    """Return `text` with spaces for control characters, which could command a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def method_text(method: Mapping[str, Any]) -> str:
    """Return the name of a method and the options that are set: "rembo (d=3, k=4)"."""
    given = method.get("options", {}).items()
    usual = (None, "default")  # an option that is not set, the preset that everybody has
    options = ", ".join(f"{k}={v}" for k, v in given if v not in usual)
    name = str(method.get("name", ""))
    return f"{name} ({options})" if options else name


def config_line(config: Any) -> str:
    """Return a config, in JSON, as one short line."""
    text = json.dumps(_rounded(config), ensure_ascii=False).replace('"', "")
    text = text[1:-1] if text.startswith("{") else text
    return shorten(text, _LINE_CHARACTERS)


def config_text(config: Mapping[str, Any]) -> str:
    """Return a config as YAML; a long list or vector is cut."""
    import yaml  # noqa: PLC0415  (slow to import, seldom needed)

    style: Any = {
        "default_flow_style": None,
        "sort_keys": False,
        "allow_unicode": True,
        "width": 90,
    }
    return str(yaml.safe_dump(_plain(config), **style)).rstrip("\n")


def outcome_text(outcome: Outcome) -> str:
    """Return a few lines about a study: its trials, its best value, where it is kept."""
    lines = [f"Result of {_headline(outcome)}"]
    best = outcome.best_trial
    if best is not None:
        lines.append(f"  best value {best.value:.6g} ({outcome.mode}) at trial {best.number}")
        lines += ["", indent(python_text(outcome, best), "    "), ""]
    lines += [*_searches(outcome), f"  kept in {outcome.location}"]
    return "\n".join(lines)


def outcome_html(outcome: Outcome) -> str:
    """Return a table of the best trials, for a notebook."""

    def cells(tag: str, values: list[Any]) -> str:
        return "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)

    goal = outcome.goal
    done = [t for t in outcome.trials if t.value is not None and goal.allows(t.extra)]
    best = sorted(done, key=lambda trial: goal.loss(trial.value or 0.0))[:_NOTEBOOK_ROWS]
    configs = [flat_config(trial.config, outcome.space) for trial in best]
    names = list(dict.fromkeys(name for config in configs for name in config))
    rows = [
        [t.number, f"{t.value:.6g}", *(_cell(config.get(name, "")) for name in names)]
        for t, config in zip(best, configs, strict=True)
    ]
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = cells("th", ["trial", outcome.metric or "value", *names])
    title = html.escape(f"Result of {_headline(outcome)}")
    return f"<p>{title}</p><table><tr>{head}</tr>{body}</table>"


def python_text(outcome: Outcome, trial: Trial) -> str:
    """Return a config as Python to copy, complete; a long vector by how it is computed."""
    config = outcome.space.to_json(trial.config)
    if "x" in trial.config and isinstance(trial.config["x"], Vector):
        vector = trial.config["x"]
        if vector.dim <= EXACT_COORDINATES:
            config = {"x": [float(x) for x in vector]}
        else:
            return f"{outcome.space!r}.from_json({config!r})"
    return pprint.pformat(config, sort_dicts=False, width=100)


def json_text(outcome: Outcome, trial: Trial) -> str:
    """Return a config as JSON, complete; `space.from_json(json.loads(text))` gives it back."""
    return json.dumps(outcome.space.to_json(trial.config))


def shorten(text: str, length: int) -> str:
    """Return `text`, cut to `length` characters."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _searches(outcome: Outcome) -> list[str]:
    """Return a line on what came of each search, where one ended and another began."""
    found = searches(outcome)
    if len(found) == outcome.lanes:
        return []
    latest = list(found.items())[-_SEARCHES:]
    parts = [f"{first}: {'-' if v is None else number(v)}" for first, v in latest]
    dots = "... " if len(found) > _SEARCHES else ""
    order = ", one after another" if outcome.lanes == 1 else f" in {outcome.lanes} lanes"
    text = f"{len(found)} searches{order}; first trial and best value of each: "
    return [f"  {text}{dots}{', '.join(parts)}"]


def _headline(outcome: Outcome) -> str:
    counts = Counter(trial.state.value for trial in outcome.trials)
    many = ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
    return f"study {outcome.name!r}: {many or 'no trials'} ({outcome.stop_reason})"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shorten(str(value), 60)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value[:8]]
    return value


def _plain(value: Any) -> Any:
    """`value` as YAML can write it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inside) for key, inside in value.items()}
    if isinstance(value, Vector):
        return _plain(list(value)) if value.dim <= EXACT_COORDINATES else repr(value)
    if isinstance(value, list | tuple):
        first = [_plain(inside) for inside in value[:_LIST_ENTRIES]]
        if len(value) <= _LIST_ENTRIES:
            return first
        return [*first[:5], f"... {len(value)} in all"]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if value is None or isinstance(value, bool | int | str):
        return value
    return repr(value)
