"""Problems to compare tuners on: a space, an objective and what is known of its optimum.

Every function of a vector is searched on [-1, 1]^D, as REMBO and BOCK do, whatever its own
domain: a `Box` whose objective maps the point to the domain. Names say what is meant:

    branin, hartmann6, jenatton, blocks    the function itself
    fc3                                    a network to compress, trained on first use
    cascade-german, cascade-ionosphere     on data that are fetched on first use
    face-cascade                           on data of OpenCV and scikit-image
    layer100, layer200, layer500           weights of a network on MNIST, likewise
    lp-solve, lp-solve-large, scip         solvers of mixed-integer programs to configure
    pruning, activations, stochastic-depth networks on MNIST, likewise
    vgg-pruning, resnet-activations        networks on CIFAR-10, likewise; they need a GPU
    lasso-dna, svm-mdrr, body-parts        a Lasso, a support vector machine, a random forest
    swimmer, hopper, half-cheetah          linear policies for MuJoCo's robots
    cosmology                              a likelihood of Planck's and SDSS's data
    alloy                                  aluminium: composition and heat treatment
    levy-20, rosenbrock-100, rpp-50        a function of any number of coordinates
    branin-25, hartmann6-1000, branin-1e9  embedded: D coordinates, of which it reads its own few
    levy-20-in-1000                        the same for the functions of any number
    branin-25-rotated                      f(R x), R a random rotation of the D coordinates
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from raybo.benchmarks.problems.functions import (
    EVEN,
    FEWEST,
    FIXED,
    SCALABLE,
    Array,
    Function,
    jenatton,
)
from raybo.errors import RayboError
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space
from raybo.study.objective import Objective

LARGEST_DIM = 10**12  # of an embedding
LARGEST_ROTATION = 2000  # coordinates; a rotation is a dense matrix


class BenchmarkError(RayboError, ValueError):
    """A problem, task or results file of the benchmarks is not known or not valid."""


@dataclass(frozen=True)
class Problem:
    """Something to optimise.

    Attributes
    ----------
    name : str
        What `get_problem` knows it by.
    build_space : callable
        Makes the space; a problem is listed and shipped to workers without one.
    objective : callable
        config -> float; picklable.
    optimum : float, optional
        Best value there is, in the objective's own units; None when it is not known.
    mode : str
        "min" or "max".
    evaluations : int
        Suggested budget.
    description, cost : str
        One line on what it is, and on what one evaluation costs.
    gpus : float
        Share of a GPU that an evaluation takes, as Ray counts them.
    """

    name: str
    build_space: Callable[[], AnySpace]
    objective: Callable[[Mapping[str, Any]], float]
    optimum: float | None = None
    mode: str = "min"
    evaluations: int = 100
    description: str = ""
    cost: str = "microseconds"
    gpus: float = 0.0

    @property
    def space(self) -> AnySpace:
        """A new instance of the space."""
        return self.build_space()

    def regret(self, value: float) -> float | None:
        """How much worse than the optimum a value is; None when the optimum is not known."""
        if self.optimum is None:
            return None
        loss = Objective(self.mode).loss
        return loss(value) - loss(self.optimum)


@dataclass(frozen=True)
class VectorObjective:
    """A function of a vector as an objective of the config {"x": point of [-1, 1]^D}.

    Attributes
    ----------
    function : Function
        With its domain.
    coordinates : tuple of int, optional
        Those it reads, in its own order; None for all. No other coordinate is touched.
    rotation : (int, int), optional
        D and seed of a rotation R: the function gets R x instead of x.
    """

    function: Function
    coordinates: tuple[int, ...] | None = None
    rotation: tuple[int, int] | None = None

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Value at a config."""
        low, high = np.array(self.function.low), np.array(self.function.high)
        return self.function.call(low + (self._read(config["x"]) + 1) / 2 * (high - low))

    def _read(self, x: Any) -> Array:
        if self.rotation is not None:
            rows = slice(None) if self.coordinates is None else list(self.coordinates)
            return rotation_matrix(*self.rotation)[rows] @ np.asarray(x, dtype=np.float64)
        picked = x if self.coordinates is None else x[list(self.coordinates)]
        return np.asarray(picked, dtype=np.float64)

    def optimizer(self, dim: int) -> Array:
        """Point of the optimum in the D-dimensional box; unread coordinates are 0.

        With a rotation it is the shortest such point, and it may lie outside the box.
        """
        low, high = np.array(self.function.low), np.array(self.function.high)
        x = np.zeros(dim)
        rows = slice(None) if self.coordinates is None else list(self.coordinates)
        x[rows] = 2 * (np.array(self.function.optimizer) - low) / (high - low) - 1
        return x if self.rotation is None else rotation_matrix(*self.rotation).T @ x


@lru_cache(maxsize=4)
def rotation_matrix(dim: int, seed: int) -> Array:
    """Random rotation, shape (dim, dim), uniform over the orthogonal group up to its sign.

    Notes
    -----
    Q of the QR decomposition of a Gaussian matrix, the diagonal of R made positive, with one
    row negated where the determinant is -1.
    """
    Q, R = np.linalg.qr(np.random.default_rng([dim, seed]).standard_normal((dim, dim)))
    Q = Q * np.sign(np.diag(R))
    Q[0] *= np.sign(np.linalg.det(Q))
    Q.setflags(write=False)
    return Q


def embedded(problem: Problem, dim: int, coordinates: int | Sequence[int] = 0) -> Problem:
    """`problem` in `dim` dimensions, of which it reads only its own number of coordinates.

    Parameters
    ----------
    problem
        A problem on a vector, neither embedded nor rotated yet.
    dim
        Number of coordinates, up to 10^12.
    coordinates
        Those that matter, or a seed that picks them.
    """
    objective = _plain(problem, "embedded")
    own = objective.function.dim
    if not own <= dim <= LARGEST_DIM:
        raise BenchmarkError(
            f"{problem.name!r} reads {own} coordinates: it embeds in {own} to 10^12, got {dim}"
        )
    if isinstance(coordinates, int):
        picked = _pick(dim, own, coordinates)
    else:
        picked = tuple(coordinates)
        if len(set(picked)) != own or not all(0 <= i < dim for i in picked):
            raise BenchmarkError(
                f"{problem.name!r} needs {own} different coordinates below {dim}, got {picked}"
            )
    return replace(
        problem,
        name=f"{problem.name}-in-{_short(dim)}",
        build_space=partial(Box, dim, low=-1.0, high=1.0),
        objective=replace(objective, coordinates=picked),
        description=f"{problem.description}, embedded in {_short(dim)} dimensions",
    )


def rotated(problem: Problem, seed: int = 0) -> Problem:
    """`problem` of the vector R x, R a random rotation (REMBO, section 4.2).

    The optimum is kept where some point of the box still reaches it for sure (the shortest one
    lies inside); otherwise it is not known.
    """
    objective = problem.objective
    if not isinstance(objective, VectorObjective) or objective.rotation is not None:
        raise BenchmarkError(f"{problem.name!r} cannot be rotated: it is no plain vector problem")
    dim = problem.space.dim
    if dim > LARGEST_ROTATION:
        raise BenchmarkError(
            f"{problem.name!r} has {dim} coordinates; a rotation is stored as a matrix "
            f"and is offered up to {LARGEST_ROTATION}"
        )
    objective = replace(objective, rotation=(dim, seed))
    inside = bool(np.all(np.abs(objective.optimizer(dim)) <= 1))
    return replace(
        problem,
        name=f"{problem.name}-rotated",
        objective=objective,
        optimum=problem.optimum if inside else None,
        description=f"{problem.description}, rotated",
    )


def _plain(problem: Problem, done: str) -> VectorObjective:
    objective = problem.objective
    if (
        not isinstance(objective, VectorObjective)
        or objective.coordinates is not None
        or objective.rotation is not None
    ):
        raise BenchmarkError(f"{problem.name!r} cannot be {done}: it is no plain vector problem")
    return objective


def _pick(dim: int, count: int, seed: int) -> tuple[int, ...]:
    """`count` different coordinates, without a permutation of all of them."""
    rng = np.random.default_rng([seed, dim])
    picked: list[int] = []
    while len(picked) < count:
        i = int(rng.integers(dim))
        if i not in picked:
            picked.append(i)
    return tuple(picked)


def _short(dim: int) -> str:
    text = f"{dim:.0e}".replace("e+0", "e").replace("e+", "e")
    return text if dim >= 10**6 and int(float(text)) == dim else str(dim)


def _vector_problem(name: str, function: Function, description: str) -> Problem:
    return Problem(
        name=name,
        build_space=partial(Box, function.dim, low=-1.0, high=1.0),
        objective=VectorObjective(function),
        optimum=function.optimum,
        mode=function.mode,
        evaluations=100 if function.dim <= 10 else 200 if function.dim <= 50 else 600,
        description=description,
    )


def _fixed(name: str) -> Problem:
    return _vector_problem(name, FIXED[name], name.capitalize())


def _scalable(name: str, dim: int) -> Problem:
    fewest = FEWEST.get(name, 2)
    if dim < fewest or (name in EVEN and dim % 2):
        kind = "an even number" if name in EVEN else f"at least {fewest}"
        raise BenchmarkError(f"{name!r} needs {kind} of coordinates, got {dim}")
    if dim > 10_000:
        raise BenchmarkError(f"{name!r} reads every coordinate: give at most 10000, got {dim}")
    title = name.replace("-", " ").capitalize()
    return _vector_problem(f"{name}-{dim}", SCALABLE[name](dim), f"{title}, {dim} coordinates")


def jenatton_space() -> Space:
    """Space of the Jenatton function: two binary choices deep, r8 and r9 shared by two leaves."""
    x, r = Float(-1, 1), Float(0, 1)
    return Space(
        {
            "x1": Choice(
                {
                    "0": {"r8": r, "x2": Choice({"0": {"x4": x}, "1": {"x5": x}})},
                    "1": {"r9": r, "x3": Choice({"0": {"x6": x}, "1": {"x7": x}})},
                }
            )
        }
    )


def _jenatton() -> Problem:
    description = "Tree function of Jenatton et al. (2017): 3 binary choices, 6 floats"
    return Problem("jenatton", jenatton_space, jenatton, 0.1, "min", 80, description)


def _elsewhere(path: str, *arguments: Any) -> Problem:
    """Problem made by a function of a module that imports this one."""
    module, _, name = path.partition(":")
    problem: Problem = getattr(importlib.import_module(module), name)(*arguments)
    return problem


_LAYER = "raybo.benchmarks.problems.networks.layer:layer"
_ROBOT = "raybo.benchmarks.problems.locomotion:locomotion"
_CASCADE = "raybo.benchmarks.problems.cascade_stumps:cascade_problem"
PROBLEMS: dict[str, Callable[..., Problem]] = {  # those of SCALABLE take a dimension
    "jenatton": _jenatton,
    "blocks": partial(_elsewhere, "raybo.benchmarks.problems.blocks:blocks"),
    "blocks-hartmann": partial(_elsewhere, "raybo.benchmarks.problems.blocks:blocks_hartmann"),
    "fc3": partial(_elsewhere, "raybo.benchmarks.problems.networks.fc3:fc3"),
    "cascade-ionosphere": partial(_elsewhere, _CASCADE, "ionosphere"),
    "cascade-german": partial(_elsewhere, _CASCADE, "german"),
    "face-cascade": partial(_elsewhere, "raybo.benchmarks.problems.face_cascade:face_cascade"),
    "lp-solve": partial(_elsewhere, "raybo.benchmarks.problems.solvers.lp_solve:lp_solve"),
    "lp-solve-large": partial(
        _elsewhere, "raybo.benchmarks.problems.solvers.lp_solve:lp_solve_large"
    ),
    "scip": partial(_elsewhere, "raybo.benchmarks.problems.solvers.scip:scip"),
    "pruning": partial(_elsewhere, "raybo.benchmarks.problems.networks.pruning:pruning"),
    "activations": partial(_elsewhere, "raybo.benchmarks.problems.networks.pruning:activations"),
    "vgg-pruning": partial(
        _elsewhere, "raybo.benchmarks.problems.networks.vgg_pruning:vgg_pruning"
    ),
    "resnet-activations": partial(
        _elsewhere, "raybo.benchmarks.problems.networks.resnet_activations:resnet_activations"
    ),
    "stochastic-depth": partial(
        _elsewhere, "raybo.benchmarks.problems.networks.stochastic_depth:stochastic_depth"
    ),
    "lasso-dna": partial(_elsewhere, "raybo.benchmarks.problems.lasso_svm:lasso_dna"),
    "svm-mdrr": partial(_elsewhere, "raybo.benchmarks.problems.lasso_svm:svm_mdrr"),
    "body-parts": partial(_elsewhere, "raybo.benchmarks.problems.body_parts:body_parts"),
    "cosmology": partial(_elsewhere, "raybo.benchmarks.problems.cosmology:cosmology"),
    "alloy": partial(_elsewhere, "raybo.benchmarks.problems.alloy:alloy"),
    **{name: partial(_elsewhere, _ROBOT, name) for name in ("swimmer", "hopper", "half-cheetah")},
    **{f"layer{n}": partial(_elsewhere, _LAYER, n) for n in (100, 200, 500)},
    **{name: partial(_fixed, name) for name in FIXED},
    **{name: partial(_scalable, name) for name in SCALABLE},
}

_NAME = re.compile(
    r"(?P<base>[a-z][a-z0-9-]*?)(-(?P<dim>\d+(e\d+)?))?(-in-(?P<into>\d+(e\d+)?))?(?P<rotated>-rotated)?"
)


def get_problem(name: str) -> Problem:
    """Problem called `name`; see the module's text for how names are made."""
    match = _NAME.fullmatch(name)
    if match is None or match["base"] not in PROBLEMS:
        raise BenchmarkError(
            f"problem {name!r} is not known; there are {', '.join(names())}, where D stands for "
            "a dimension (20, 1e9); -in-D embeds and -rotated rotates a vector problem"
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
    """Names of the problems, `-D` where a dimension is needed and `[-D]` where it embeds."""
    marks = {**dict.fromkeys(SCALABLE, "-D"), **dict.fromkeys(FIXED, "[-D]")}
    return [name + marks.get(name, "") for name in PROBLEMS]


def _number(text: str | None) -> int | None:
    return None if text is None else int(float(text))
