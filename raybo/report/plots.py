"""Plotly figures of a study; `Result.plot_*` call these."""

from __future__ import annotations

from typing import Any

import numpy as np

from raybo.errors import RayboError
from raybo.report import summary
from raybo.study.outcome import Outcome, encodable
from raybo.study.trial import State

try:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots
except ImportError:  # pragma: no cover  (the extra is installed for the tests)
    raise RayboError("plots need plotly: pip install 'raybo[report]'") from None

BLUE, ORANGE, GREY, RED = "#3366cc", "#dd7711", "#b9c0ca", "#cc3344"
_SHOWN = 8  # parameters in one figure
_COLUMNS = 50  # directions in one figure
_LINES = 600  # trials in one figure of lines or bars: more cannot be told apart
CONFIG = {"displaylogo": False, "responsive": True, "showSendToCloud": False}  # nothing leaves
_DRAWN = 1000  # marks that a browser draws sooner than it starts WebGL


def plot_history(outcome: Outcome, optimum: float | None = None) -> go.Figure:
    """Value of each trial in the order of finishing, and the best so far.

    With the `optimum`, if it is known, a second panel shows the regret on a log scale.
    """
    trials = summary.done(outcome)
    order = np.arange(1, len(trials) + 1)
    best = summary.best_so_far(outcome)
    figure = make_subplots(1, 1 if optimum is None else 2)
    texts = [f"trial {t.number}" for t in trials]
    values = summary.values(trials)
    figure.add_trace(
        _marks(len(trials))(
            x=order,
            y=values,
            mode="markers",
            name="value",
            text=texts,
            marker={"color": GREY, "size": 6},
        ),
        1,
        1,
    )
    figure.add_trace(
        go.Scatter(
            x=order,
            y=best,
            mode="lines",
            name="best so far",
            line={"color": BLUE, "width": 2.5, "shape": "hv"},
        ),
        1,
        1,
    )
    if _needs_log(values):
        figure.update_yaxes(type="log", row=1, col=1)
    figure.update_xaxes(title="finished trials")
    figure.update_yaxes(title=outcome.metric or "value", row=1, col=1)
    if optimum is not None:
        regret = np.maximum(np.abs(best - optimum), 1e-16)
        figure.add_trace(
            go.Scatter(
                x=order,
                y=regret,
                mode="lines",
                name="regret",
                line={"color": ORANGE, "width": 2.5, "shape": "hv"},
            ),
            1,
            2,
        )
        figure.update_yaxes(type="log", title="regret", row=1, col=2)
    return _finish(figure, "History")


def _needs_log(values: Any) -> bool:
    """Whether positive values range over more than three decades."""
    return len(values) > 1 and values.min() > 0 and values.max() / values.min() > 1e3


def plot_importances(outcome: Outcome) -> go.Figure:
    """Share of the spread of the values that each parameter explains alone."""
    shares = list(summary.importances(outcome).items())[:20][::-1]
    figure = go.Figure(
        go.Bar(
            x=[s for _, s in shares],
            y=[_label(n) for n, _ in shares],
            orientation="h",
            marker={"color": BLUE},
        )
    )
    figure.update_xaxes(
        title="share of the spread explained alone", range=[0, 1], tickformat=".0%"
    )
    figure.update_layout(height=max(240, 60 + 24 * len(shares)))
    return _finish(figure, "Which parameters matter")


def plot_parallel(outcome: Outcome) -> go.Figure:
    """Parallel coordinates of the best trials and a sample of the others."""
    trials, columns = summary.done(outcome), summary.columns(outcome)
    names = list(summary.importances(outcome))[:_SHOWN]
    values = summary.values(trials)
    ranked = np.argsort(values if outcome.mode == "min" else -values, kind="stable")
    few = np.sort(
        np.concatenate(
            [ranked[: _LINES // 2], ranked[_LINES // 2 :][:: max(1, len(ranked) // (_LINES // 2))]]
        )
    )
    dimensions = [_dimension(name, [columns[name][i] for i in few]) for name in names]
    dimensions.append({"label": _label(outcome.metric or "value"), "values": values[few]})
    line = {
        "color": values[few],
        "colorscale": "Viridis",
        "showscale": True,
        "reversescale": outcome.mode == "min",
    }
    figure = go.Figure(go.Parcoords(dimensions=dimensions, line=line))
    return _finish(figure, "Parallel coordinates").update_layout(margin={"t": 110})


def _dimension(name: str, entries: list[Any]) -> dict[str, Any]:
    """One axis; what is not a number, and what is inactive, becomes a labelled position."""
    if all(isinstance(e, int | float) and not isinstance(e, bool) for e in entries):
        low, high = min(entries), max(entries)
        if low > 0 and high / low > 1e3:
            return {"label": f"log10 {_label(name)}", "values": np.log10(np.array(entries, float))}
        return {"label": _label(name), "values": np.array(entries, dtype=float)}
    labels = sorted({"inactive" if e is None else _label(str(e)) for e in entries})
    if len(labels) > 30:  # a number that is sometimes inactive
        known = [e for e in entries if isinstance(e, int | float)]
        low = min(known, default=0.0)
        return {
            "label": _label(name),
            "values": [low if not isinstance(e, int | float) else e for e in entries],
        }
    place = {label: i for i, label in enumerate(labels)}
    return {
        "label": _label(name),
        "values": [place["inactive" if e is None else _label(str(e))] for e in entries],
        "tickvals": list(place.values()),
        "ticktext": labels,
    }


def plot_slices(outcome: Outcome) -> go.Figure:
    """Value against each of the parameters that matter most."""
    trials, columns = summary.done(outcome), summary.columns(outcome)
    names = list(summary.importances(outcome))[:_SHOWN]
    across = min(4, max(1, len(names)))
    down = max(1, -(-len(names) // across))
    figure = make_subplots(
        down, across, subplot_titles=[_label(n) for n in names], shared_yaxes=True
    )
    values = summary.values(trials)
    numbers = np.array([t.number for t in trials])
    marks = _marks(len(trials) * len(names))
    for i, name in enumerate(names):
        row, col = i // across + 1, i % across + 1
        entries = columns[name]
        active = [j for j, e in enumerate(entries) if e is not None]
        shown = [
            entries[j]
            if isinstance(entries[j], int | float) and not isinstance(entries[j], bool)
            else _label(str(entries[j]))
            for j in active
        ]
        figure.add_trace(
            marks(
                x=shown,
                y=values[active],
                mode="markers",
                showlegend=False,
                marker={
                    "size": 5,
                    "color": numbers[active],
                    "colorscale": "Blues",
                    "cmin": -0.3 * max(1, numbers.max(initial=1)),
                },
            ),
            row,
            col,
        )
        numeric = [s for s in shown if not isinstance(s, str)]
        if numeric and min(numeric) > 0 and max(numeric) / min(numeric) > 1e3:
            figure.update_xaxes(type="log", row=row, col=col)
        if _needs_log(values):
            figure.update_yaxes(type="log", row=row, col=col)
    figure.update_layout(height=260 * down + 60)
    return _finish(figure, "Slices (darker is later)")


def plot_timeline(outcome: Outcome) -> go.Figure:
    """When each worker evaluated what, or how many were busy when there are too many to draw."""
    placed = summary.timeline(outcome)
    if not placed:
        return _finish(go.Figure(), "Workers")
    origin = min(float(t.started or 0.0) for _, t in placed)
    title = "Workers"
    if outcome.use is not None:
        title += f": {1 - outcome.use:.1%} idle in the last session"
    if len(placed) > _LINES:
        return _finish(_busy_curve(placed, origin), title)
    figure = go.Figure()
    for state, color in ((State.DONE, BLUE), (State.FAILED, RED)):
        own = [(slot, t) for slot, t in placed if t.state is state]
        figure.add_trace(
            go.Bar(
                y=[f"worker {slot}" for slot, _ in own],
                x=[float(t.finished or 0) - float(t.started or 0) for _, t in own],
                base=[float(t.started or 0) - origin for _, t in own],
                text=[str(t.number) for _, t in own],
                textposition="inside",
                textangle=0,
                orientation="h",
                name=state.value,
                marker={"color": color, "line": {"color": "white", "width": 1}},
            )
        )
    figure.update_layout(
        barmode="overlay",
        height=max(240, 90 + 26 * (1 + max(s for s, _ in placed))),
        uniformtext={"minsize": 9, "mode": "hide"},  # numbers that do not fit their bars
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="seconds")
    return _finish(figure, title)


def _busy_curve(placed: list[Any], origin: float) -> go.Figure:
    starts = np.array([float(t.started) - origin for _, t in placed])
    ends = np.array([float(t.finished) - origin for _, t in placed])
    grid = np.linspace(0.0, ends.max(), 800)
    busy = np.searchsorted(np.sort(starts), grid, "right") - np.searchsorted(
        np.sort(ends), grid, "right"
    )
    figure = go.Figure(
        go.Scatter(x=grid, y=busy, fill="tozeroy", line={"color": BLUE, "shape": "hv"})
    )
    figure.update_xaxes(title="seconds")
    figure.update_yaxes(title="busy workers")
    return figure


def plot_tree(outcome: Outcome) -> go.Figure:
    """Evaluations per branch of the choices, coloured by the best value found there."""
    nodes = summary.branches(outcome)
    ids = ["/".join(node.path) for node in nodes]
    known = set(ids)
    parents = [
        p if (p := "/".join(node.path[:-1])) in known else _above(node.path, known)
        for node in nodes
    ]
    bests = [np.nan if node.best is None else node.best for node in nodes]
    figure = go.Figure(
        go.Icicle(
            ids=ids,
            parents=parents,
            labels=[_label(node.path[-1]) for node in nodes],
            values=[node.count for node in nodes],
            branchvalues="total",
            marker={
                "colors": bests,
                "colorscale": "Viridis",
                "showscale": True,
                "reversescale": outcome.mode == "min",
                "colorbar": {"title": "best"},
            },
            texttemplate="%{label}<br>%{customdata}",
            customdata=[f"{node.count} evaluations" for node in nodes],
            tiling={"orientation": "v"},
        )
    )
    return _finish(figure, "Branches")


def _above(path: tuple[str, ...], known: set[str]) -> str:
    """Nearest node above `path` that is drawn; "" for the root."""
    for end in range(len(path) - 2, 0, -1):
        if "/".join(path[:end]) in known:
            return "/".join(path[:end])
    return ""


def plot_embeddings(outcome: Outcome) -> go.Figure:
    """Evaluations, best value and share of clipped coordinates of each embedding."""
    rows = summary.lanes(outcome)
    names = [f"embedding {row['embedding']}" for row in rows]
    figure = make_subplots(
        1, 3, subplot_titles=("evaluations", "best value", "clipped coordinates")
    )
    for col, key in enumerate(("evaluations", "best", "clipped"), start=1):
        figure.add_trace(
            go.Bar(
                x=names, y=[row[key] for row in rows], showlegend=False, marker={"color": BLUE}
            ),
            1,
            col,
        )
    figure.update_yaxes(tickformat=".0%", row=1, col=3)
    return _finish(figure, "Embeddings")


def plot_directions(outcome: Outcome) -> go.Figure:
    """Weights of the parameters in the directions that the model learnt."""
    found = summary.directions(outcome)
    names = [_label(c.name) for c in outcome.space.columns]
    W = np.zeros((len(names), 0)) if found is None else found[:, :_COLUMNS]
    largest = float(np.abs(W).max(initial=1e-12))
    figure = go.Figure(
        go.Heatmap(
            z=W,
            x=[f"direction {i}" for i in range(W.shape[1])],
            y=names,
            colorscale="RdBu",
            zmin=-largest,
            zmax=largest,
        )
    )
    figure.update_yaxes(autorange="reversed")
    return _finish(figure, "Directions that the model learnt")


def _label(text: str) -> str:
    """Text that plotly shows as it is: it reads a subset of HTML in labels."""
    return encodable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")[:60]


def _marks(n: int) -> Any:
    """The kind of trace that draws n marks soonest."""
    return go.Scatter if n <= _DRAWN else go.Scattergl


def _finish(figure: go.Figure, title: str) -> go.Figure:
    return figure.update_layout(
        title=title,
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 60, "b": 50},
        font={"family": "system-ui, sans-serif"},
    )
