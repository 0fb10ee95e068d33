"""Draw plotly figures of a study; `Result.plot_*` call these.

Parameters are drawn at their positions in the unit cube, with the values as ticks: a log scale, a
whole number and a category then look as the space says. Values beyond the scale, and trials
without a value, stand at the edge of a figure on an axis of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.errors import RayboError, StudyError
from raybo.space.box import Box
from raybo.space.columns import Column
from raybo.study.outcome import Outcome, encodable
from raybo.study.trial import State
from raybo.views import summary
from raybo.views.summary import Scale, Sheet, column_ticks
from raybo.views.text import shorten

try:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots
except ImportError:  # pragma: no cover  (the extra is installed for the tests)
    raise RayboError("plots need plotly: pip install 'raybo[report]'") from None

BLUE, ORANGE, GREY, RED = "#3b78d8", "#e8710a", "#8d99a8", "#d93848"
_SHOWN = 8  # parameters in one figure
_BARS = 12  # parameters in a figure of bars
_COLUMNS = 50  # directions in one figure
_LINES = 600  # trials in one figure of lines or bars: more cannot be distinguished
_CELLS = 41  # along each side of a picture of the model
_MOST_SUCCESS = 4  # parameters along which the probability of success is drawn
_DRAWN = 1000  # with more marks, starting WebGL pays; plotly.express switches at as many
_FAILED, _BEYOND = "failed", "beyond the scale"
_HEIGHTS = {_FAILED: 0.985, _BEYOND: 0.945}  # of marks at the edge of a figure
_NUMBERS = {"exponentformat": "e", "minexponent": 4}  # 1e-5, not 10 micro
_STAR = {"symbol": "star", "size": 15, "color": ORANGE, "line": {"color": "white", "width": 1}}
_CROSS = {"symbol": "x-thin", "size": 8, "line": {"color": RED, "width": 2}}
_DOT = {"size": 6, "color": "#222", "line": {"color": "white", "width": 1}}
_FAINT = [[0.0, "#b3cbf2"], [1.0, BLUE]]  # from early to late trials
TITLE_HEIGHT = 50  # above a figure
CONFIG = {"displayModeBar": False, "displaylogo": False, "responsive": True}


def plot_history(sheet: Sheet, optimum: float | None = None) -> go.Figure:
    """Draw the value of each trial and the best so far, with failures and the best marked.

    Buttons switch between the scale that shows most, all values, and a log scale: of the values
    where all are positive, else of their distance to the `optimum`, or to the best.
    """
    outcome, mode, done = sheet.outcome, sheet.outcome.mode, sheet.done
    numbers = np.array([t.number for t in sheet.trials])
    values, scale, name = sheet.values[done], sheet.scale, _label(outcome.metric or "value")
    best = sheet.best_so_far[done]
    figure = _framed(mode)
    marks = _marks(len(values))
    dots = {"color": GREY, "size": 6, "opacity": 0.75}
    line = {"color": BLUE, "width": 2.5, "shape": "hv"}
    say = {"text": _texts(sheet, np.flatnonzero(done)), "hovertemplate": "%{text}<extra></extra>"}
    figure.add_trace(
        marks(x=numbers[done], y=values, mode="markers", name="value", marker=dots, **say)
    )
    figure.add_trace(
        go.Scatter(
            x=numbers[done], y=best, mode="lines", name="best so far", line=line, hoverinfo="skip"
        )
    )
    if sheet.best is not None:
        _star(
            figure, numbers[sheet.best], sheet.values[sheet.best], _texts(sheet, [sheet.best])[0]
        )
    if optimum is not None:
        figure.add_trace(
            go.Scatter(
                x=numbers[[0, -1]],
                y=[optimum, optimum],
                mode="lines",
                name="known optimum",
                line={"color": ORANGE, "width": 1.5, "dash": "dash"},
                hoverinfo="skip",
            )
        )
    plain = len(figure.data)
    positive = len(values) > 0 and float(values.min()) > 0
    if optimum is not None or not positive:  # the distance to a goal can be drawn on a log scale
        goal = optimum if optimum is not None else outcome.best_value or 0.0
        for trace in figure.data[:2]:
            gap = np.abs(np.asarray(trace.y, dtype=float) - goal)
            figure.add_trace(trace).data[-1].y = np.where(gap > 0, gap, np.nan)
    distances = len(figure.data)
    _edge_marks(figure, numbers, sheet)
    kinds = ["plain"] * plain + ["distance"] * (distances - plain)
    kinds += [str(trace.name) for trace in figure.data[distances:]]
    buttons = []
    if _BEYOND in kinds:
        buttons.append(_button("most", {"plain", _BEYOND}, kinds, name, "linear", scale, mode))
    buttons.append(_button("all", {"plain"}, kinds, name, "linear"))
    if positive:
        buttons.append(_button("log", {"plain"}, kinds, name, "log"))
    if "distance" in kinds:
        what = "regret" if optimum is not None else "distance to the best"
        buttons.append(_button(what, {"distance"}, kinds, what, "log"))
    first = next((i for i, b in enumerate(buttons) if scale.log and b["label"] == "log"), 0)
    visible, layout = buttons[first]["args"]
    for trace, shown in zip(figure.data, visible["visible"], strict=True):
        trace.visible = shown
    menu = {"type": "buttons", "direction": "right", "buttons": buttons, "active": first}
    place = {"x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom", "pad": {"t": 0, "b": 4}}
    figure.update_layout(updatemenus=[{**menu, **place, "font": {"size": 12}}])
    for first in list(summary.searches(outcome))[outcome.lanes :]:  # where another search began
        figure.add_vline(first - 0.5, line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_xaxes(title={"text": "trial", "standoff": 4})
    figure.update_yaxes(_NUMBERS)
    figure.update_layout({key.replace(".", "_"): value for key, value in layout.items()})
    figure = _finish(figure, "History", legend=True)
    return figure.update_layout(legend={"y": -0.24, "yanchor": "top"})  # buttons are above


def _button(
    label: str,
    kinds: set[str],
    all_kinds: list[str],
    title: str,
    axis: str,
    scale: Scale | None = None,
    mode: str = "min",
) -> dict[str, Any]:
    """A button of the history that shows the traces of some kinds; failures are always shown."""
    bounds = None if scale is None else _padded(scale, mode)
    layout: dict[str, Any] = {"yaxis.title.text": title, "yaxis.type": axis}
    layout["yaxis.range"] = bounds
    layout["yaxis.autorange"] = bounds is None
    shown = [kind in {*kinds, _FAILED} for kind in all_kinds]
    return {"label": label, "method": "update", "args": [{"visible": shown}, layout]}


def plot_importances(sheet: Sheet) -> go.Figure:
    """Draw the share of each parameter in the variation of the model's mean."""
    shares = list(sheet.importances.items())
    bars = [(_tail(name), share) for name, share in shares[:_BARS]]
    rest = 1.0 - sum(share for _, share in shares)
    if len(shares) > _BARS:
        others = sum(share for _, share in shares[_BARS:])
        bars.append((f"{len(shares) - _BARS} others", others))
    if rest >= 0.005:
        bars.append(("together", rest))
    bars.reverse()
    colors = [GREY if name == "together" or name.endswith(" others") else BLUE for name, _ in bars]
    figure = go.Figure(
        go.Bar(
            x=[share for _, share in bars],
            y=list(range(len(bars))),
            text=[f"{share:.1%}" if share < 0.0995 else f"{share:.0%}" for _, share in bars],
            textposition="outside",
            cliponaxis=False,
            orientation="h",
            marker={"color": colors},
            hoverinfo="skip",
        )
    )
    largest = max((share for _, share in bars), default=1.0)
    figure.update_xaxes(range=[0, 1.15 * max(largest, 0.01)], tickformat=".0%", nticks=6)
    names = [name for name, _ in bars]
    figure.update_yaxes(tickvals=list(range(len(bars))), ticktext=names, showgrid=False)
    figure.update_layout(height=70 + 26 * len(bars))
    return _finish(figure, "Which parameters matter")


def plot_contour(sheet: Sheet) -> go.Figure:
    """Draw the model's mean over the two parameters that matter most, the others at the best.

    Raises
    ------
    StudyError
        When there is no model, or the best config has fewer than two parameters.
    """
    _ = sheet.surface  # says why there is none
    best = sheet.best or 0
    active = [c for c in sheet.columns if sheet.active[best, c.index]]
    if len(active) < 2:
        raise StudyError("the best config has one parameter: there is no plane to draw")
    across, up = active[:2]
    x, y = _grid_of(across), _grid_of(up)
    rows = np.repeat(sheet.rows[best][None], len(x) * len(y), axis=0)
    rows[:, across.index], rows[:, up.index] = np.tile(x, len(y)), np.repeat(y, len(x))
    z = sheet.mean(sheet.outcome.space.whole.snap(rows)).reshape(len(y), len(x))
    cells = not (across.ordered and up.ordered)
    figure = go.Figure(_picture(x, y, z, sheet.scale, sheet.outcome, cells=cells))
    aside, above = (_spread(column, len(sheet.rows)) for column in (across, up))
    here = sheet.active[:, across.index] & sheet.active[:, up.index]
    for which, name, marker in (
        (sheet.done & here, "trial", _DOT),
        (~sheet.done & here, _FAILED, _CROSS),
    ):
        few = np.flatnonzero(which)
        if len(few):
            figure.add_trace(
                _marks(len(few))(
                    x=(sheet.rows[:, across.index] + aside)[few],
                    y=(sheet.rows[:, up.index] + above)[few],
                    mode="markers",
                    name=name,
                    marker=marker,
                    text=_texts(sheet, few, (across, up)),
                    hovertemplate="%{text}<extra></extra>",
                )
            )
    point = sheet.rows[best]
    text = _texts(sheet, [best], (across, up))[0]
    _star(figure, point[across.index], point[up.index], text)
    figure.update_xaxes(_ticks(across), title=_tail(across.name), showgrid=False)
    figure.update_yaxes(_ticks(up), title=_tail(up.name), showgrid=False)
    return _finish(figure, "The two parameters that matter most", legend=True)


def slices(sheet: Sheet) -> list[go.Figure]:
    """Draw the value against each of the parameters that matter most, one figure each."""
    return [_slice(sheet, column) for column in sheet.columns[:_SHOWN]]


def _slice(sheet: Sheet, column: Column) -> go.Figure:
    outcome = sheet.outcome
    figure = _framed(outcome.mode)
    here = sheet.active[:, column.index]
    x = sheet.rows[:, column.index] + _spread(column, len(here))
    few = np.flatnonzero(here & sheet.done)
    numbers = np.array([t.number for t in sheet.trials])
    shade = {"color": numbers[few], "colorscale": _FAINT, "size": 6, "opacity": 0.8}
    figure.add_trace(
        _marks(len(few))(
            x=x[few],
            y=sheet.values[few],
            mode="markers",
            name="value",
            marker=shade,
            text=_texts(sheet, few, (column,)),
            hovertemplate="%{text}<extra></extra>",
        )
    )
    best = sheet.best
    if best is not None and here[best]:
        if not sheet.why_no_model:
            grid = _grid_of(column)
            rows = np.repeat(sheet.rows[best][None], len(grid), axis=0)
            rows[:, column.index] = grid
            mean = sheet.mean(outcome.space.whole.snap(rows))
            mode = "lines" if column.ordered else "markers"
            mark = {"symbol": "line-ew", "size": 22, "line": {"color": GREY, "width": 2}}
            line = {"color": GREY, "width": 2}
            drawn = {"line": line} if mode == "lines" else {"marker": mark}
            figure.add_trace(
                go.Scatter(x=grid, y=mean, mode=mode, name="model", hoverinfo="skip", **drawn)
            )
        text = _texts(sheet, [best], (column,))[0]
        _star(figure, x[best], sheet.values[best], text)
    _edge_marks(figure, x, sheet, here, (column,))
    figure.update_xaxes(_ticks(column), title=_tail(column.name))
    figure.update_yaxes(_NUMBERS)
    axis = figure.layout.yaxis
    axis.title = _label(outcome.metric or "value")
    axis.type = "log" if sheet.scale.log else "linear"
    if not sheet.scale.log:
        axis.range = _padded(sheet.scale, outcome.mode)
    figure.update_layout(height=260)
    return _finish(figure, "")


def success_slices(sheet: Sheet) -> list[go.Figure]:
    """Draw the probability of success along the parameters it depends on most, one figure each.

    The other parameters are as in the best config, or in the first trial where there is none.
    """
    if sheet.success is None:
        return []
    here = sheet.best or 0
    curves = []
    for column in sheet.columns:
        if sheet.active[here, column.index]:
            grid = _grid_of(column)
            rows = np.repeat(sheet.rows[here][None], len(grid), axis=0)
            rows[:, column.index] = grid
            share = np.exp(sheet.success.log_probability(sheet.outcome.space.whole.snap(rows)))
            curves.append((float(np.ptp(share)), column, grid, share))
    curves.sort(key=lambda curve: -curve[0])
    return [_success(sheet, *curve[1:]) for curve in curves[:_MOST_SUCCESS]]


def _success(sheet: Sheet, column: Column, grid: Array, share: Array) -> go.Figure:
    figure = _framed("min")
    mode = "lines" if column.ordered else "lines+markers"
    line = {"color": BLUE, "width": 2.5}
    figure.add_trace(go.Scatter(x=grid, y=share, mode=mode, name="probability", line=line))
    active = sheet.active[:, column.index]
    x = sheet.rows[:, column.index] + _spread(column, len(active))
    counts = np.array([t.counts for t in sheet.trials])
    for name, which, height, color in (
        ("has a value", sheet.done, 1.0, GREY),
        ("failed", ~sheet.done & counts, 0.0, RED),
    ):
        few = np.flatnonzero(active & which)
        mark = {"color": color, "symbol": "line-ns-open", "size": 9}
        y = np.full(len(few), height)
        figure.add_trace(_marks(len(few))(x=x[few], y=y, mode="markers", name=name, marker=mark))
    figure.update_xaxes(_ticks(column), title=_tail(column.name))
    figure.update_yaxes(range=[-0.06, 1.06], tickformat=".0%", title="succeeds")
    figure.update_layout(height=240)
    return _finish(figure, "")


def plot_slices(sheet: Sheet) -> go.Figure:
    """Draw the value against each of the parameters that matter most."""
    parts = slices(sheet)
    across = min(4, max(1, len(parts)))
    down = max(1, -(-len(parts) // across))
    specs = [[{"secondary_y": True}] * across for _ in range(down)]
    figure = make_subplots(down, across, specs=specs, vertical_spacing=0.2 / down)
    for i, part in enumerate(parts):
        row, col = i // across + 1, i % across + 1
        for trace in part.data:
            figure.add_trace(trace, row, col, secondary_y=trace.yaxis == "y2")
        figure.update_xaxes(part.layout.xaxis, row=row, col=col)
        for axis, second in ((part.layout.yaxis, False), (part.layout.yaxis2, True)):
            kept = {k: v for k, v in axis.to_plotly_json().items() if k != "overlaying"}
            figure.update_yaxes(kept, row=row, col=col, secondary_y=second)
    figure.update_layout(height=260 * down + 60, showlegend=False)
    return _finish(figure, "Slices")


def plot_parallel(sheet: Sheet) -> go.Figure:
    """Draw parallel coordinates of the best trials, of failures and a sample of the others."""
    outcome, scale, columns = sheet.outcome, sheet.scale, sheet.columns[:_SHOWN]
    losses = sheet.values if outcome.mode == "min" else -sheet.values
    ranked = np.argsort(losses, kind="stable")  # failures, NaN, come last
    few = ranked
    if len(ranked) > _LINES:
        even = np.linspace(_LINES // 2, len(ranked) - 1, _LINES // 2).astype(np.intp)
        few = np.concatenate([ranked[: _LINES // 2], ranked[even]])
    few = few[::-1]  # the best are drawn last, over the others
    place = np.empty(len(ranked))
    place[ranked] = np.linspace(1.0, 0.0, len(ranked)) ** 2
    dimensions = [_dimension(sheet, column, few) for column in columns]
    values = scale.place(sheet.values[few])
    ticks, bounds = scale.ticks(), [0.0, 1.0]
    if not sheet.done[few].all():
        edge = 1.12 if outcome.mode == "min" else -0.12
        values = np.where(sheet.done[few], values, edge)
        ticks, bounds = [*ticks, (edge, _FAILED)], [min(0.0, edge), max(1.0, edge)]
    dimensions.append(_axis(outcome.metric or "value", values, ticks, bounds))
    color = np.where(sheet.done[few], place[few], -1.0)
    shades = [[0.0, RED], [0.4, RED], [0.41, "#c9d0d9"], [0.75, "#9db4d6"], [1.0, BLUE]]
    line = {"color": color, "colorscale": shades, "cmin": -1.0, "cmax": 1.0}
    figure = go.Figure(
        go.Parcoords(
            dimensions=dimensions,
            line=line,
            labelfont={"size": 12},
            tickfont={"size": 11},
            labelangle=-12 if len(dimensions) > 5 else 0,
        )
    )
    figure = _finish(figure, "Parallel coordinates")
    figure.update_layout(height=420, margin={"t": 70, "l": 70, "r": 60, "b": 30})
    return figure.update_layout(meta={"least_width": 90 * len(dimensions)})


def _dimension(sheet: Sheet, column: Column, few: Any) -> dict[str, Any]:
    """One axis of parallel coordinates; trials in which it is inactive stand below it."""
    values, ticks, low = sheet.rows[few, column.index], column_ticks(column), 0.0
    here = sheet.active[few, column.index]
    if not here.all():
        low = -0.12
        values, ticks = np.where(here, values, low), [*ticks, (low, "inactive")]
    return _axis(column.name, values, ticks, [low, 1.0])


def _axis(
    name: str, values: Array, ticks: Sequence[tuple[float, str]], bounds: list[float]
) -> dict[str, Any]:
    texts = [_label(shorten(text, 14)) for _, text in ticks]
    places = [u for u, _ in ticks]
    shown = {"label": _tail(name, 16), "range": bounds}
    return {**shown, "values": values, "tickvals": places, "ticktext": texts}


def plot_timeline(sheet: Sheet) -> go.Figure:
    """Draw the trials of each worker over time; for many trials, the number of busy workers."""
    outcome, ran = sheet.outcome, summary.timed(sheet.outcome)
    if not ran:
        return _finish(go.Figure(), "Workers")
    origin = min(float(t.started or 0.0) for t in ran)
    title = "Workers"
    if outcome.use is not None:
        title += f": {outcome.use:.0%} busy in the last session"
    if len(ran) > _LINES:
        return _finish(_busy_curve(ran, origin), title)
    figure, placed = go.Figure(), summary.timeline(outcome)
    for state, color in ((State.DONE, BLUE), (State.STOPPED, GREY), (State.FAILED, RED)):
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
    return _finish(figure, title, legend=True)


def _busy_curve(ran: list[Any], origin: float) -> go.Figure:
    starts = np.array([float(t.started) - origin for t in ran])
    ends = np.array([float(t.finished) - origin for t in ran])
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


def plot_tree(sheet: Sheet) -> go.Figure:
    """Draw the values of the trials of each branch, with the best and the median of each."""
    outcome, scale = sheet.outcome, sheet.scale
    found = summary.branches(outcome)
    y = np.arange(len(found))[::-1]  # the first on top
    figure = go.Figure()
    spread = np.random.default_rng(0)
    shown = [np.isin(branch.numbers, [t.number for t in sheet.trials]) for branch in found]
    lines = np.repeat(y, [which.sum() for which in shown])
    at = lines + spread.uniform(-0.22, 0.22, len(lines))
    parts = [branch.values[which] for branch, which in zip(found, shown, strict=True)]
    values = np.concatenate([np.empty(0), *parts])
    texts = [
        f"trial {n}"
        for branch, which in zip(found, shown, strict=True)
        for n in np.asarray(branch.numbers)[which]
    ]
    drawn = np.clip(values, scale.low, scale.high)
    figure.add_trace(
        _marks(len(values))(
            x=drawn,
            y=at,
            mode="markers",
            name="value",
            marker={"color": GREY, "size": 6, "opacity": 0.6},
            text=[f"{t}<br>{v:.6g}" for t, v in zip(texts, values, strict=True)],
            hovertemplate="%{text}<extra></extra>",
        )
    )
    good = min if outcome.mode == "min" else max
    some = [(i, branch.values) for i, branch in zip(y, found, strict=True) if len(branch.values)]
    middle = {"symbol": "line-ns", "size": 20, "line": {"color": BLUE, "width": 3}}
    for name, marker, of in (("median", middle, np.median), ("best", _STAR, good)):
        x = [float(of(own)) for _, own in some]
        figure.add_trace(
            go.Scatter(
                x=np.clip(x, scale.low, scale.high),
                y=[i for i, _ in some],
                mode="markers",
                name=name,
                marker=marker,
                text=[f"{name} {v:.6g}" for v in x],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    labels = []
    for branch in found:
        failed = f", {branch.failed} failed" if branch.failed else ""
        inner = "\u2003" * (len(branch.path) // 2 - 1)
        labels.append(f"{inner}{_tail(branch.path[-1])}  ({len(branch.values)}{failed})")
    figure.update_xaxes(_NUMBERS, title=_label(outcome.metric or "value"))
    figure.update_xaxes(type="log" if scale.log else "linear")
    figure.update_yaxes(tickvals=y, ticktext=labels, showgrid=False, zeroline=False)
    figure.update_layout(height=max(220, 110 + 44 * len(found)))
    return _finish(figure, "Branches", legend=True)


def plot_embeddings(sheet: Sheet) -> list[go.Figure]:
    """Draw the plane of each embedding of two dimensions; else the best so far of each."""
    found = summary.lanes(sheet.outcome)
    if found and all(lane.points.shape[1] == 2 for lane in found):
        return [_plane(sheet, lane) for lane in found]
    outcome = sheet.outcome
    figure = go.Figure()
    for lane in found:
        best = np.minimum if outcome.mode == "min" else np.maximum
        figure.add_trace(
            go.Scatter(
                x=np.arange(1, len(lane.values) + 1),
                y=best.accumulate(lane.values),
                mode="lines",
                line={"shape": "hv", "width": 2.5},
                name=f"embedding {lane.number}",
            )
        )
    figure.update_xaxes(title="evaluations of the embedding")
    figure.update_yaxes(_NUMBERS, title=f"best {_label(outcome.metric or 'value')}")
    figure.update_yaxes(type="log" if sheet.scale.log else "linear")
    return [_finish(figure, "Embeddings", legend=True)]


def _plane(sheet: Sheet, lane: summary.Lane) -> go.Figure:
    """The points of an embedding of two dimensions, over the model's mean where there is one."""
    from raybo.methods.sensitivity import Surface  # noqa: PLC0415  (loads torch)

    outcome, sign = sheet.outcome, 1.0 if sheet.outcome.mode == "min" else -1.0
    bound = float(np.abs(lane.points).max(initial=1e-12))
    figure = go.Figure()
    try:
        box = Box(2)
        surface = Surface.of(box, (lane.points / bound + 1.0) / 2.0, sign * lane.values)
    except StudyError:  # too few points: they are drawn all the same
        pass
    else:
        u = np.linspace(0.0, 1.0, _CELLS)
        rows = np.column_stack([np.tile(u, _CELLS), np.repeat(u, _CELLS)])
        z = sign * surface.mean(rows).reshape(_CELLS, _CELLS)
        at = bound * (2.0 * u - 1.0)
        figure.add_trace(_picture(at, at, z, sheet.scale, outcome, bar=False))
    text = [f"trial {n}<br>{v:.6g}" for n, v in zip(lane.numbers, lane.values, strict=True)]
    figure.add_trace(
        _marks(len(text))(
            x=lane.points[:, 0],
            y=lane.points[:, 1],
            mode="markers",
            marker=_DOT,
            name="trial",
            text=text,
            hovertemplate="%{text}<extra></extra>",
        )
    )
    best = int(np.argmin(sign * lane.values))
    _star(figure, lane.points[best, 0], lane.points[best, 1], text[best])
    title = f"{lane.number}: best {lane.values[best]:.6g} of {len(lane.values)}"
    edge = {"range": [-1.08 * bound, 1.08 * bound], "showgrid": False, "zeroline": False}
    figure.update_xaxes(edge, title=title, nticks=5)
    figure.update_yaxes(edge, nticks=5)
    figure.update_layout(height=280)
    return _finish(figure, "")


def plot_curves(sheet: Sheet) -> go.Figure:
    """Draw what trials reported on their way; the ends of those stopped early are marked."""
    outcome, figure = sheet.outcome, _framed(sheet.outcome.mode)
    trials = [t for t in outcome.trials if t.curve]
    shown = trials[:: -(-len(trials) // _LINES) or 1]
    best = outcome.best_trial
    groups = {GREY: [t for t in shown if t.state is not State.DONE]}
    groups[BLUE] = [t for t in shown if t.state is State.DONE and t is not best]
    groups[ORANGE] = [best] if best is not None and best.curve else []
    for color, group in groups.items():
        x, y, say = [], [], []
        for trial in group:  # one trace for all: a gap ends a line
            x += [*trial.curve, None]
            y += [*trial.curve.values(), None]
            say += [f"trial {trial.number}"] * (len(trial.curve) + 1)
        line = {"color": color, "width": 3 if color == ORANGE else 1}
        figure.add_scatter(
            x=x, y=y, text=say, mode="lines", line=line, opacity=0.6, showlegend=False
        )
    ends = [(max(t.curve), t) for t in shown if t.state is State.STOPPED]
    figure.add_scatter(
        x=[step for step, _ in ends],
        y=[t.curve[step] for step, t in ends],
        text=[f"trial {t.number}, stopped early" for _, t in ends],
        mode="markers",
        marker={"color": GREY, "size": 5},
        showlegend=False,
    )
    values = np.array([v for t in shown for v in t.curve.values()])
    scale = Scale.of(values, outcome.mode)
    axis = {"type": "log", "dtick": "D2"} if scale.log else {"range": _padded(scale, outcome.mode)}
    figure.update_yaxes(title=_label(outcome.metric or "value"), **axis)
    figure.update_xaxes(title="step")
    return _finish(figure, "Curves")


def plot_shares(sheet: Sheet) -> go.Figure:
    """Draw the shares of the members of `auto` over the trials."""
    figure, members = go.Figure(), _members(sheet)
    numbers = [t.number for t in members.trials]
    for name, share in zip(members.names, members.shares.T, strict=True):
        figure.add_scatter(
            x=numbers, y=share, name=name, mode="lines", stackgroup="shares", line={"width": 0.5}
        )
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    figure.update_xaxes(title="trial")
    return _finish(figure, "Shares of the proposals", legend=True)


def plot_predictions(sheet: Sheet) -> go.Figure:
    """Draw what the members of `auto` expected of each trial against what came."""
    figure, members = _framed(sheet.outcome.mode), _members(sheet)
    scale = sheet.scale
    for name in members.names:
        expected, values = members.expected(name, sheet.outcome.goal)
        figure.add_trace(
            _marks(len(values))(
                x=scale.place(expected).clip(0, 1),
                y=scale.place(values).clip(0, 1),
                name=name,
                mode="markers",
                marker={"size": 6, "opacity": 0.6},
            )
        )
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"color": GREY, "dash": "dot"}, showlegend=False
    )
    ticks = dict(zip(("tickvals", "ticktext"), zip(*scale.ticks(), strict=True), strict=True))
    figure.update_xaxes(title="expected", range=[-0.03, 1.03], **ticks)
    figure.update_yaxes(title="came", range=[-0.03, 1.03], **ticks)
    return _finish(figure, "Predictions and what came", legend=True)


def _members(sheet: Sheet) -> summary.Members:
    if sheet.members is None:
        raise StudyError("only `auto` has members, once its initial design is told")
    return sheet.members


def plot_directions(sheet: Sheet) -> go.Figure:
    """Draw the weights of the parameters in the directions that the model learnt."""
    outcome, found = sheet.outcome, summary.directions(sheet.outcome)
    names = [_tail(c.name) for c in outcome.space.columns]
    W = np.zeros((len(names), 0)) if found is None else found[:, :_COLUMNS]
    largest = float(np.abs(W).max(initial=1e-12))
    figure = go.Figure(
        go.Heatmap(
            z=W,
            x=[f"direction {i + 1}" for i in range(W.shape[1])],
            y=names,
            colorscale="RdBu",
            zmin=-largest,
            zmax=largest,
        )
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(height=max(260, 110 + 18 * min(len(names), 60)))
    return _finish(figure, "Directions that the model learnt")


def _framed(mode: str) -> go.Figure:
    """A figure with a second axis over the first, for marks at its edge."""
    figure = go.Figure()
    bounds = [0, 1] if mode == "min" else [1, 0]  # the edge is on the side of bad values
    shown = {"overlaying": "y", "range": bounds, "visible": False, "fixedrange": True}
    return figure.update_layout(yaxis2=shown)


def _edge_marks(
    figure: go.Figure,
    x: Array,
    sheet: Sheet,
    here: Any = True,
    columns: Sequence[Column] = (),
) -> None:
    """Mark the failed trials, and those whose values lie beyond the scale, at the edge."""
    scale, done = sheet.scale, sheet.done
    bad = sheet.values > scale.high if sheet.outcome.mode == "min" else sheet.values < scale.low
    symbol = "triangle-up" if sheet.outcome.mode == "min" else "triangle-down"
    for name, which, marker in (
        (_BEYOND, bad, {"symbol": symbol, "size": 8, "color": GREY}),
        (_FAILED, ~done, _CROSS),
    ):
        few = np.flatnonzero(which & here)
        if len(few):
            figure.add_trace(
                go.Scatter(
                    x=x[few],
                    y=np.full(len(few), _HEIGHTS[name]),
                    yaxis="y2",
                    mode="markers",
                    name=name,
                    marker=marker,
                    text=_texts(sheet, few, columns),
                    hovertemplate="%{text}<extra></extra>",
                )
            )


def _star(figure: go.Figure, x: float, y: float, text: str) -> None:
    """Mark the best trial."""
    say = {"text": [text], "hovertemplate": "%{text}<extra></extra>"}
    figure.add_trace(go.Scatter(x=[x], y=[y], mode="markers", name="best", marker=_STAR, **say))


def _picture(
    x: Array,
    y: Array,
    z: Array,
    scale: Scale,
    outcome: Outcome,
    *,
    bar: bool = True,
    cells: bool = False,
) -> go.Contour | go.Heatmap:
    """The model's mean over a plane: the better, the darker; in `cells` if one has no order."""
    ticks = scale.ticks()
    title = {"text": _label(outcome.metric or "value"), "side": "right"}
    size = {"thickness": 12, "outlinewidth": 0, "len": 0.9}
    shown = {"tickvals": [u for u, _ in ticks], "ticktext": [t for _, t in ticks]}
    lines = {"color": "rgba(255,255,255,0.25)", "width": 1}
    smooth = {"contours": {"coloring": "heatmap", "showlines": True}, "line": lines}
    draw: Any = go.Heatmap if cells else partial(go.Contour, ncontours=16, **smooth)
    return draw(
        x=x,
        y=y,
        z=scale.place(z),
        zmin=0.0,
        zmax=1.0,
        colorscale="Blues",
        reversescale=outcome.mode == "min",
        showscale=bar,
        colorbar={"title": title, **size, **shown},
        hoverinfo="skip",
        name="model",
        showlegend=False,
    )


def _padded(scale: Scale, mode: str) -> list[float]:
    """Bounds of a linear axis, with room for the marks at its bad edge."""
    width = scale.high - scale.low
    below, above = (0.05, 0.14) if mode == "min" else (0.14, 0.05)
    return [scale.low - below * width, scale.high + above * width]


def _ticks(column: Column) -> dict[str, Any]:
    """An axis of positions, labelled by the values of a column."""
    ticks = column_ticks(column)
    shown = {"range": [-0.04, 1.04], "zeroline": False}
    texts = [_label(shorten(text, 14)) for _, text in ticks]
    return {**shown, "tickvals": [u for u, _ in ticks], "ticktext": texts}


def _spread(column: Column, n: int) -> Array:
    """Small shifts, so that the trials of one category do not hide each other."""
    if column.ordered:
        return np.zeros(n)
    width = 0.25 / (column.parameter.cardinality or 1)
    return np.random.default_rng(column.index).uniform(-width, width, n)


def _grid_of(column: Column) -> Array:
    """Positions on a column at which to ask the model."""
    grid = column.parameter.grid
    return grid.positions() if grid and grid.size <= _CELLS else np.linspace(0.0, 1.0, _CELLS)


def _texts(sheet: Sheet, few: Any, columns: Sequence[Column] = ()) -> list[str]:
    """What a reader sees when pointing at a trial."""
    texts = []
    for i in few:
        trial = sheet.trials[i]
        lines = [f"trial {trial.number}"]
        for column in columns:
            value = column.parameter.decode(float(sheet.rows[i, column.index]))
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            lines.append(f"{_tail(column.name)} {_label(shown)}")
        result = f"{trial.value:.6g}" if trial.value is not None else _label(trial.reason or "")
        texts.append("<br>".join([*lines, result]))
    return texts


def _tail(name: str, most: int = 24) -> str:
    """The end of a path, which tells more than its beginning, as a label."""
    return _label(name if len(name) <= most else "…" + name[1 - most :])


def _label(text: str) -> str:
    """Text escaped and cut for a label, in which plotly interprets some HTML."""
    return encodable(text)[:60].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _marks(n: int) -> Any:
    """Kind of trace that draws n marks fastest."""
    return go.Scatter if n <= _DRAWN else go.Scattergl


def _finish(figure: go.Figure, title: str, *, legend: bool = False) -> go.Figure:
    return figure.update_layout(
        title=title,
        template="plotly_white",
        margin={"l": 60, "r": 20, "t": TITLE_HEIGHT, "b": 50},
        font={"family": "system-ui, sans-serif"},
        showlegend=legend,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
