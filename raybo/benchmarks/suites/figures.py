"""The figure of a suite: what all problems give on average, then the regrets on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from raybo.benchmarks.figures import Panel, draw_panels, grouped
from raybo.benchmarks.results import Finished
from raybo.benchmarks.suites.scores import Scale, Scores, best_loss
from raybo.views.plots import CONFIG

_LEAST = 1e-4  # regret; in tables many runs end at zero: a smaller one hides the others


def write_suite(
    runs: Sequence[Finished],
    scale: Mapping[str, Scale],
    stops: Sequence[int],
    path: Path,
    title: str = "",
) -> None:
    """Write an HTML file: mean regret and mean rank of a suite, then a panel per problem."""
    figure = draw_panels(suite_panels(runs, scale, stops), title)
    figure.write_html(path, include_plotlyjs=True, config=CONFIG)


def suite_panels(
    runs: Sequence[Finished], scale: Mapping[str, Scale], stops: Sequence[int]
) -> list[Panel]:
    """Return mean regret and mean rank after every stop, then the regrets on each problem.

    Noisy problems are scored at the stops alone, all others after every evaluation.
    """
    scores = [Scores.of(runs, scale, stop) for stop in stops]
    at = np.array(stops, dtype=np.float64)
    ranks = [found.mean_ranks() for found in scores]
    means = {t: np.array([[s.mean(t) for s in scores]]) for t in scores[-1].complete}
    summary = [
        Panel(
            "mean over problems", "normalised regret", True, {t: (at, y) for t, y in means.items()}
        ),
        Panel(
            "mean rank",
            "rank; 1 is best",
            False,
            {t: (at, np.array([[r[t] for r in ranks]])) for t in ranks[-1]},
        ),
    ]
    for problem, groups in grouped(runs).items():
        curves = {}
        for tuner, group in groups.items():
            noisy = bool(group[0].deployed)
            x = at if noisy else np.arange(1.0, group[0].cell.evaluations + 1)
            rows = [[scale[problem].regret(best_loss(r, int(n))) for n in x] for r in group]
            curves[tuner] = x, np.maximum(rows, _LEAST)
        summary.append(Panel(problem, "normalised regret", True, curves))
    return summary
