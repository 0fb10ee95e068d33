"""BOCK's tables and figure: Oh, Gavves, Welling (2018), Tables 1 and 2 and Figure 5."""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Published, Task

_TABLE1 = {  # problem: evaluations, then mean and deviation by tuner
    "repeated-branin-20": (
        200,
        {
            "SMAC": (15.95, 3.71),
            "TPE": (7.59, 1.20),
            "Spearmint": (5.07, 3.01),
            "Spearmint+": (6.83, 0.32),
            "addgp": (5.75, 0.93),
            "egp": (6.77, 4.85),
            "Matern": (0.41, 0.00),
            "bock:preset=paper": (0.50, 0.12),
        },
    ),
    "repeated-hartmann6-20": (
        200,
        {
            "SMAC": (-1.61, 0.12),
            "TPE": (-1.74, 0.10),
            "Spearmint": (-2.60, 0.42),
            "Spearmint+": (-2.91, 0.25),
            "addgp": (-3.03, 0.13),
            "egp": (-2.85, 0.57),
            "Matern": (-3.29, 0.04),
            "bock:preset=paper": (-3.30, 0.02),
        },
    ),
    "scaled-rosenbrock-20": (
        200,
        {
            "SMAC": (8579.13, 58.45),
            "TPE": (8608.36, 0.00),
            "Spearmint": (7970.05, 1276.62),
            "Spearmint+": (5909.63, 2725.76),
            "addgp": (3632.25, 1642.71),
            "egp": (5346.96, 2494.89),
            "Matern": (230.25, 187.41),
            "bock:preset=paper": (47.87, 33.94),
        },
    ),
    "levy-20": (
        200,
        {
            "SMAC": (2.35, 0.00),
            "TPE": (2.35, 0.00),
            "Spearmint": (1.88, 0.59),
            "Spearmint+": (2.35, 0.00),
            "addgp": (2.32, 0.02),
            "egp": (1.35, 0.34),
            "Matern": (0.38, 0.13),
            "bock:preset=paper": (0.54, 0.13),
        },
    ),
    "repeated-branin-100": (
        600,
        {
            "SMAC": (20.03, 0.85),
            "TPE": (23.55, 0.73),
            "Spearmint": (2.78, 1.06),
            "addgp": (14.07, 0.84),
            "Matern": (0.54, 0.06),
            "bock:preset=paper": (1.03, 0.17),
        },
    ),
    "repeated-hartmann6-100": (
        600,
        {
            "SMAC": (-1.16, 0.19),
            "TPE": (-1.01, 0.10),
            "Spearmint": (-2.55, 0.19),
            "addgp": (-1.69, 0.22),
            "Matern": (-2.91, 0.26),
            "bock:preset=paper": (-3.16, 0.10),
        },
    ),
    "scaled-rosenbrock-100": (
        600,
        {
            "SMAC": (8593.09, 18.80),
            "TPE": (8608.36, 0.00),
            "Spearmint": (8608.36, 0.00),
            "addgp": (7378.27, 305.24),
            "Matern": (231.42, 28.94),
            "bock:preset=paper": (128.69, 52.84),
        },
    ),
    "levy-100": (
        600,
        {
            "SMAC": (9.60, 0.04),
            "TPE": (9.62, 0.00),
            "Spearmint": (4.87, 0.35),
            "addgp": (9.59, 0.04),
            "Matern": (2.17, 0.18),
            "bock:preset=paper": (6.78, 2.16),
        },
    ),
}


def bock_table1() -> Task:
    """Return Table 1, with tuners of today added."""
    small = tuple(name for name, (n, _) in _TABLE1.items() if n == 200)
    medium = tuple(name.replace("-20", "-50") for name in small)  # in no table of the paper
    large = tuple(name for name, (n, _) in _TABLE1.items() if n == 600)
    tuners = ("bock", "bock:preset=paper", "bo", "addgp")
    peers = ("egp", "optuna-tpe", "optuna-gp", "botorch", "smac")
    return Task(
        "bock-table1",
        "BOCK, Table 1: four functions in 20, 50 and 100 dimensions, from the centre",
        (
            Block(small, (*tuners, *peers), 200),
            Block(medium, tuners, 400),
            Block(large, tuners, 600),
        ),
        seeds=5,
        reference="bock:preset=paper",
        cost="340 runs; those of preset=paper take most of the time",
        centre=True,
        published=tuple(
            Published(problem, tuner, n, *pair)
            for problem, (n, row) in _TABLE1.items()
            for tuner, pair in row.items()
        ),
    )


_TABLE2 = {  # dimensions: evaluations, then BOCK, BOCK-W and BOCK+B
    20: (200, (47.87, 33.94), (1314.03, 1619.73), (48.87, 18.33)),
    50: (400, (29.65, 11.56), (51.14, 58.18), (33.90, 21.69)),
    100: (600, (128.69, 52.84), (157.89, 161.92), (87.00, 36.88)),
}


def bock_table2() -> Task:
    """Return Table 2, the variants of the method."""
    variants = tuple(f"bock:preset=paper{x}" for x in ("", ",warp=false", ",boundary=true"))
    return Task(
        "bock-table2",
        "BOCK, Table 2: without warping (BOCK-W) and with a boundary datum (BOCK+B)",
        tuple(
            Block((f"scaled-rosenbrock-{dim}",), variants, row[0]) for dim, row in _TABLE2.items()
        ),
        seeds=5,
        reference=variants[0],
        cost="45 runs",
        centre=True,
        published=tuple(
            Published(f"scaled-rosenbrock-{dim}", tuner, n, *pair)
            for dim, (n, *pairs) in _TABLE2.items()
            for tuner, pair in zip(variants, pairs, strict=True)
        ),
    )


def bock_layer() -> Task:
    """Return Figure 5, the last layer of a network."""
    return Task(
        "bock-layer",
        "BOCK, Figure 5: 100, 200 and 500 weights of a network on MNIST, the others trained; the "
        "paper prints curves and no numbers",
        (
            Block(
                ("layer100", "layer200", "layer500"), ("bock:inference=map", "bo", "random"), 200
            ),
        ),
        seeds=5,
        reference="bock:inference=map",
        cost="45 runs of 200 evaluations of a second",
    )
