"""Comparisons on real programs and data: solvers, networks, a forest, robots, a likelihood.

The papers print curves for these, of instances and data that are not published: compare the order
of the tuners, not the numbers.
"""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Task


def application_tasks() -> tuple[Task, ...]:
    """Return all of them; the first tuner is the method of the paper the problem comes from."""
    rembo = tuple(f"rembo:d=5,k={k},kernel=categorical" for k in (4, 1))
    discrete = (*rembo, "bo", "smac", "optuna-tpe", "random")
    conditional = ("addtree", "addtree:preset=paper", "optuna-tpe", "random")
    forest = ("rembo:d=5", "bo", "smac", "optuna-tpe", "random")
    additive = ("rpp:group_size=5", "addgp:group_size=5", "bo", "rembo:d=10", "random")
    high = ("bo", "rembo", "bock", "addgp:group_size=1", "optuna-tpe", "random")
    return (
        _task("rembo-lpsolve", "REMBO, Figure 4: 47 parameters of lp_solve", discrete, "lp-solve"),
        _task("rembo-scip", "REMBO, Figure 4, with SCIP's 116 parameters", discrete, "scip"),
        _task(
            "rembo-bodyparts", "REMBO, appendix D: a forest's 14 parameters", forest, "body-parts"
        ),
        _task(
            "addtree-pruning",
            "Add-Tree, Figure 5, on a small network",
            conditional,
            "pruning",
            100,
        ),
        _task(
            "addtree-activations",
            "Add-Tree, Figure 6, on a small network",
            conditional,
            "activations",
            100,
        ),
        _task(
            "addtree-vgg",
            "Add-Tree, Figure 5 and Table 3 (after 300: addtree 1.88, tpe 1.84, random 1.78)",
            ("addtree", "optuna-tpe", "random"),
            "vgg-pruning",
            100,
            3,
        ),
        _task(
            "addtree-resnet",
            "Add-Tree, Figure 6",
            ("addtree", "optuna-tpe", "random"),
            "resnet-activations",
            100,
            3,
        ),
        _task(
            "rpp-cosmology", "RPP, Figure 4(a): 9 parameters mixed into 40", additive, "cosmology"
        ),
        _task(
            "egp-alloy",
            "EGP, Figure 5(d): an alloy's 8 solutes and 4 temperatures",
            ("egp:preset=paper", "egp", "bo", "addgp:group_size=4", "rembo", "random"),
            "alloy",
            100,
            seeds=3,
        ),
        _task(
            "bock-depth",
            "BOCK, Table 3: death rates of a small network",
            ("bock", "bo", "random"),
            "stochastic-depth",
            50,
        ),
        _task(
            "real-high", "real problems of 180 and 344 dimensions", high, ("lasso-dna", "svm-mdrr")
        ),
        _task("robots", "linear policies of 16, 33 and 102 weights", high, _ROBOTS),
    )


_ROBOTS = ("swimmer", "hopper", "half-cheetah")
_ON_GPU = ("vgg-pruning", "resnet-activations")
_COSTS = {  # seconds of an evaluation
    "lp-solve": 0.4, "scip": 2.0, "body-parts": 0.5, "pruning": 2.5, "activations": 4.0,
    "cosmology": 2.5, "alloy": 3.0, "stochastic-depth": 2.0, "lasso-dna": 0.05, "svm-mdrr": 0.3,
    "swimmer": 0.2, "hopper": 0.01, "half-cheetah": 0.15, "vgg-pruning": 2.6,
    "resnet-activations": 26.0,
}  # fmt: skip


def _task(
    name: str,
    source: str,
    tuners: tuple[str, ...],
    problems: str | tuple[str, ...],
    evaluations: int = 200,
    seeds: int = 5,
) -> Task:
    problems = (problems,) if isinstance(problems, str) else problems
    runs = len(tuners) * seeds
    hours = sum(_COSTS[problem] for problem in problems) * evaluations * runs / 3600
    kind = "GPU" if problems[0] in _ON_GPU else "core"
    return Task(
        name,
        source,
        (Block(problems, tuners, evaluations),),
        seeds=seeds,
        reference=tuners[0],
        cost=f"{runs * len(problems)} runs, {hours:.1f} {kind}-hours of evaluations, and the asks",
    )
