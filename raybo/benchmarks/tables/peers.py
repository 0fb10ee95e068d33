"""Comparisons with other tools' tuners, on functions."""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Published, Task

_FIVE = (  # one embedded, four that read every coordinate
    "branin-25",
    "repeated-branin-20",
    "repeated-hartmann6-20",
    "levy-20",
    "rosenbrock-20",
)


def proposal() -> Task:
    """Return the second part of `raybo bench proposal`: best values after 100 evaluations."""
    return Task(
        "proposal",
        "best value after 100 evaluations, against BoTorch and Optuna",
        (Block(_FIVE, ("bo", "botorch", "optuna-gp"), 100),),
        seeds=3,
        reference="bo",
        cost="1.5 core-hours, nearly all of it BoTorch's",
        centre=True,
    )


def peers_20d() -> Task:
    """Return the comparison of every method with the peers in 20 to 25 dimensions."""
    tuners = (
        "bo",
        "bock",
        "egp",
        "addgp",
        "rpp",
        "rembo",
        "random",
        "optuna-tpe",
        "optuna-gp",
        "botorch",
    )
    return Task(
        "peers-20d",
        "every method and the peers on five tasks of 20 to 25 dimensions",
        (Block(_FIVE, tuners, 200),),
        seeds=5,
        reference="bo",
        cost="about 10 core-hours",
        centre=True,
    )


def peers_high() -> Task:
    """Return the comparison with published rows in 100 and 1000 dimensions."""
    tuners = ("rembo", "rembo:preset=paper", "bo", "random")
    return Task(
        "peers-high",
        "Branin in 100 and Hartmann6 in 1000 dimensions; rows published with ALEBO and SAASBO",
        (Block(("branin-100",), tuners, 50), Block(("hartmann6-1000",), tuners, 200)),
        seeds=10,
        reference="rembo",
        cost="about 1 core-hour",
        published=(
            Published("branin-100", "rembo:preset=paper", 50, 1.43),
            Published("branin-100", "ALEBO (d=5)", 50, 0.410),
            Published("branin-100", "SAASBO", 50, 0.399),
            Published("hartmann6-1000", "rembo:preset=paper", 200, -1.80),
            Published("hartmann6-1000", "ALEBO", 200, -2.99),
        ),
    )
