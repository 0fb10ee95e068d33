"""The tables and figures that can be rerun, by name."""

from __future__ import annotations

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tables.applications import application_tasks
from raybo.benchmarks.tables.base import Block, Published, Task
from raybo.benchmarks.tables.bock import bock_layer, bock_table1, bock_table2
from raybo.benchmarks.tables.rpp import rpp_cascade, rpp_rotated, rpp_synthetic


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


_ADDTREE = ("addtree", "addtree:expand=true", "addtree:preset=paper")
_CONDITIONAL = ("independent-gps", "bo", "random", "hyperopt", "optuna-tpe", "smac")


def _addtree_synthetic() -> Task:
    return Task(
        "addtree-synthetic",
        "Add-Tree, Figure 4a and Table 1: the Jenatton function; there p <= 0.03 against smac, "
        "tpe and random at 40 evaluations and 0.003 at 60 and 80",
        (Block(("jenatton",), ("addtree", "addtree:preset=paper", *_CONDITIONAL), 80),),
        seeds=10,
        reference="addtree",
        cost="30 core-minutes, most of it smac's",
        quantity="regret",
        published=(Published("jenatton", "addtree:preset=paper", 30, 1e-4),),  # a bound
    )


def _addtree_fc3() -> Task:
    return Task(
        "addtree-fc3",
        "Add-Tree, Figure 4c and Table 1: compressing a 784-1000-1000-10 network; there "
        "p <= 0.04 against smac, tpe and random at 60 evaluations",
        (Block(("fc3",), (*_ADDTREE, *_CONDITIONAL), 80),),
        seeds=10,
        reference="addtree",
        cost="30 core-minutes, most of it smac's",
    )


def _addtree_blocks() -> Task:
    return Task(
        "addtree-blocks",
        "three independent blocks, as in pruning VGG16: shared subtrees against the expansion of "
        "Add-Tree, section 5.3",
        (Block(("blocks", "blocks-hartmann"), (*_ADDTREE, "optuna-tpe", "random"), 120),),
        seeds=10,
        reference="addtree",
        cost="40 core-minutes",
        quantity="regret",
    )


def _timed_egp(seconds: float) -> tuple[str, ...]:
    """The elastic search and its rivals, with the same time for each proposal."""
    paper = f"preset=paper,seconds={seconds:g}"
    others = (f"{name}:seconds={seconds:g}" for name in ("addgp", "rembo"))
    return f"egp:{paper}", f"egp:maximizer=multistart,{paper}", *others


def _egp_functions() -> Task:
    small = "egp:maximizer=direct,preset=paper,seconds=0.12"  # DIRECT up to d = 10
    blocks = {  # the paper prints curves, and no numbers
        ("hartmann6",): (100, (*_timed_egp(0.12), small)),
        ("gaussian-20", "rosenbrock-20"): (200, _timed_egp(0.4)),
        ("gaussian-50", "rosenbrock-50"): (300, _timed_egp(1.0)),
    }
    rest = ("egp", "bo", "random")
    return Task(
        "egp-functions",
        "EGP, Figures 3 and 4: Hartmann6, Gaussian density and Rosenbrock; 0.02 d seconds for the "
        "search of each proposal (there 0.001 d, 0.01 d and 0.1 d), random search also with twice "
        "the evaluations",
        (
            *(Block(problems, (*timed, *rest), n) for problems, (n, timed) in blocks.items()),
            *(Block(problems, ("random",), 2 * n) for problems, (n, _) in blocks.items()),
        ),
        seeds=20,
        reference="egp",
        cost="about 15 core-hours, most of it in 50 dimensions",
        quantity="regret",
    )


def _egp_cascade() -> Task:
    timed = _timed_egp(0.5)
    rivals = (*timed, "egp", "bo", "random")
    problems = ("cascade-ionosphere", "cascade-german")
    return Task(
        "egp-cascade",
        "EGP, Figure 5: training AUC of a cascade of stumps, by its thresholds; the paper prints "
        "curves, and its third data set, IJCNN1, is in no package",
        (Block(problems, rivals, 200), Block(problems, ("random",), 400)),
        seeds=20,
        reference=timed[0],
        cost="about 4 core-hours",
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
        _addtree_fc3(),
        _addtree_blocks(),
        bock_table1(),
        bock_table2(),
        bock_layer(),
        _egp_functions(),
        _egp_cascade(),
        rpp_synthetic(),
        rpp_rotated(),
        rpp_cascade(),
        *application_tasks(),
    )
}
