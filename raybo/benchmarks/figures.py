"""Figures of benchmark records: best so far against evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from raybo.benchmarks.compare import curve
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.records import Record
from raybo.report.plots import CONFIG

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


def write_figure(records: Sequence[Record], path: Path, title: str = "") -> None:
    """Write an HTML file: median and quartiles against evaluations, one panel per problem."""
    draw_figure(records, title).write_html(path, include_plotlyjs=True, config=CONFIG)


def draw_figure(records: Sequence[Record], title: str = "") -> go.Figure:
    """Return the figure of the curves; regret on a log scale where the optimum is known."""
    problems = list(dict.fromkeys(record.cell.problem for record in records))
    tuners = list(dict.fromkeys(record.cell.tuner for record in records))
    n_columns = min(3, len(problems)) or 1
    n_rows = math.ceil(len(problems) / n_columns) or 1
    figure = make_subplots(n_rows, n_columns, subplot_titles=problems)
    for panel, problem in enumerate(problems):
        place = {"row": panel // n_columns + 1, "col": panel % n_columns + 1}
        of_problem = [record for record in records if record.cell.problem == problem]
        known = all(record.optimum is not None for record in of_problem)
        for tuner in dict.fromkeys(record.cell.tuner for record in of_problem):
            group = [record for record in of_problem if record.cell.tuner == tuner]
            color = _COLORS[tuners.index(tuner) % len(_COLORS)]
            for trace in _traces(group, tuner, color, known):
                trace.showlegend = bool(trace.showlegend) and panel == 0
                figure.add_trace(trace, **place)
        figure.update_yaxes(type="log" if known else "linear", **place)
        figure.update_yaxes(title="regret" if known else "best value", **place)
        figure.update_xaxes(title="evaluations", **place)
    figure.update_layout(title=title, template="plotly_white", height=380 * n_rows)
    return figure


def _traces(group: Sequence[Record], tuner: str, color: str, known: bool) -> list[go.Scatter]:
    """Return the band between the quartiles, then the median."""
    length = min(len(record.values) for record in group)
    curves = np.array([curve(r, "regret" if known else "value")[:length] for r in group])
    if known:
        curves = np.maximum(curves, _LEAST)
    low, median, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    x = np.arange(1, length + 1)
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
