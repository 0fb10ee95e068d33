"""One self-contained HTML file about a study: it opens offline, and escapes everything."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from raybo.report import plots, summary
from raybo.report.text import config_text, duration, method_text
from raybo.study.outcome import Outcome
from raybo.study.trial import State

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #223; margin: 0; background: #f5f6f8; }
main { max-width: 1100px; margin: 0 auto; padding: 24px; }
h1 { margin: 0 0 4px; font-size: 26px; } h2 { font-size: 18px; margin: 0 0 8px; }
section { background: white; border-radius: 8px; padding: 16px 20px; margin: 16px 0;
          box-shadow: 0 1px 3px #0001; overflow-x: auto; }
.facts { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0; }
.fact { background: white; border-radius: 8px; padding: 10px 16px; box-shadow: 0 1px 3px #0001; }
.fact b { display: block; font-size: 20px; } .fact span, .note { color: #667; font-size: 13px; }
pre { background: #f5f6f8; padding: 10px; border-radius: 6px; overflow-x: auto; margin: 0; }
table { border-collapse: collapse; } td, th { text-align: left; padding: 3px 14px 3px 0;
        vertical-align: top; } th { color: #667; font-weight: 500; }
"""

# A figure is drawn when it comes into view, and all are before printing: drawing them at once
# keeps a browser busy for seconds.
_DRAW = f"""
const draw = async (figure) => {{  // async: one that cannot be drawn leaves the others alone
  seen.unobserve(figure);
  figure.classList.remove("waiting");
  const {{ data, layout }} = JSON.parse(figure.nextElementSibling.textContent);
  await Plotly.newPlot(figure, data, layout, {json.dumps(plots.CONFIG)});
}};
const seen = new IntersectionObserver(
  (entries) => entries.filter((e) => e.isIntersecting).forEach((e) => draw(e.target)),
  {{ rootMargin: "200px" }},
);
const waiting = () => document.querySelectorAll(".waiting");
waiting().forEach((figure) => seen.observe(figure));
addEventListener("beforeprint", () => waiting().forEach(draw));
"""


def write_report(
    outcome: Outcome, path: str | os.PathLike[str], optimum: float | None = None
) -> Path:
    """Write the report of a study.

    Parameters
    ----------
    outcome
        Of the study, finished or not.
    path
        Of the file to write.
    optimum
        Best value there is, if it is known: the history then shows the regret.

    Returns
    -------
    Path
        Of the file.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render(outcome, optimum), encoding="utf-8")
    return target


def render(outcome: Outcome, optimum: float | None = None) -> str:
    """The report as text."""
    # Imported here: where plotly is missing, it is `plots` that says what to do.
    from plotly.offline import get_plotlyjs  # noqa: PLC0415

    body = "\n".join(_sections(outcome, optimum))
    title = escape(f"raybo: {outcome.name}")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body><main>{_header(outcome)}\n{body}</main>\n"
        f"<script>{get_plotlyjs()}</script><script>{_DRAW}</script></body></html>\n"
    )


def _header(outcome: Outcome) -> str:
    counts = {state: sum(t.state is state for t in outcome.trials) for state in State}
    best = outcome.best_trial
    facts = [
        ("best " + (outcome.metric or "value"), "none" if best is None else f"{best.value:.8g}"),
        ("at trial", "-" if best is None else str(best.number)),
        ("done", str(counts[State.DONE])),
        ("failed", str(counts[State.FAILED])),
        ("time", duration(outcome.elapsed)),
    ]
    if outcome.use is not None:
        facts.append(("workers busy", f"{outcome.use:.0%}"))
    cards = "".join(
        f'<div class="fact"><span>{escape(name)}</span><b>{escape(value)}</b></div>'
        for name, value in facts
    )
    line = escape(f"method {method_text(outcome.method)}")
    goal = escape(f"{outcome.mode}imise; {outcome.stop_reason}")
    note = f'<div class="note">{line}; {goal}</div>'
    return f'<h1>{escape(outcome.name)}</h1>{note}<div class="facts">{cards}</div>'


def _sections(outcome: Outcome, optimum: float | None) -> Iterator[str]:
    if outcome.best_config is not None:
        yield _section("Best config", f"<pre>{escape(config_text(outcome.best_config))}</pre>")
    if summary.done(outcome):
        yield _figure(plots.plot_history(outcome, optimum))
        if summary.columns(outcome):
            yield _figure(
                plots.plot_importances(outcome),
                "How much of the spread of the values each parameter explains alone; interactions "
                "do not show, and regions that were left early count for less.",
            )
            yield _figure(plots.plot_slices(outcome))
            yield _figure(plots.plot_parallel(outcome), "Drag along an axis to select.")
    if summary.lanes(outcome):
        yield _figure(plots.plot_embeddings(outcome))
    if summary.branches(outcome):
        yield _figure(plots.plot_tree(outcome))
    memo = summary.structure(outcome)
    if memo and "ridge" not in memo:
        groups = _groups(outcome, memo["groups"])
        yield _section("Groups of parameters that the model adds up", groups)
    if summary.directions(outcome) is not None:
        yield _figure(
            plots.plot_directions(outcome),
            "The model is a function of these combinations of the parameters, each from 0 to 1.",
        )
    if summary.timeline(outcome):
        yield _figure(plots.plot_timeline(outcome))
    failed = summary.failures(outcome)
    if failed:
        rows = [(n, reason, ", ".join(map(str, first))) for reason, n, first in failed]
        yield _section("Failures", _table(("count", "reason", "first trials"), rows))
    yield _section("Go on", _resume(outcome))


def _groups(outcome: Outcome, groups: Iterable[Iterable[int]]) -> str:
    names = [c.name for c in outcome.space.columns]
    return _table(
        ("group", "parameters"),
        [(i, ", ".join(names[j] for j in group)) for i, group in enumerate(groups)],
    )


def _resume(outcome: Outcome) -> str:
    name, storage = outcome.name, outcome.location.rstrip("/").rpartition("/")[0]
    more = 2 * max(1, len(outcome.trials))
    lines = [
        f"raybo resume {name} --trials {more} --storage {storage}",
        f"raybo.optimize(objective, space, name={name!r}, storage={storage!r}, max_trials={more})",
    ]
    note = '<p class="note">A study goes on from its journal: '
    return f"{note}{escape(outcome.location)}</p><pre>{escape(chr(10).join(lines))}</pre>"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _figure(figure: Any, note: str = "") -> str:
    room = f'<div class="waiting" style="height: {figure.layout.height or 450}px"></div>'
    # It escapes <, > and /, so that it may stand in a script.
    content = f'<script type="application/json">{figure.to_json()}</script>'
    return f'<section>{room}{content}<div class="note">{escape(note)}</div></section>'


def _table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    def cells(tag: str, entries: Iterable[Any]) -> str:
        return "".join(f"<{tag}>{escape(str(e))}</{tag}>" for e in entries)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', head)}</tr>{body}</table>"
