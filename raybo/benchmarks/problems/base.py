"""A problem: a space, an objective and what is known of its optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.errors import RayboError
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective


class BenchmarkError(RayboError, ValueError):
    """A problem, task or results file of the benchmarks is not known or not valid."""


@dataclass(frozen=True)
class Problem:
    """An objective to optimise over a space.

    Attributes
    ----------
    name : str
        Name in the registry.
    build_space : callable
        Returns a new space; a problem is listed and sent to workers without one.
    objective : callable
        config -> float; picklable. For a noisy problem, the mean that a tuner does not see.
    optimum : float, optional
        Best possible, or best known, value of `objective`; None when it is not known.
    mode : str
        "min" or "max".
    evaluations : int
        Suggested budget.
    description, cost : str
        What it is, and what one evaluation costs, in one line each.
    gpus : float
        Share of a GPU that an evaluation takes, as Ray counts GPUs.
    draw : callable, optional
        (config, rng) -> float: one noisy evaluation, whose mean over draws is `objective`. None
        where `objective` is exact.
    median : float, optional
        Value of `objective` at the median config of the space, where that is known exactly; None
        where it has to be estimated from random configs.
    """

    name: str
    build_space: Callable[[], AnySpace]
    objective: Callable[[Mapping[str, Any]], float]
    optimum: float | None = None
    mode: str = "min"
    evaluations: int = 100
    description: str = ""
    cost: str = "microseconds"
    gpus: float = 0.0
    draw: Callable[[Mapping[str, Any], np.random.Generator], float] | None = None
    median: float | None = None

    @property
    def space(self) -> AnySpace:
        """Return a new space."""
        return self.build_space()

    def regret(self, value: float) -> float | None:
        """Return how much worse a value is than the optimum; None when that is not known."""
        if self.optimum is None:
            return None
        loss = Objective(self.mode).loss
        return loss(value) - loss(self.optimum)


def one_of(name: str, known: Iterable[str]) -> str:
    """Return the name of a problem; BenchmarkError, with those of its family, if not known."""
    allowed = sorted(known)
    if name not in allowed:
        raise BenchmarkError(f"problem {name!r} is not known; there are {', '.join(allowed)}")
    return name
