"""Summaries of benchmark runs: a table beside the papers' numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import wilcoxon

from raybo.arrays import Array
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.results import Finished
from raybo.benchmarks.tables.base import Published, Task
from raybo.study.objective import Objective


@dataclass(frozen=True)
class Row:
    """Results of one tuner on one problem, over its seeds.

    Attributes
    ----------
    evaluations : int
        Number of evaluations after which the results are taken.
    median, quarter, three_quarters, mean : float
        Of the regret or the best value; `quarter` and `three_quarters` are the quartiles.
    worse : float, optional
        p-value of the hypothesis that the tuner is no worse than the reference (one-sided
        Wilcoxon signed-rank test over the common seeds, as in Add-Tree's Table 1).
    seconds : float, optional
        Median over the seeds of the mean time per ask and tell.
    paper, paper_spread : float, optional
        The published number.
    loss : float, optional
        Median of the best losses; smaller is better, whatever the table shows.
    seeds : int
        Number of runs; 0 for a tuner that only the paper ran.
    """

    problem: str
    tuner: str
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


def curve(run: Finished, quantity: str = "value") -> Array:
    """Return the best so far after each evaluation, shape (evaluations,).

    Parameters
    ----------
    run
        What was run.
    quantity
        "value" in the units of the objective, or "regret", the distance from the optimum.
    """
    loss = Objective(run.mode).loss
    best = np.minimum.accumulate([loss(value) for value in run.values])
    if quantity == "regret":
        if run.optimum is None:
            raise BenchmarkError(f"the optimum of {run.cell.problem!r} is not known: no regret")
        return best - loss(run.optimum)
    return np.array([loss(value) for value in best])  # the sign is its own inverse


def summarize(runs: Sequence[Finished], task: Task) -> list[Row]:
    """Return the rows of a table: for each problem and budget our tuners, then the paper's."""
    groups: dict[tuple[str, str, int], list[Finished]] = {}
    for run in runs:
        cell = run.cell
        groups.setdefault((cell.problem, cell.tuner, cell.evaluations), []).append(run)
    rows = []
    for problem in dict.fromkeys(run.cell.problem for run in runs):
        own = {key: group for key, group in groups.items() if key[0] == problem}
        published = [p for p in task.published if p.problem == problem]
        stops = sorted({n for _, _, n in own} | {p.evaluations for p in published})
        for stop in stops:
            rows += _rows_at(problem, stop, own, published, task)
    return rows


def _rows_at(
    problem: str,
    stop: int,
    groups: dict[tuple[str, str, int], list[Finished]],
    published: Iterable[Published],
    task: Task,
) -> list[Row]:
    """Return the rows of one problem after `stop` evaluations."""
    paper = {p.tuner: p for p in published if p.evaluations == stop}
    # Where a paper prints a number for `stop`, longer runs are read off there too.
    fitting = {
        tuner: group
        for (_, tuner, n), group in groups.items()
        if n == stop or (paper and n > stop)
    }
    reference = fitting.get(task.reference)
    rows = [
        _row(problem, tuner, stop, group, reference, paper.get(tuner), task.quantity)
        for tuner, group in fitting.items()
    ]
    if fitting:
        rows += [
            Row(problem, p.tuner, stop, 0, paper=p.value, paper_spread=p.spread)
            for p in paper.values()
            if p.tuner not in fitting
        ]
    return rows


def _row(
    problem: str,
    tuner: str,
    stop: int,
    group: Sequence[Finished],
    reference: Sequence[Finished] | None,
    paper: Published | None,
    quantity: str,
) -> Row:
    ends = np.array([curve(run, quantity)[stop - 1] for run in group])
    quarter, median, three_quarters = np.quantile(ends, [0.25, 0.5, 0.75])
    losses = _final_losses(group, stop)
    p_value = None
    if reference is not None and reference is not group:
        p_value = wilcoxon_worse(losses, _final_losses(reference, stop))
    return Row(
        problem,
        tuner,
        stop,
        seeds=len(group),
        median=float(median),
        quarter=float(quarter),
        three_quarters=float(three_quarters),
        mean=float(np.mean(ends)),
        worse=p_value,
        seconds=float(np.median([np.mean(run.seconds) for run in group])),
        paper=None if paper is None else paper.value,
        paper_spread=None if paper is None else paper.spread,
        loss=float(np.median(list(losses.values()))),
    )


def _final_losses(group: Sequence[Finished], stop: int) -> dict[int, float]:
    """Return the best loss by seed."""
    loss = Objective(group[0].mode).loss
    return {run.cell.seed: loss(float(curve(run)[stop - 1])) for run in group}


def wilcoxon_worse(losses: dict[int, float], reference: dict[int, float]) -> float | None:
    """Return the p-value of "no worse than the reference" over the common seeds, if any."""
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
    for name in ("problem", "after", "tuner"):
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
        row.tuner,
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
        f"{shown}; paper: its mean ± spread; p: one-sided Wilcoxon that the tuner is worse than "
        f"{task.reference}; s/ask: seconds per ask and tell"
    )


def _number(value: float | None) -> str:
    """Return four significant digits, or a whole number from 1000 on."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else f"{value:.4g}"
