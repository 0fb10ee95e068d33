"""The tables and figures that can be rerun, by name."""

from __future__ import annotations

from raybo.benchmarks.problems import BenchmarkError
from raybo.benchmarks.task import Block, Published, Task


def get_task(name: str) -> Task:
    """Task called `name`."""
    if name not in TASKS:
        raise BenchmarkError(f"task {name!r} is not known; there are {', '.join(TASKS)}")
    return TASKS[name]


_FIVE = (  # one embedded, four that read every coordinate
    "branin-25",
    "repeated-branin-20",
    "repeated-hartmann6-20",
    "levy-20",
    "rosenbrock-20",
)


def _proposal() -> Task:
    return Task(
        "proposal",
        "time per ask, and best value after 100 evaluations, against BoTorch and Optuna",
        (Block(_FIVE, ("bo", "botorch", "optuna-gp"), 100),),
        seeds=3,
        reference="bo",
        cost="1.5 core-hours, nearly all of it BoTorch's",
        centre=True,
        timing=True,
    )


def _peers_20d() -> Task:
    rivals = (
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
        (Block(_FIVE, rivals, 200),),
        seeds=5,
        reference="bo",
        cost="about 10 core-hours",
        centre=True,
    )


def _peers_high() -> Task:
    rivals = ("rembo", "rembo:preset=paper", "bo", "random")
    return Task(
        "peers-high",
        "Branin in 100 and Hartmann6 in 1000 dimensions; rows published with ALEBO and SAASBO",
        (Block(("branin-100",), rivals, 50), Block(("hartmann6-1000",), rivals, 200)),
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


_REMBO_TABLE1 = {  # k: (gap, deviation) for d = 2, 4, 6
    10: ((0.0022, 0.0035), (0.1553, 0.1601), (0.4865, 0.4769)),
    5: ((0.0004, 0.0011), (0.0908, 0.1252), (0.2586, 0.3702)),
    4: ((0.0001, 0.0003), (0.0654, 0.0877), (0.3379, 0.3170)),
    2: ((0.1514, 0.9154), (0.0309, 0.0687), (0.1643, 0.1877)),
    1: ((0.7406, 1.8996), (0.0143, 0.0406), (0.1137, 0.1202)),
}


def _rembo_table1() -> Task:
    published = tuple(
        Published("branin-25", f"rembo:d={d},k={k},preset=paper", 500, *pair)
        for k, row in _REMBO_TABLE1.items()
        for d, pair in zip((2, 4, 6), row, strict=True)
    )
    return Task(
        "rembo-table1",
        "REMBO, Table 1: optimality gap on Branin in 25 dimensions, by k and d",
        (Block(("branin-25",), tuple(p.rival for p in published), 500),),
        seeds=50,
        reference="rembo:d=2,k=4,preset=paper",
        cost="750 runs of 500 evaluations",
        quantity="regret",
        published=published,
    )


def _rembo_figure3() -> Task:
    rembo = "rembo:d=2,k=4,preset=paper"
    return Task(
        "rembo-figure3",
        "REMBO, Figure 3: Branin in 25 and 10^9 dimensions, and rotated in 25",
        (
            Block(("branin-25", "branin-25-rotated"), ("random", "bo", rembo), 500),
            Block(("branin-1e9",), ("random", rembo), 500),
        ),
        seeds=50,
        reference=rembo,
        cost="400 runs of 500 evaluations",
        quantity="regret",
    )


def _addtree_synthetic() -> Task:
    rivals = ("addtree", "addtree:preset=paper", "bo", "random", "hyperopt", "optuna-tpe", "smac")
    return Task(
        "addtree-synthetic",
        "Add-Tree, Figure 4a and Table 1: the Jenatton function; there p <= 0.03 against smac, "
        "tpe and random at 40 evaluations and 0.003 at 60 and 80",
        (Block(("jenatton",), rivals, 80),),
        seeds=10,
        reference="addtree:preset=paper",
        cost="minutes",
        quantity="regret",
        published=(Published("jenatton", "addtree:preset=paper", 30, 1e-4),),  # a bound
    )


_BOCK_TABLE1 = {  # problem: evaluations, then mean and deviation by rival
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


def _bock_table1() -> Task:
    small = tuple(name for name, (n, _) in _BOCK_TABLE1.items() if n == 200)
    large = tuple(name for name, (n, _) in _BOCK_TABLE1.items() if n == 600)
    rivals = ("bock", "bock:preset=paper", "bo", "addgp")
    return Task(
        "bock-table1",
        "BOCK, Table 1: four functions in 20 and 100 dimensions, from the centre",
        (Block(small, (*rivals, "egp", "optuna-tpe", "smac"), 200), Block(large, rivals, 600)),
        seeds=5,
        reference="bock:preset=paper",
        cost="260 runs",
        centre=True,
        published=tuple(
            Published(problem, rival, n, *pair)
            for problem, (n, row) in _BOCK_TABLE1.items()
            for rival, pair in row.items()
        ),
    )


_BOCK_TABLE2 = {  # dimensions: evaluations, then BOCK, BOCK-W and BOCK+B
    20: (200, (47.87, 33.94), (1314.03, 1619.73), (48.87, 18.33)),
    50: (400, (29.65, 11.56), (51.14, 58.18), (33.90, 21.69)),
    100: (600, (128.69, 52.84), (157.89, 161.92), (87.00, 36.88)),
}


def _bock_table2() -> Task:
    variants = tuple(f"bock:preset=paper{x}" for x in ("", ",warp=false", ",boundary=true"))
    return Task(
        "bock-table2",
        "BOCK, Table 2: without warping (BOCK-W) and with a boundary datum (BOCK+B)",
        tuple(
            Block((f"scaled-rosenbrock-{dim}",), variants, row[0])
            for dim, row in _BOCK_TABLE2.items()
        ),
        seeds=5,
        reference=variants[0],
        cost="45 runs",
        centre=True,
        published=tuple(
            Published(f"scaled-rosenbrock-{dim}", rival, n, *pair)
            for dim, (n, *pairs) in _BOCK_TABLE2.items()
            for rival, pair in zip(variants, pairs, strict=True)
        ),
    )


def _egp_functions() -> Task:
    rivals = ("egp", "egp:preset=paper", "bo", "addgp", "rembo", "random")
    return Task(
        "egp-functions",
        "EGP, Figures 3 and 4: Hartmann6, Gaussian density and Rosenbrock; the paper prints "
        "curves and no numbers",
        (
            Block(("hartmann6",), rivals, 100),
            Block(("gaussian-20", "rosenbrock-20"), rivals, 200),
            Block(("gaussian-50", "rosenbrock-50"), rivals, 300),
        ),
        seeds=20,
        reference="egp:preset=paper",
        cost="600 runs",
        quantity="regret",
    )


_RPP_TABLES = {  # evaluations, then GP-UCB, ADD-5, RPP-5, ADD-10, RPP-10, ADD-25, RPP-25
    "rpp-50": (
        (
            500,
            (103.9, 180.3, 151.1, 35.4, 30.2, 164.5, 152.4),
            (1.9, 10.1, 9.7, 2.2, 1.7, 9.4, 6.5),
        ),
        (1000, (91.4, 153.4, 136.8, 31.3, 25.1, 77.8, 75.7), (1.3, 7.1, 8.0, 2.1, 1.9, 3.4, 2.4)),
    ),
    "rpp-100": (
        (
            500,
            (114.1, 168.0, 150.6, 109.8, 98.9, 175.8, 159.0),
            (1, 8.1, 12.2, 3.6, 2.6, 3.7, 2.6),
        ),
        (1000, (106.6, 92.6, 89.5, 41.5, 34.5, 85.8, 85.1), (0.9, 3.0, 5.0, 1.4, 1.1, 1.7, 1.5)),
    ),
}


def _rpp_synthetic() -> Task:
    pairs = tuple(
        f"{name}:group_size={size},preset=paper"
        for size in (5, 10, 25)
        for name in ("addgp", "rpp")
    )
    published = tuple(
        Published(problem, rival, n, value, spread)
        for problem, rows in _RPP_TABLES.items()
        for n, values, spreads in rows
        for rival, value, spread in zip(("GP-UCB", *pairs), values, spreads, strict=True)
    )
    return Task(
        "rpp-synthetic",
        "RPP, Tables 1 to 4: the log-mixture in 50 and 100 dimensions; its centres are not "
        "printed, so the order of the rivals counts and not the numbers",
        (Block(tuple(_RPP_TABLES), (*pairs, "bo", "random"), 1000),),
        seeds=10,
        reference="rpp:group_size=10,preset=paper",
        cost="160 runs of 1000 evaluations",
        quantity="regret",
        published=published,
    )


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _proposal(),
        _peers_20d(),
        _peers_high(),
        _rembo_table1(),
        _rembo_figure3(),
        _addtree_synthetic(),
        _bock_table1(),
        _bock_table2(),
        _egp_functions(),
        _rpp_synthetic(),
    )
}
