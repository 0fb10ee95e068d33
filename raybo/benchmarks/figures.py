"""Figures of benchmark runs: best so far against evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.compare import curve
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.results import Finished
from raybo.views.plots import CONFIG

try:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots
except ImportError:  # pragma: no cover  (the extra is installed for the tests)
    raise BenchmarkError("figures need plotly: pip install 'raybo[report]'") from None

_COLORS = (
    "#1f77b4",
    "#d62728",
    "#2ca02c",
    "#9467bd",
    "#ff7f0e",
    "#17becf",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
)
_LEAST = 1e-12  # regret; a log axis has no zero


def write_figure(runs: Sequence[Finished], path: Path, title: str = "") -> None:
    """Write an HTML file: median and quartiles against evaluations, one panel per problem."""
    draw_figure(runs, title).write_html(path, include_plotlyjs=True, config=CONFIG)


@dataclass(frozen=True)
class Panel:
    """Curves of several tuners: tuner -> (evaluations (m,), one row per run (n, m))."""

    name: str
    label: str
    log: bool
    curves: dict[str, tuple[Array, Array]]


def draw_figure(runs: Sequence[Finished], title: str = "") -> go.Figure:
    """Return the figure of the curves; regret on a log scale where the optimum is known."""
    panels = []
    for problem, groups in grouped(runs).items():
        known = all(r.optimum is not None for group in groups.values() for r in group)
        curves = {}
        for tuner, group in groups.items():
            length = min(len(run.values) for run in group)
            found = [curve(r, "regret" if known else "value")[:length] for r in group]
            rows = np.maximum(found, _LEAST) if known else np.array(found)
            curves[tuner] = np.arange(1.0, length + 1), rows
        panels.append(Panel(problem, "regret" if known else "best value", known, curves))
    return draw_panels(panels, title)


def grouped(runs: Sequence[Finished]) -> dict[str, dict[str, list[Finished]]]:
    """Return the runs by problem and tuner, in their order."""
    groups: dict[str, dict[str, list[Finished]]] = {}
    for run in runs:
        of_problem = groups.setdefault(run.cell.problem, {})
        of_problem.setdefault(run.cell.tuner, []).append(run)
    return groups


def draw_panels(panels: Sequence[Panel], title: str = "") -> go.Figure:
    """Return a figure with the median and the quartiles of every tuner in each panel."""
    tuners = list(dict.fromkeys(tuner for panel in panels for tuner in panel.curves))
    shown: set[str] = set()
    n_columns = min(3, len(panels)) or 1
    n_rows = math.ceil(len(panels) / n_columns) or 1
    figure = make_subplots(n_rows, n_columns, subplot_titles=[panel.name for panel in panels])
    for i, panel in enumerate(panels):
        place = {"row": i // n_columns + 1, "col": i % n_columns + 1}
        for tuner, (x, rows) in panel.curves.items():
            color = _COLORS[tuners.index(tuner) % len(_COLORS)]
            for trace in _traces(x, rows, tuner, color):
                trace.showlegend = bool(trace.showlegend) and tuner not in shown
                figure.add_trace(trace, **place)
            shown.add(tuner)
        figure.update_yaxes(type="log" if panel.log else "linear", title=panel.label, **place)
        figure.update_xaxes(title="evaluations", **place)
    figure.update_layout(title=title, template="plotly_white", height=380 * n_rows)
    return figure


def _traces(x: Array, rows: Array, tuner: str, color: str) -> list[go.Scatter]:
    """Return the band between the quartiles, then the median."""
    low, median, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    band = go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=f"rgba({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))}, 0.15)",
        line={"width": 0},
        legendgroup=tuner,
        hoverinfo="skip",
        showlegend=False,
    )
    line = go.Scatter(
        x=x, y=median, name=tuner, legendgroup=tuner, line={"color": color}, showlegend=True
    )
    return [band, line]
