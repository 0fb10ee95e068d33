"""The Pareto front of a run of Ray Tune with several metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from raybo.errors import ObjectiveError, StudyError
from raybo.study.scalarisation import pareto_front as unbeaten
from raybo.tune.state import check_objective, objective_of
from raybo.tune.trials import read_report


def pareto_front(results: Iterable[Any], metric: Sequence[str], mode: Sequence[str]) -> list[Any]:
    """Return the results of `Tuner.fit()` that no other one beats, best by the first metric first.

    Parameters
    ----------
    results
        What `Tuner.fit()` returned; results without a finite number for each metric are left out.
    metric, mode
        Names of the metrics, and "min" or "max" for each.
    """
    check_objective(metric, mode)
    if isinstance(metric, str):
        raise StudyError(
            f"metric is {metric!r}; a front needs a list of metrics, and for one metric "
            "results.get_best_result() finds the best"
        )
    goal = objective_of(metric, mode, {})
    found = []
    for result in results:
        try:
            report = read_report(result.metrics or {}, goal)
        except ObjectiveError:
            continue
        if report is not None:
            found.append((goal.losses(report.value, report.entries), result))
    if not found:
        return []
    losses = np.array([row for row, _ in found])
    kept = [found[i] for i in np.flatnonzero(unbeaten(losses))]
    return [result for _, result in sorted(kept, key=lambda pair: pair[0])]
