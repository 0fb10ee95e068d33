"""Problems on vectors: functions on [-1, 1]^D, embedded in more dimensions or rotated.

REMBO and BOCK search every function on [-1, 1]^D, whatever its domain; so do these problems. The
space is a `Box`, and the objective maps its point to the domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import BenchmarkError, Problem
from raybo.benchmarks.problems.functions import EVEN, FEWEST, FIXED, SCALABLE, Function
from raybo.space.box import Box

LARGEST_DIM = 10**12  # of an embedding
LARGEST_ROTATION = 2000  # coordinates; a rotation is a dense matrix


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


def fixed(name: str) -> Problem:
    """Return the problem of a function of `FIXED`."""
    return _vector_problem(name, FIXED[name], name.capitalize())


def scalable(name: str, dim: int) -> Problem:
    """Return the problem of a function of `SCALABLE` with `dim` coordinates."""
    fewest = FEWEST.get(name, 2)
    if dim < fewest or (name in EVEN and dim % 2):
        wanted = "an even number of" if name in EVEN else f"at least {fewest}"
        raise BenchmarkError(f"{name!r} needs {wanted} coordinates, got {dim}")
    if dim > 10_000:
        raise BenchmarkError(f"{name!r} reads every coordinate: give at most 10000, got {dim}")
    title = name.replace("-", " ").capitalize()
    return _vector_problem(f"{name}-{dim}", SCALABLE[name](dim), f"{title}, {dim} coordinates")


@dataclass(frozen=True)
class VectorObjective:
    """A function of a vector as an objective of the config {"x": point of [-1, 1]^D}.

    Attributes
    ----------
    function : Function
        The function, with its domain.
    coordinates : tuple of int, optional
        Those it reads, in the order it reads them; None for all.
    rotation : (int, int), optional
        D and seed of a rotation R: the function gets R x instead of x.
    """

    function: Function
    coordinates: tuple[int, ...] | None = None
    rotation: tuple[int, int] | None = None

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        low, high = np.array(self.function.low), np.array(self.function.high)
        return self.function.call(low + (self._read(config["x"]) + 1) / 2 * (high - low))

    def _read(self, x: Any) -> Array:
        if self.rotation is not None:
            rows = slice(None) if self.coordinates is None else list(self.coordinates)
            return rotation_matrix(*self.rotation)[rows] @ np.asarray(x, dtype=np.float64)
        picked = x if self.coordinates is None else x[list(self.coordinates)]
        return np.asarray(picked, dtype=np.float64)

    def optimizer(self, dim: int) -> Array:
        """Return the point of the optimum in the D-dimensional box; unread coordinates are 0.

        With a rotation this is the shortest such point, which may lie outside the box.
        """
        low, high = np.array(self.function.low), np.array(self.function.high)
        x = np.zeros(dim)
        rows = slice(None) if self.coordinates is None else list(self.coordinates)
        x[rows] = 2 * (np.array(self.function.optimizer) - low) / (high - low) - 1
        return x if self.rotation is None else rotation_matrix(*self.rotation).T @ x


@lru_cache(maxsize=4)
def rotation_matrix(dim: int, seed: int) -> Array:
    """Return a random rotation, shape (dim, dim), uniform over all rotations.

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
    """Return `problem` in `dim` dimensions, of which it reads a few.

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
    n_read = objective.function.dim
    if not n_read <= dim <= LARGEST_DIM:
        raise BenchmarkError(
            f"{problem.name!r} has {n_read} coordinates: embed it in {n_read} to 10^12, got {dim}"
        )
    if isinstance(coordinates, int):
        picked = _pick(dim, n_read, coordinates)
    else:
        picked = tuple(coordinates)
        if len(set(picked)) != n_read or not all(0 <= i < dim for i in picked):
            raise BenchmarkError(
                f"{problem.name!r} needs {n_read} different coordinates below {dim}, got {picked}"
            )
    return replace(
        problem,
        name=f"{problem.name}-in-{_short(dim)}",
        build_space=partial(Box, dim, low=-1.0, high=1.0),
        objective=replace(objective, coordinates=picked),
        description=f"{problem.description}, embedded in {_short(dim)} dimensions",
    )


def rotated(problem: Problem, seed: int = 0) -> Problem:
    """Return `problem` of the vector R x, R a random rotation (REMBO, section 4.2).

    The optimum is kept where its shortest point lies inside the box; elsewhere it is not known.
    """
    objective = problem.objective
    if not isinstance(objective, VectorObjective) or objective.rotation is not None:
        raise BenchmarkError(f"{problem.name!r} cannot be rotated: only plain vector problems can")
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
        raise BenchmarkError(f"{problem.name!r} cannot be {done}: only plain vector problems can")
    return objective


def _pick(dim: int, count: int, seed: int) -> tuple[int, ...]:
    """Return `count` different coordinates, without a permutation of all of them."""
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
