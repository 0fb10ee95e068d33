"""Problems on which trials fail, at random or in a place, and problems with bounded outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from raybo.arrays import Array
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import get_problem
from raybo.space.any_space import AnySpace
from raybo.space.parameters import Float, Int
from raybo.space.space import Space

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """What a trial gave: a value or None where it failed, and outcomes that must not exceed 0."""

    value: float | None
    excess: tuple[float, ...] = ()

    @property
    def allowed(self) -> bool:
        """Return whether there is a value, and no outcome exceeds its bound."""
        return self.value is not None and all(x <= 0 for x in self.excess)


@dataclass(frozen=True)
class Task:
    """A problem to minimise.

    Attributes
    ----------
    evaluate : callable
        Config and generator, which decides on failures at random -> Evaluation.
    optimum : float
        Smallest allowed value.
    length : int
        Trials of a run, or values where failures have no place: those cost no knowledge.
    by_values : bool
        Whether `length` counts values.
    n_bounds : int
        Outcomes that are bounded.
    """

    name: str
    space: AnySpace
    evaluate: Callable[[Config, Generator], Evaluation]
    optimum: float
    length: int
    by_values: bool = False
    n_bounds: int = 0


# Rows of the optimum of which the failures keep a distance.
CENTRES = {
    "branin": np.array([0.5427728, 0.1516667]),
    "hartmann6": np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]),
}
_TUBE = 0.05  # share of the volume that does not fail


def _at_random(share: float, _: Array, __: Array, rng: Generator) -> bool:
    return bool(rng.random() < share)


def _half(x: Array, centre: Array, _: Generator) -> bool:
    """Everything beyond 0.1 on one side of the optimum fails."""
    return bool(x[0] > centre[0] + 0.1)


def _tube(x: Array, centre: Array, _: Generator) -> bool:
    """All but a square of the first two columns fails, which has the optimum near its middle."""
    side = math.sqrt(_TUBE)
    low = np.clip(centre[:2] - side / 2, 0, 1 - side)
    return not bool(((x[:2] >= low) & (x[:2] <= low + side)).all())


def _blurred(x: Array, centre: Array, rng: Generator) -> bool:
    """Failing sets in gradually, around 0.2 from the optimum on one side."""
    return bool(rng.random() < 1 / (1 + math.exp(-(x[0] - centre[0] - 0.2) / 0.05)))


FAILURES: dict[str, Callable[[Array, Array, Generator], bool]] = {
    "none": partial(_at_random, 0.0),
    "5%": partial(_at_random, 0.05),
    "20%": partial(_at_random, 0.2),
    "half": _half,
    "tube": _tube,
    "blurred": _blurred,
}
_WITHOUT_PLACE = ("none", "5%", "20%")


def _failing(problem_name: str, failures: str) -> Task:
    problem, fails = get_problem(problem_name), FAILURES[failures]
    space, centre = problem.space, CENTRES.get(problem_name, np.empty(0))

    def evaluate(config: Config, rng: Generator) -> Evaluation:
        if fails(space.encode(config), centre, rng):
            return Evaluation(None)
        return Evaluation(problem.objective(config))

    name, optimum = f"{problem_name}/{failures}", float(problem.optimum or 0.0)
    return Task(name, space, evaluate, optimum, 75, failures in _WITHOUT_PLACE)


def gardner_first(x: float, y: float) -> tuple[float, list[float]]:
    """Gardner et al. (2014), first simulation; its constraint is cos x cos y - sin x sin y."""
    return math.cos(2 * x) * math.cos(y) + math.sin(x), [math.cos(x + y) - 0.5]


def gardner_second(x: float, y: float) -> tuple[float, list[float]]:
    """Gardner et al. (2014), second simulation: 1.8% of the square is allowed."""
    return math.sin(x) + y, [math.sin(x) * math.sin(y) + 0.95]


def gramacy(x: float, y: float) -> tuple[float, list[float]]:
    """Gramacy et al. (2016), eq. 1."""
    wave = 0.5 * math.sin(2 * math.pi * (x * x - 2 * y))
    return x + y, [1.5 - x - 2 * y - wave, x * x + y * y - 1.5]


def welded_beam(h: float, l: float, t: float, b: float) -> tuple[float, list[float]]:  # noqa: E741
    """Cost of a welded beam; shear, bending, buckling and deflection are bounded.

    Coello (2000), section 4.1: the version whose best known cost is 1.724852.
    """
    load, length, young, shear = 6000.0, 14.0, 30e6, 12e6
    primary = load / (math.sqrt(2) * h * l)
    radius = math.hypot(l / 2, (h + t) / 2)
    polar = 2 * math.sqrt(2) * h * l * (l**2 / 12 + ((h + t) / 2) ** 2)
    secondary = load * (length + l / 2) * radius / polar
    stress = math.sqrt(primary**2 + primary * secondary * l / radius + secondary**2)
    bending = 6 * load * length / (b * t**2)
    deflection = 4 * load * length**3 / (young * t**3 * b)
    slender = 1 - t / (2 * length) * math.sqrt(young / (4 * shear))
    buckling = 4.013 * young * t * b**3 / (6 * length**2) * slender
    cost = 1.10471 * h**2 * l + 0.04811 * t * b * (length + l)
    limited = 0.10471 * h**2 + 0.04811 * t * b * (length + l) - 5
    return cost, [
        *(stress - 13600, bending - 30000, h - b, limited),
        *(0.125 - h, deflection - 0.25, load - buckling),
    ]


def speed_reducer(
    x1: float, x2: float, x3: float, x4: float, x5: float, x6: float, x7: float
) -> tuple[float, list[float]]:
    """Weight of a speed reducer under 11 constraints; the best known is 2994.47107.

    Golinski (1973), in the version where both shafts are 7.3 to 8.3 long.
    """
    weight = (
        0.7854 * x1 * x2**2 * (3.3333 * x3**2 + 14.9334 * x3 - 43.0934)
        - 1.508 * x1 * (x6**2 + x7**2)
        + 7.4777 * (x6**3 + x7**3)
        + 0.7854 * (x4 * x6**2 + x5 * x7**2)
    )
    return weight, [
        27 / (x1 * x2**2 * x3) - 1,
        397.5 / (x1 * x2**2 * x3**2) - 1,
        1.93 * x4**3 / (x2 * x3 * x6**4) - 1,
        1.93 * x5**3 / (x2 * x3 * x7**4) - 1,
        math.hypot(745 * x4 / (x2 * x3), math.sqrt(16.9e6)) / (110 * x6**3) - 1,
        math.hypot(745 * x5 / (x2 * x3), math.sqrt(157.5e6)) / (85 * x7**3) - 1,
        x2 * x3 / 40 - 1,
        5 * x2 / x1 - 1,
        x1 / (12 * x2) - 1,
        (1.5 * x6 + 1.9) / x4 - 1,
        (1.1 * x7 + 1.9) / x5 - 1,
    ]


def _pruning() -> Task:
    from raybo.benchmarks.feasibility.pruning import (  # noqa: PLC0415  (imports torch)
        GUESSES,
        prune,
        pruning_space,
    )

    def evaluate(config: Config, _: Generator) -> Evaluation:
        value, accuracy = prune(config)
        return Evaluation(value if accuracy >= GUESSES else None)

    return Task("pruning", pruning_space(), evaluate, 0.0, 60)  # 0: nothing wrong, nothing left


def _divergence() -> Task:
    from raybo.benchmarks.feasibility.divergence import SPACE, train  # noqa: PLC0415  (imports torch)

    def evaluate(config: Config, rng: Generator) -> Evaluation:
        return Evaluation(train(config, rng))

    return Task("divergence", SPACE, evaluate, 0.0, 60)


@dataclass(frozen=True)
class Bounded:
    """A function that returns a value and outcomes, over a box."""

    function: Callable[..., tuple[float, list[float]]]
    parameters: Mapping[str, Float | Int]
    optimum: float
    length: int

    def task(self, name: str) -> Task:
        """Return the problem as a task."""

        def evaluate(config: Config, _: Generator) -> Evaluation:
            value, excess = self.function(**config)
            return Evaluation(value, tuple(excess))

        space = Space(self.parameters)
        middle = {k: (p.low + p.high) / 2 for k, p in self.parameters.items()}
        n_bounds = len(self.function(**middle)[1])
        return Task(name, space, evaluate, self.optimum, self.length, n_bounds=n_bounds)


_SHAFT, _UNIT, _SQUARE = Float(7.3, 8.3), Float(0, 1), Float(0, 6)
_SECOND = math.asin(0.95) - 1  # where sin(x) is -1
BOUNDED = {
    "gardner-1": Bounded(gardner_first, {"x": _SQUARE, "y": _SQUARE}, -2.0, 40),
    "gardner-2": Bounded(gardner_second, {"x": _SQUARE, "y": _SQUARE}, _SECOND, 40),
    "gramacy": Bounded(gramacy, {"x": _UNIT, "y": _UNIT}, 0.599788052, 40),
    "welded-beam": Bounded(
        welded_beam,
        {"h": Float(0.1, 2), "l": Float(0.1, 10), "t": Float(0.1, 10), "b": Float(0.1, 2)},
        1.724852307,
        80,
    ),
    "speed-reducer": Bounded(
        speed_reducer,
        {
            "x1": Float(2.6, 3.6),
            "x2": Float(0.7, 0.8),
            "x3": Int(17, 28),
            **{"x4": _SHAFT, "x5": _SHAFT},
            "x6": Float(2.9, 3.9),
            "x7": Float(5.0, 5.5),
        },
        2994.471066,
        80,
    ),
}
_NETWORKS = {"pruning": _pruning, "divergence": _divergence}
_OF_REMBO = "branin-25"  # two of 25 coordinates matter: an embedding has room for more than these
TASKS = [
    *(f"{problem}/{failures}" for problem in CENTRES for failures in FAILURES),
    *(f"{_OF_REMBO}/{failures}" for failures in _WITHOUT_PLACE),
    *(*BOUNDED, *_NETWORKS),
]


def get_task(name: str) -> Task:
    """Return the task called `name`."""
    if name not in TASKS:
        raise BenchmarkError(f"there is no task {name!r}; there are {', '.join(TASKS)}")
    if name in BOUNDED:
        return BOUNDED[name].task(name)
    if name in _NETWORKS:
        return _NETWORKS[name]()
    problem, _, failures = name.partition("/")
    return _failing(problem, failures)
