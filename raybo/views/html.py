"""Write a report of a study as one HTML file, which opens offline.

A report is a row of panels, each a function of the `Sheet` of the study that returns a `Section`,
or None where there is nothing to show. To add one, write it and name it in `PANELS`.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import raybo
from raybo.errors import RayboError, StudyError
from raybo.methods.auto.assumptions import ASSUMPTIONS
from raybo.space.columns import Column
from raybo.space.values import listed
from raybo.study.outcome import Outcome, encodable
from raybo.study.trial import State, Trial
from raybo.views import plots, summary
from raybo.views.summary import Sheet, short
from raybo.views.text import (
    EXACT_COORDINATES,
    duration,
    json_text,
    method_text,
    python_text,
    shorten,
)

try:
    import jinja2
    from plotly.offline import get_plotlyjs
except ImportError:  # pragma: no cover  (the extra is installed for the tests)
    raise RayboError("a report needs Jinja2: pip install 'raybo[report]'") from None

TEMPLATE = Path(__file__).with_name("report.html.j2")
_OPEN_ROWS = 12  # of a table; the others are folded away
_CLEAR_LEAD = 2 / 3  # share of a method from which on its assumption is put in words
_TABLE_TRIALS = 2000  # the best; a browser sorts as many at once
_TABLE_COLUMNS = 60  # parameters, those that matter most first


@dataclass(frozen=True)
class Section:
    """A part of the report: figures, a table, or what the template has a form for."""

    title: str
    note: str = ""
    figures: Sequence[Any] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    form: str = ""  # name of a part of the template, which `data` is for
    data: Any = None
    half: bool = False  # whether it stands beside its neighbour on a wide screen


def write_report(
    outcome: Outcome, path: str | os.PathLike[str], optimum: float | None = None
) -> Path:
    """Write the report of a study and return its path.

    Parameters
    ----------
    outcome
        The study, finished or not.
    path
        File to write; its folder is made if it is missing.
    optimum
        Best possible value, if it is known: the history then shows the regret.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(encodable(render(outcome, optimum)), encoding="utf-8")
    return target


def render(outcome: Outcome, optimum: float | None = None) -> str:
    """Return the report as HTML; the template escapes all values."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["figure"] = _figure_json
    sheet = Sheet(outcome)
    found = [_history(sheet, optimum), *(panel(sheet) for panel in PANELS)]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        outcome=outcome,
        method=method_text(outcome.method),
        facts=list(_facts(outcome)),
        sections=[section for section in found if section is not None],
        open_rows=_OPEN_ROWS,
        plotlyjs=get_plotlyjs(),
        plotly_config=plots.CONFIG,
    )


def _figure_json(figure: Any) -> str:
    """A figure as JSON, without its title and colours: the page has its own.

    plotly writes <, > and / as escapes, so its JSON may stand in a script.
    """
    layout = figure.layout
    above = layout.updatemenus or (layout.showlegend and layout.legend.y > 0)
    top = 40 if above else 12 if layout.margin.t == plots.TITLE_HEIGHT else layout.margin.t
    figure = type(figure)(figure).update_layout(title=None, template=None, margin_t=top)
    return str(figure.to_json())


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    best = outcome.best_trial
    states = [t.state for t in outcome.trials]
    facts = [
        (f"best {outcome.metric or 'value'}", "none" if best is None else f"{best.value:.6g}"),
        ("at trial", "-" if best is None else str(best.number)),
        ("done", str(states.count(State.DONE))),
        ("failed", str(states.count(State.FAILED))),
        *([("stopped early", str(n))] if (n := states.count(State.STOPPED)) else []),
        ("time", duration(outcome.elapsed)),
    ]
    return facts if outcome.use is None else [*facts, ("workers busy", f"{outcome.use:.0%}")]


def _history(sheet: Sheet, optimum: float | None) -> Section | None:
    if not sheet.trials:
        return None
    note = "A star marks the best trial, red crosses those that failed."
    note = f"{note} {sheet.sampled}".rstrip()
    return Section("History", note, [plots.plot_history(sheet, optimum)], half=True)


def _curves(sheet: Sheet) -> Section | None:
    """What the trials reported on their way."""
    trials = [t for t in sheet.outcome.trials if t.curve]
    if not trials:
        return None
    note = "A line is a trial: the best in orange, finished ones in blue, the others in grey."
    stopped = [t for t in trials if t.state is State.STOPPED]
    if stopped:
        full = max(max(t.curve) for t in trials)
        share = sum(max(t.curve) for t in trials) / (full * len(trials))
        note += f" {len(stopped)} of {len(trials)} were stopped early, at the dots: "
        note += f"{share:.0%} of all steps were run."
    return Section("Curves", note, [plots.plot_curves(sheet)])


def _best(sheet: Sheet) -> Section | None:
    """The best config beside the space: values, ranges, and code to copy."""
    outcome, best = sheet.outcome, sheet.outcome.best_trial
    if best is None or sheet.best is None:
        return None
    rows = []
    for column in sheet.columns[:EXACT_COORDINATES]:
        here = bool(sheet.active[sheet.best, column.index])
        place = float(sheet.rows[sheet.best, column.index])
        value = column.parameter.decode(place) if here else None
        rows.append(
            {
                "name": column.name,
                "value": _value_text(value) if here else "-",
                "place": f"{100 * place:.1f}" if here else None,
                "range": range_text(column),
                "share": None if sheet.why_no_model else sheet.importances[column.name],
            }
        )
    note = "" if rows else f"{outcome.space!r}: coordinates are computed when they are read."
    copies = [("Python", python_text(outcome, best)), ("JSON", json_text(outcome, best))]
    data = {"rows": rows, "copies": copies}
    return Section("Best config", note, form="best", data=data, half=True)


def _value_text(value: Any) -> str:
    return short(value) if isinstance(value, float) else shorten(str(value), 60)


def range_text(column: Column) -> str:
    """Return what values a parameter may have: "1e-5 to 0.1, log"."""
    parameter: Any = column.parameter
    if column.kind == "choice":
        return f"one of {listed(map(str, parameter.branches))}".replace("'", "")
    if column.kind == "categorical":
        return "one of " + shorten(", ".join(map(str, parameter.values)), 80)
    text = f"{short(parameter.low)} to {short(parameter.high)}"
    step = parameter.step
    if step and (column.kind == "float" or step != 1):
        text += f" by {short(step)}"
    return text + (", log" if parameter.log else "")


def _recommended(sheet: Sheet) -> Section | None:
    """What the model expects to be best, where that is not the best value."""
    found, best = sheet.recommended, sheet.outcome.best_trial
    if found is None or found.deviation is None or best is None:
        return None
    if found.trial.config == best.config:
        return None
    outcome = sheet.outcome
    note = (
        f"Trial {found.trial.number}: the model expects {short(found.expected)} "
        f"± {short(found.deviation)} of it, better than of the best trial, whose "
        f"{short(best.value or 0.0)} it takes for luck. Where values are noisy, use this one."
    )
    copies = [
        ("Python", python_text(outcome, found.trial)),
        ("JSON", json_text(outcome, found.trial)),
    ]
    return Section("Recommended config", note, form="copies", data=copies, half=True)


def _members(sheet: Sheet) -> Section | None:
    """Who of `auto` proposed, and what the results support, in words."""
    members = sheet.members
    if members is None:
        return None
    by = [t.memo["member"] for t in members.trials]
    counts = ", ".join(f"{name} {by.count(name)}" for name in members.names)
    note = f"Proposals: {counts}."
    leader, share = members.leader
    if len(members.names) == 1:
        note += " It is the only member."
    elif share < _CLEAR_LEAD:
        note += " All explain the results about equally well."
    elif leader in ASSUMPTIONS:
        note += f" What explains the results best is that {ASSUMPTIONS[leader]}."
    figures = [plots.plot_shares(sheet), plots.plot_predictions(sheet)]
    return Section("Which method predicts best", note, figures)


def _importances(sheet: Sheet) -> Section | None:
    if not sheet.outcome.space.dense or not sheet.trials:
        return None
    title = "Which parameters matter"
    if sheet.why_no_model:
        return Section(title, f"Not known: {sheet.why_no_model}.", half=True)
    note = (
        "Share of the variation of the model's mean over the whole space that is due to a "
        "parameter alone; what is due to several together is the last bar. "
        f"Of the values of left-out trials the model explains {sheet.surface.explained:.0%}."
    )
    return Section(title, note, [plots.plot_importances(sheet)], half=True)


def _contour(sheet: Sheet) -> Section | None:
    try:
        figure = plots.plot_contour(sheet)
    except StudyError:  # what is missing, the panel of importances says
        return None
    note = "What the model expects, the other parameters as in the best config: darker is better."
    return Section("The two that matter most", note, [figure], half=True)


def _slices(sheet: Sheet) -> Section | None:
    if not sheet.columns or not sheet.trials:
        return None
    note = "Each dot is a trial, darker ones are later; the star is the best, red crosses failed."
    if not sheet.why_no_model:
        note += " Grey: what the model expects, the other parameters as in the best config."
    if len(sheet.columns) > len(figures := plots.slices(sheet)):
        note += f" The {len(figures)} that matter most of {len(sheet.columns)}."
    return Section("Slices", note, figures)


def _failures(sheet: Sheet) -> Section | None:
    found = summary.failures(sheet.outcome)
    if not found:
        return None
    groups = [
        {
            "count": len(reason.trials),
            "reason": reason.text,
            "trials": listed([t.number for t in reason.trials], 8),
            "config": python_text(sheet.outcome, reason.trials[0]),
            "traceback": sheet.outcome.tracebacks.get(reason.trials[0].number, ""),
        }
        for reason in found
    ]
    note = "Reasons that differ only by numbers are one line; open it for the first config."
    return Section("Failures", note, form="failures", data=groups)


def _success(sheet: Sheet) -> Section | None:
    """Where trials succeed, by the model that the search has of it."""
    figures = plots.success_slices(sheet)
    if not figures:
        return None
    bounded = " and keeps the constraints" if sheet.outcome.constraints else ""
    note = (
        f"Probability that a trial gives a value{bounded}, along the parameters it depends on "
        "most, the others as in the best config; grey marks on top are trials with a value, red "
        "ones below failed. A flat line: failures at random."
    )
    return Section("Where trials succeed", note, figures)


def _parallel(sheet: Sheet) -> Section | None:
    if not sheet.columns or not sheet.done.any():
        return None
    note = "Darker lines are better, red ones failed. Drag along an axis to select."
    return Section("Parallel coordinates", note, [plots.plot_parallel(sheet)])


def _branches(sheet: Sheet) -> Section | None:
    if not summary.branches(sheet.outcome) or not sheet.done.any():
        return None
    note = "Every trial of a branch by its value; in brackets how many have one."
    return Section("Branches", note, [plots.plot_tree(sheet)])


def _embeddings(sheet: Sheet) -> Section | None:
    found = summary.lanes(sheet.outcome)
    if not found:
        return None
    figures = plots.plot_embeddings(sheet)
    note = f"Random embeddings of {found[0].points.shape[1]} dimensions. "
    if found[0].points.shape[1] == 2:
        note += "Each plane is one embedding, its dots are trials; darker is better. "
    share = sum(lane.clipped for lane in found) / len(found)
    note += f"On average {share:.0%} of the coordinates lay outside the box, and were moved to "
    note += "its edge."
    return Section("Embeddings", note, figures)


def _groups(sheet: Sheet) -> Section | None:
    memo = summary.structure(sheet.outcome)
    if not memo or "ridge" in memo:
        return None
    names = [c.name for c in sheet.outcome.space.columns]
    groups = [(i + 1, ", ".join(names[j] for j in g)) for i, g in enumerate(memo["groups"])]
    title = "Groups of parameters that the model adds up"
    return Section(title, head=("group", "parameters"), rows=groups)


def _directions(sheet: Sheet) -> Section | None:
    if summary.directions(sheet.outcome) is None:
        return None
    note = "The model is a function of these combinations of the parameters, each from 0 to 1."
    return Section("Directions that the model learnt", note, [plots.plot_directions(sheet)])


def _trials(sheet: Sheet) -> Section | None:
    """Every trial, to sort and to open."""
    outcome = sheet.outcome
    if not outcome.trials:
        return None
    trials = outcome.trials
    if len(trials) > _TABLE_TRIALS:
        worst = float("inf") if outcome.mode == "min" else float("-inf")
        sign = 1.0 if outcome.mode == "min" else -1.0
        ranked = sorted(trials, key=lambda t: sign * (worst if t.value is None else t.value))
        trials = sorted(ranked[:_TABLE_TRIALS], key=lambda t: t.number)
    columns = sheet.columns[:_TABLE_COLUMNS]
    extra = list(dict.fromkeys(key for t in trials for key in t.extra))
    data = {
        "metric": outcome.metric or "value",
        "mode": outcome.mode,
        "extra": extra,
        "columns": [{"path": c.path, "choice": c.kind == "choice"} for c in columns],
        "best": outcome.best_trial.number if outcome.best_trial else None,
        "rows": [_table_row(sheet, t, extra, columns) for t in trials],
    }
    note = "Click a heading to sort, a trial to see its config."
    if len(trials) < len(outcome.trials):
        note += f" The best {len(trials)} of {len(outcome.trials)}."
    if len(columns) < len(sheet.columns):
        note += f" The {len(columns)} parameters that matter most of {len(sheet.columns)}."
    return Section("Trials", note, form="trials", data=data)


def _table_row(sheet: Sheet, trial: Trial, extra: list[str], columns: list[Column]) -> list[Any]:
    """Number, state, value, seconds, extra entries, parameters; a failure's reason comes last."""
    seconds = None
    if trial.started is not None and trial.finished is not None:
        seconds = round(trial.finished - trial.started, 3)
    flat = summary.flat(sheet.outcome, trial) if columns else {}
    cells = [trial.extra.get(key) for key in extra] + [flat.get(c.name) for c in columns]
    plain = [c if isinstance(c, int | float | str | None) else str(c) for c in cells]
    plain = [c if c == c and c not in (float("inf"), float("-inf")) else str(c) for c in plain]
    reason = trial.reason or ""
    if trial.state is State.STOPPED:
        step = max(trial.curve)
        reason = f"stopped early at step {step}, with {trial.curve[step]:.6g}"
    return [trial.number, trial.state.value, trial.value, seconds, *plain, reason]


def _workers(sheet: Sheet) -> Section | None:
    if not summary.timed(sheet.outcome):
        return None
    figure = plots.plot_timeline(sheet)
    return Section(figure.layout.title.text, figures=[figure])


def _about(sheet: Sheet) -> Section:
    outcome = sheet.outcome
    stamp = "%Y-%m-%d %H:%M"
    created = outcome.created
    facts = [
        ("objective", outcome.objective or "a function of a script or notebook"),
        ("goal", f"{outcome.mode}imise {outcome.metric or 'the value'}"),
        ("method", method_text(outcome.method)),
        ("parameters", f"{outcome.space.dim:,}"),
        ("seed", "-" if outcome.seed is None else str(outcome.seed)),
        ("workers", "-" if outcome.workers is None else str(outcome.workers)),
        ("started", "-" if not created else time.strftime(stamp, time.localtime(created))),
        ("ended", outcome.stop_reason),
        ("report", time.strftime(stamp)),
        ("versions", f"raybo {raybo.__version__}, Python {platform.python_version()}"),
    ]
    return Section("About this study", form="about", data=facts, half=True)


def _resume(sheet: Sheet) -> Section:
    """Commands that continue the study; of its storage only the name, not where it lies."""
    outcome = sheet.outcome
    storage = outcome.location.rstrip("/").rpartition("/")[0]
    if "://" not in storage:
        storage = Path(storage).name or "."
    more = 2 * max(1, len(outcome.trials))
    name = outcome.name
    code = (
        f"raybo.optimize(objective, space, name={name!r}, storage={storage!r}, max_trials={more})"
    )
    copies = [("Python", code)]
    if outcome.objective:
        shell = f"raybo resume {quote(name)} --trials {more} --storage {quote(storage)}"
        copies.append(("Shell", shell))
    note = "A study continues from its journal, run in the folder that holds its storage."
    return Section("Go on", note, form="copies", data=copies, half=True)


PANELS = (
    _best,
    _recommended,
    _curves,
    _importances,
    _contour,
    _slices,
    _failures,
    _success,
    _parallel,
    _branches,
    _embeddings,
    _groups,
    _directions,
    _members,
    _trials,
    _workers,
    _about,
    _resume,
)
