"""Write a report of a study as one HTML file, which opens offline."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from raybo.errors import RayboError
from raybo.report import plots, summary
from raybo.report.text import config_text, duration, method_text
from raybo.study.outcome import Outcome, encodable
from raybo.study.trial import State

try:
    import jinja2
    from plotly.offline import get_plotlyjs
except ImportError:  # pragma: no cover  (the extra is installed for the tests)
    raise RayboError("a report needs Jinja2: pip install 'raybo[report]'") from None

TEMPLATE = Path(__file__).with_name("report.html.j2")


@dataclass(frozen=True)
class Section:
    """A part of the report: a figure, a text or a table."""

    title: str = ""  # figures have their own
    note: str = ""
    figure: Any = None
    text: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


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
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        outcome=outcome,
        method=method_text(outcome.method),
        facts=_facts(outcome),
        sections=list(_sections(outcome, optimum)),
        plotlyjs=get_plotlyjs(),
        plotly_config=plots.CONFIG,
    )


def _facts(outcome: Outcome) -> Iterator[tuple[str, str]]:
    best = outcome.best_trial
    yield f"best {outcome.metric or 'value'}", "none" if best is None else f"{best.value:.8g}"
    yield "at trial", "-" if best is None else str(best.number)
    yield "done", str(sum(t.state is State.DONE for t in outcome.trials))
    yield "failed", str(sum(t.state is State.FAILED for t in outcome.trials))
    yield "time", duration(outcome.elapsed)
    if outcome.use is not None:
        yield "workers busy", f"{outcome.use:.0%}"


def _sections(outcome: Outcome, optimum: float | None) -> Iterator[Section]:
    if outcome.best_config is not None:
        yield Section("Best config", text=config_text(outcome.best_config))
    if summary.done(outcome):
        yield Section(figure=plots.plot_history(outcome, optimum))
        if summary.columns(outcome):
            yield Section(
                figure=plots.plot_importances(outcome),
                note="How much of the spread of the values each parameter explains alone; "
                "interactions do not show, and regions that were left early count for less.",
            )
            yield Section(figure=plots.plot_slices(outcome))
            yield Section(
                figure=plots.plot_parallel(outcome), note="Drag along an axis to select."
            )
    if summary.lanes(outcome):
        yield Section(figure=plots.plot_embeddings(outcome))
    if summary.branches(outcome):
        yield Section(figure=plots.plot_tree(outcome))
    yield from _structure(outcome)
    if summary.timeline(outcome):
        yield Section(figure=plots.plot_timeline(outcome))
    failed = summary.failures(outcome)
    if failed:
        rows = [(n, reason, ", ".join(map(str, first))) for reason, n, first in failed]
        yield Section("Failures", head=("count", "reason", "first trials"), rows=rows)
    yield _resume(outcome)


def _structure(outcome: Outcome) -> Iterator[Section]:
    """Groups and directions that an additive method has learnt."""
    memo = summary.structure(outcome)
    if memo and "ridge" not in memo:
        names = [c.name for c in outcome.space.columns]
        groups = [(i, ", ".join(names[j] for j in g)) for i, g in enumerate(memo["groups"])]
        title = "Groups of parameters that the model adds up"
        yield Section(title, head=("group", "parameters"), rows=groups)
    if summary.directions(outcome) is not None:
        yield Section(
            figure=plots.plot_directions(outcome),
            note="The model is a function of these combinations of the parameters, each from 0 "
            "to 1.",
        )


def _resume(outcome: Outcome) -> Section:
    name, storage = outcome.name, outcome.location.rstrip("/").rpartition("/")[0]
    more = 2 * max(1, len(outcome.trials))
    lines = [
        f"raybo resume {quote(name)} --trials {more} --storage {quote(storage)}",
        f"raybo.optimize(objective, space, name={name!r}, storage={storage!r}, max_trials={more})",
    ]
    note = f"A study continues from its journal: {outcome.location}"
    return Section("Resume", note, text="\n".join(lines))
