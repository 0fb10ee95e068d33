"""Summaries of benchmark records: a table beside the papers' numbers, and a figure."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import wilcoxon

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.functions import Array
from raybo.benchmarks.tables.base import Published, Task
from raybo.study.objective import Objective

Record = dict[str, Any]
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


@dataclass(frozen=True)
class Row:
    """What became of one rival on one problem, over its seeds.

    Attributes
    ----------
    evaluations : int
        After how many evaluations.
    median, quarter, three_quarters, mean : float
        Of the regret or the best value; `quarter` and `three_quarters` are the quartiles.
    worse : float, optional
        p-value of the hypothesis that the rival is no worse than the reference (one-sided
        Wilcoxon signed-rank test over the common seeds, as in Add-Tree's Table 1).
    seconds : float, optional
        Median over the seeds of the mean time per ask and tell.
    paper, paper_spread : float, optional
        The published number.
    loss : float, optional
        Median of the best losses, smaller being better whatever is shown.
    seeds : int
        Number of runs; 0 for a rival that only the paper ran.
    """

    problem: str
    rival: str
    evaluations: int
    seeds: int
    median: float | None = None
    quarter: float | None = None
    three_quarters: float | None = None
    mean: float | None = None
    worse: float | None = None
    seconds: float | None = None
    paper: float | None = None
    paper_spread: float | None = None
    loss: float | None = None


def curve(record: Record, quantity: str = "value") -> Array:
    """Best so far after each evaluation, shape (evaluations,).

    Parameters
    ----------
    record
        Of one run.
    quantity
        "value" in the objective's own units, or "regret", its distance from the optimum.
    """
    loss = Objective(record["mode"]).loss
    best = np.minimum.accumulate([loss(value) for value in record["values"]])
    if quantity == "regret":
        if record["optimum"] is None:
            raise BenchmarkError(f"the optimum of {record['problem']!r} is not known: no regret")
        return best - loss(record["optimum"])
    return np.array([loss(value) for value in best])  # the sign is its own inverse


def summarize(records: Sequence[Record], task: Task) -> list[Row]:
    """Rows of a task's table: per problem and budget each rival that ran, then the paper's own."""
    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        key = (record["problem"], record["rival"], record["evaluations"])
        groups.setdefault(key, []).append(record)
    rows = []
    for problem in dict.fromkeys(record["problem"] for record in records):
        own = {key: group for key, group in groups.items() if key[0] == problem}
        published = [p for p in task.published if p.problem == problem]
        stops = sorted({n for _, _, n in own} | {p.evaluations for p in published})
        for stop in stops:
            rows += _rows_at(problem, stop, own, published, task)
    return rows


def _rows_at(
    problem: str,
    stop: int,
    groups: dict[tuple[str, str, int], list[Record]],
    published: Iterable[Published],
    task: Task,
) -> list[Row]:
    """Rows of one problem after `stop` evaluations."""
    paper = {p.rival: p for p in published if p.evaluations == stop}
    # A longer run serves too where a paper prints an earlier number, but no plain end of one.
    fitting = {
        rival: group
        for (_, rival, n), group in groups.items()
        if n == stop or (paper and n > stop)
    }
    reference = fitting.get(task.reference)
    rows = [
        _row(problem, rival, stop, group, reference, paper.get(rival), task.quantity)
        for rival, group in fitting.items()
    ]
    if fitting:
        rows += [
            Row(problem, p.rival, stop, 0, paper=p.value, paper_spread=p.spread)
            for p in paper.values()
            if p.rival not in fitting
        ]
    return rows


def _row(
    problem: str,
    rival: str,
    stop: int,
    group: Sequence[Record],
    reference: Sequence[Record] | None,
    paper: Published | None,
    quantity: str,
) -> Row:
    ends = np.array([curve(record, quantity)[stop - 1] for record in group])
    quarter, median, three_quarters = np.quantile(ends, [0.25, 0.5, 0.75])
    losses = _final_losses(group, stop)
    p_value = None
    if reference is not None and reference is not group:
        p_value = wilcoxon_worse(losses, _final_losses(reference, stop))
    return Row(
        problem,
        rival,
        stop,
        seeds=len(group),
        median=float(median),
        quarter=float(quarter),
        three_quarters=float(three_quarters),
        mean=float(np.mean(ends)),
        worse=p_value,
        seconds=float(np.median([np.mean(record["seconds"]) for record in group])),
        paper=None if paper is None else paper.value,
        paper_spread=None if paper is None else paper.spread,
        loss=float(np.median(list(losses.values()))),
    )


def _final_losses(group: Sequence[Record], stop: int) -> dict[int, float]:
    """Best loss by seed."""
    loss = Objective(group[0]["mode"]).loss
    return {record["seed"]: loss(float(curve(record)[stop - 1])) for record in group}


def wilcoxon_worse(losses: dict[int, float], reference: dict[int, float]) -> float | None:
    """p-value of "no worse than the reference" over the common seeds; None without any."""
    seeds = sorted(losses.keys() & reference.keys())
    differences = np.array([losses[seed] - reference[seed] for seed in seeds])
    if not len(seeds):
        return None
    if not np.any(differences):
        return 1.0  # scipy has no statistic for all ties
    return float(wilcoxon(differences, alternative="greater").pvalue)


def print_table(rows: Sequence[Row], task: Task, console: Console | None = None) -> None:
    """Print the rows, one section per problem, the best median of each in bold."""
    console = console or Console()
    table = Table(title=f"{task.name}: {task.source}", caption=_caption(task))
    for name in ("problem", "after", "rival"):
        table.add_column(name, overflow="fold")
    for name in ("seeds", "median", "quartiles", "mean", "paper", "p", "s/ask"):
        table.add_column(name, justify="right", no_wrap=True)
    for i, row in enumerate(rows):
        first = i == 0 or _section(rows[i - 1]) != _section(row)
        last = i + 1 == len(rows) or _section(rows[i + 1]) != _section(row)
        table.add_row(*_texts(row, first, _is_best(row, rows)), end_section=last)
    console.print(table)


def _section(row: Row) -> tuple[str, int]:
    return row.problem, row.evaluations


def _is_best(row: Row, rows: Sequence[Row]) -> bool:
    losses = [r.loss for r in rows if _section(r) == _section(row) and r.loss is not None]
    return row.loss is not None and row.loss == min(losses)


def _texts(row: Row, first: bool, best: bool) -> list[str]:
    median = _number(row.median)
    spread = "" if row.paper_spread is None else f" ± {_number(row.paper_spread)}"
    return [
        row.problem if first else "",
        str(row.evaluations) if first else "",
        row.rival,
        str(row.seeds or "paper"),
        f"[bold]{median}[/bold]" if best else median,
        "" if row.quarter is None else f"{_number(row.quarter)} .. {_number(row.three_quarters)}",
        _number(row.mean),
        "" if row.paper is None else f"{_number(row.paper)}{spread}",
        "" if row.worse is None else f"{row.worse:.3f}",
        _number(row.seconds),
    ]


def _caption(task: Task) -> str:
    shown = "regret" if task.quantity == "regret" else "best value"
    return (
        f"{shown}; paper: its mean ± spread; p: one-sided Wilcoxon that the rival is worse than "
        f"{task.reference}; s/ask: seconds per ask and tell"
    )


def _number(value: float | None) -> str:
    """Four significant digits, whole numbers from 1000 on."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else f"{value:.4g}"


def write_figure(records: Sequence[Record], path: Path, title: str = "") -> None:
    """Write an HTML file: median and quartiles against evaluations, one panel per problem."""
    figure = draw_figure(records, title)
    config = importlib.import_module("raybo.report.plots").CONFIG
    figure.write_html(path, include_plotlyjs=True, config=config)


def draw_figure(records: Sequence[Record], title: str = "") -> Any:
    """Plotly figure of the curves; the regret on a log scale where the optimum is known."""
    if find_spec("plotly") is None:
        raise BenchmarkError("figures need plotly: pip install 'raybo[report]'")
    go = importlib.import_module("plotly.graph_objects")
    problems = list(dict.fromkeys(record["problem"] for record in records))
    rivals = list(dict.fromkeys(record["rival"] for record in records))
    wide = min(3, len(problems)) or 1
    subplots = importlib.import_module("plotly.subplots")
    high = math.ceil(len(problems) / wide) or 1
    figure = subplots.make_subplots(high, wide, subplot_titles=problems)
    for panel, problem in enumerate(problems):
        place = {"row": panel // wide + 1, "col": panel % wide + 1}
        mine = [record for record in records if record["problem"] == problem]
        known = all(record["optimum"] is not None for record in mine)
        for rival in dict.fromkeys(record["rival"] for record in mine):
            group = [record for record in mine if record["rival"] == rival]
            color = _COLORS[rivals.index(rival) % len(_COLORS)]
            for trace in _traces(go, group, rival, color, known):
                trace.showlegend = bool(trace.showlegend) and panel == 0
                figure.add_trace(trace, **place)
        figure.update_yaxes(type="log" if known else "linear", **place)
        figure.update_yaxes(title="regret" if known else "best value", **place)
        figure.update_xaxes(title="evaluations", **place)
    figure.update_layout(title=title, template="plotly_white", height=380 * high)
    return figure


def _traces(go: Any, group: Sequence[Record], rival: str, color: str, known: bool) -> list[Any]:
    """Band of the quartiles, then the median."""
    length = min(len(record["values"]) for record in group)
    curves = np.array([curve(r, "regret" if known else "value")[:length] for r in group])
    if known:
        curves = np.maximum(curves, 1e-12)  # a log axis has no zero
    low, median, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    x = np.arange(1, length + 1)
    common = {"legendgroup": rival, "hoverinfo": "skip", "showlegend": False}
    band = go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=f"rgba({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))}, 0.15)",
        line={"width": 0},
        **common,
    )
    line = go.Scatter(
        x=x, y=median, name=rival, legendgroup=rival, line={"color": color}, showlegend=True
    )
    return [band, line]
