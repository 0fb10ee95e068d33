"""EGP's figures: Rana et al. (2017), Figures 3 to 5."""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Task


def _timed_egp(seconds: float) -> tuple[str, ...]:
    """Return the elastic search and its competitors, with the same time for each proposal."""
    paper = f"preset=paper,seconds={seconds:g}"
    others = (f"{name}:seconds={seconds:g}" for name in ("addgp", "rembo"))
    return f"egp:{paper}", f"egp:maximizer=multistart,{paper}", *others


def egp_functions() -> Task:
    """Return Figures 3 and 4."""
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


def egp_cascade() -> Task:
    """Return Figure 5 on cascades of stumps."""
    timed = _timed_egp(0.5)
    tuners = (*timed, "egp", "bo", "random")
    problems = ("cascade-ionosphere", "cascade-german")
    return Task(
        "egp-cascade",
        "EGP, Figure 5: training AUC of a cascade of stumps, by its thresholds; the paper prints "
        "curves, and its third data set, IJCNN1, is in no package",
        (Block(problems, tuners, 200), Block(problems, ("random",), 400)),
        seeds=20,
        reference=timed[0],
        cost="about 4 core-hours",
    )
