"""One builder of finished runs, for tests of what the benchmarks make of them."""

from __future__ import annotations

from collections.abc import Sequence

from raybo.benchmarks.results import Deployed, Finished
from raybo.benchmarks.tables.base import Cell


def run_of(
    problem: str,
    tuner: str,
    seed: int,
    values: list[float],
    *,
    mode: str = "min",
    optimum: float | None = 0.0,
    seconds: float = 0.1,
    deployed: Sequence[Deployed] = (),
) -> Finished:
    """Return a run with these values, each of which took so many seconds."""
    cell = Cell(problem, tuner, seed, len(values))
    times = [seconds] * len(values)
    return Finished(cell, mode, optimum, values, times, deployed=list(deployed))
