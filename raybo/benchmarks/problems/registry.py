"""Problems by name.

A name says how its problem is made:

branin, hartmann6, jenatton, blocks    the function itself
fc3                                    a network to compress, trained on first use
cascade-german, cascade-ionosphere     stumps on data that are fetched on first use
face-cascade                           a detector, on data of OpenCV and scikit-image
layer100, layer200, layer500           weights of a network on MNIST
lp-solve, lp-solve-large, scip         solvers of mixed-integer programs to configure
pruning, activations, stochastic-depth networks on MNIST
vgg-pruning, resnet-activations        networks on CIFAR-10; they need a GPU
lasso-dna, svm-mdrr, body-parts        a Lasso, a support vector machine, a random forest
swimmer, hopper, half-cheetah,         linear policies for MuJoCo's robots
walker2d, ant, humanoid                the same, scaled as trained ones
cosmology                              a likelihood of Planck's and SDSS's data
alloy                                  aluminium: composition and heat treatment
hpobench-car, fcnet-naval              tables of trained networks; a training seed is drawn
nb201-cifar10                          the same for the cells of NAS-Bench-201
yahpo-lcbench-3945, yahpo-xgboost-12   surrogates of trainings, from the folder $RAYBO_DATA
hpob-4796-23, lcbench-pool-adult       pools of recorded configs; the nearest one counts
ackley-53, labs-50, contamination,     binary and categorical variables
pest-control, maxsat-60                the same
lassobench-dna, lassobench-hard        penalties of each feature of a Lasso
rover-60, bbob-f15-20                  a path between obstacles; function 15 of BBOB
levy-20, rosenbrock-100, rpp-50        a function of any number of coordinates
branin-25, hartmann6-1000, branin-1e9  embedded: D coordinates, of which a few are read
levy-20-in-1000                        the same for a function of any number
branin-25-rotated                      f(R x), R a random rotation of the D coordinates
branin-noisy, rover-60-noisy           any of them, with normal noise
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from raybo.benchmarks.problems.base import BenchmarkError, Problem
from raybo.benchmarks.problems.conditional import blocks, blocks_hartmann, jenatton_problem
from raybo.benchmarks.problems.functions import FIXED, SCALABLE
from raybo.benchmarks.problems.noise import noisy
from raybo.benchmarks.problems.vectors import embedded, fixed, rotated, scalable

ROBOTS = ("swimmer", "hopper", "half-cheetah", "walker2d", "ant", "humanoid")


def _application(path: str, *arguments: int | str) -> Problem:
    """Return what "module:function" makes, imported now: applications load heavy packages."""
    module, _, function = path.partition(":")
    found = importlib.import_module(f"raybo.benchmarks.problems.{module}")
    problem: Problem = getattr(found, function)(*arguments)
    return problem


_APPLICATIONS: dict[str, tuple[str, *tuple[int | str, ...]]] = {  # "module:function", arguments
    "fc3": ("networks.fc3:fc3",),
    "cascade-ionosphere": ("cascade_stumps:cascade_problem", "ionosphere"),
    "cascade-german": ("cascade_stumps:cascade_problem", "german"),
    "face-cascade": ("face_cascade:face_cascade",),
    "lp-solve": ("solvers.lp_solve:lp_solve",),
    "lp-solve-large": ("solvers.lp_solve:lp_solve_large",),
    "scip": ("solvers.scip:scip",),
    "pruning": ("networks.pruning:pruning",),
    "activations": ("networks.pruning:activations",),
    "vgg-pruning": ("networks.vgg_pruning:vgg_pruning",),
    "resnet-activations": ("networks.resnet_activations:resnet_activations",),
    "stochastic-depth": ("networks.stochastic_depth:stochastic_depth",),
    "lasso-dna": ("lasso_svm:lasso_dna",),
    "svm-mdrr": ("lasso_svm:svm_mdrr",),
    "body-parts": ("body_parts:body_parts",),
    "cosmology": ("cosmology:cosmology",),
    "alloy": ("alloy:alloy",),
    "ackley-53": ("combinatorial:ackley_53",),
    "labs-50": ("combinatorial:labs_50",),
    "contamination": ("combinatorial:contamination_25",),
    "pest-control": ("combinatorial:pest_control_25",),
    "maxsat-60": ("combinatorial:maxsat_60",),
    **{robot: ("locomotion:locomotion", robot) for robot in ROBOTS},
    **{f"layer{n}": ("networks.layer:layer", n) for n in (100, 200, 500)},
}
PROBLEMS: dict[str, Callable[..., Problem]] = {  # those of SCALABLE take a dimension
    "jenatton": jenatton_problem,
    "blocks": blocks,
    "blocks-hartmann": blocks_hartmann,
    **{name: partial(_application, *entry) for name, entry in _APPLICATIONS.items()},
    **{name: partial(fixed, name) for name in FIXED},
    **{name: partial(scalable, name) for name in SCALABLE},
}
FAMILIES = {  # first part of a name: "module:function" of the whole name
    "hpobench": "recorded.grids:grid",
    "fcnet": "recorded.grids:grid",
    "nb201": "recorded.grids:grid",
    "yahpo-lcbench": "recorded.yahpo:yahpo",
    "yahpo-xgboost": "recorded.yahpo:yahpo",
    "hpob": "recorded.pools:pool",
    "lcbench-pool": "recorded.pools:pool",
    "lassobench": "lassobench:lassobench",
    "rover": "rover:rover",
    "bbob": "bbob:bbob",
}

NOISY = "-noisy"
_NAME = re.compile(
    r"(?P<base>[a-z][a-z0-9-]*?)(-(?P<dim>\d+(e\d+)?))?(-in-(?P<into>\d+(e\d+)?))?(?P<rotated>-rotated)?"
)


def get_problem(name: str) -> Problem:
    """Return the problem called `name`; the module's docstring says how names are made."""
    if name.endswith(NOISY):
        return noisy(get_problem(name.removesuffix(NOISY)))
    for prefix, path in FAMILIES.items():
        if name.startswith(f"{prefix}-"):
            return _application(path, name)
    if name in _APPLICATIONS:  # whose names may end in a number
        return PROBLEMS[name]()
    return _function(name)


def _function(name: str) -> Problem:
    """The function called `name`, in as many dimensions as that says."""
    match = _NAME.fullmatch(name)
    if match is None or match["base"] not in PROBLEMS:
        raise BenchmarkError(
            f"problem {name!r} is not known; there are {', '.join(names())}, where D stands for "
            "a dimension (20, 1e9) and ID for a data set or a function, listed when it is not "
            "known; -in-D embeds and -rotated rotates a vector problem; -noisy adds noise to any"
        )
    base, dim, into = match["base"], _number(match["dim"]), _number(match["into"])
    if base in SCALABLE:
        if dim is None:
            raise BenchmarkError(f"problem {name!r} needs a dimension: {base}-20")
        problem = PROBLEMS[base](dim)
    else:
        if dim is not None and into is not None:
            raise BenchmarkError(f"problem {name!r} has two dimensions; write {base}-in-{into}")
        problem, into = PROBLEMS[base](), into or dim
    if into is not None:
        problem = embedded(problem, into)
    if match["rotated"]:
        problem = rotated(problem)
    return replace(problem, name=name)


def names() -> list[str]:
    """Return the names of the problems, `-D` where a dimension is needed, `[-D]` where allowed.

    A family of problems appears once, with `-ID`.
    """
    marks = {**dict.fromkeys(SCALABLE, "-D"), **dict.fromkeys(FIXED, "[-D]")}
    single = [name + marks.get(name, "") for name in PROBLEMS]
    return single + [f"{prefix}-ID" for prefix in FAMILIES]


def _number(text: str | None) -> int | None:
    return None if text is None else int(float(text))
