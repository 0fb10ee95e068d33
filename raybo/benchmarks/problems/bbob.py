"""BBOB, the 24 continuous functions of the COCO platform (Hansen et al. 2009), through `ioh`.

`bbob-fK-D` is function K in D dimensions on [-5, 5]^D, instance 1: optimum and rotation are those
that COCO draws for it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from raybo.benchmarks.problems.base import BenchmarkError, Problem
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.space.box import Box

INSTANCE = 1
FUNCTIONS, LARGEST_DIM = 24, 100


@lru_cache(maxsize=8)
def function(number: int, dim: int) -> Any:
    """Return the function of `ioh`."""
    try:
        ioh = importlib.import_module("ioh")
    except ImportError:
        raise DatasetError("problems 'bbob-...' need IOHexperimenter; pip install ioh") from None
    return ioh.get_problem(number, INSTANCE, dim, ioh.ProblemClass.BBOB)


@dataclass(frozen=True)
class Bbob:
    """Value of a function at {"x": point}."""

    number: int
    dim: int

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        return float(function(self.number, self.dim)(np.asarray(config["x"], dtype=np.float64)))


def bbob(name: str) -> Problem:
    """Return the problem "bbob-fK-D"."""
    match = re.fullmatch(r"bbob-f(\d+)-(\d+)", name)
    number, dim = (int(match[1]), int(match[2])) if match else (0, 0)
    if not (1 <= number <= FUNCTIONS and 2 <= dim <= LARGEST_DIM):
        raise BenchmarkError(
            f"problem {name!r} is not known; write bbob-fK-D, function K from 1 to {FUNCTIONS} in "
            f"D from 2 to {LARGEST_DIM} dimensions: bbob-f15-20"
        )
    found = function(number, dim)
    return Problem(
        name,
        partial(Box, dim, -5.0, 5.0),
        Bbob(number, dim),
        optimum=float(found.optimum.y),
        description=f"BBOB's function {number} in {dim} dimensions, {found.meta_data.name}",
        cost="microseconds, with ioh",
    )
