"""Conditional problems: the Jenatton function, and choices side by side.

The blocks are after Add-Tree, section 5.3: three blocks of VGG16, each pruned by one of 2 methods
with 3 ratios. The paper expands the choices into a tree with 42 parameters; without that there
are 18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space

BLOCKS, METHODS, RATIOS = 3, ("l1", "l2"), 3

_draw = np.random.default_rng(0)
_CENTRES = _draw.uniform(0.15, 0.85, (BLOCKS, len(METHODS), RATIOS))  # of the best ratios
_WEIGHTS = _draw.uniform(0.5, 1.5, (BLOCKS, len(METHODS), RATIOS))
_COSTS = np.array([(0.0, 0.1), (0.15, 0.0), (0.0, 0.2)])  # of a method, at its best

# Hartmann's function of 3 variables (Picheny et al. 2013); each block and method has the variables
# in another order, and some of them reversed.
_C3 = np.array([1.0, 1.2, 3.0, 3.2])
_A3 = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0]] * 2)
_P3 = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
_LEAST3 = -3.862779787332663
_draw = np.random.default_rng(0)
_ORDERS = np.array([[_draw.permutation(RATIOS) for _ in METHODS] for _ in range(BLOCKS)])
_REVERSED = _draw.integers(0, 2, (BLOCKS, len(METHODS), RATIOS))


def jenatton(config: Mapping[str, Any]) -> float:
    """Return the tree function of Jenatton et al. (2017), Add-Tree's Figure 3; minimum 0.1.

    Notes
    -----
    x1 = 0: r8 + (x4^2 + 0.1 if x2 = 0 else x5^2 + 0.2);
    x1 = 1: r9 + (x6^2 + 0.3 if x3 = 0 else x7^2 + 0.4); x in [-1, 1], r in [0, 1].
    """
    [(side, inside)] = config["x1"].items()
    shared, choice, offset = ("r8", "x2", 0.1) if side == "0" else ("r9", "x3", 0.3)
    [(branch, leaf)] = inside[choice].items()
    [value] = leaf.values()
    return float(value**2 + offset + 0.1 * int(branch) + inside[shared])


def jenatton_space() -> Space:
    """Return its space: two levels of binary choices, r8 and r9 shared by two leaves each."""
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


def jenatton_problem() -> Problem:
    """Return the Jenatton function as a problem."""
    description = "Tree function of Jenatton et al. (2017): 3 binary choices, 6 floats"
    return Problem("jenatton", jenatton_space, jenatton, 0.1, "min", 80, description)


def blocks_space(most: float = 1.0) -> Space:
    """Return a choice per block, with 3 ratios from 0 to `most` under each of its methods."""
    ratios = {f"ratio{i}": Float(0, most) for i in range(RATIOS)}
    choice = Choice(dict.fromkeys(METHODS, ratios))
    return Space({f"block{k}": choice for k in range(BLOCKS)})


def _bowl(k: int, m: int, ratios: Array) -> float:
    return float(_COSTS[k, m] + _WEIGHTS[k, m] @ (ratios - _CENTRES[k, m]) ** 2)


def _hartmann3(k: int, m: int, ratios: Array) -> float:
    x = ratios[_ORDERS[k, m]]
    x = np.where(_REVERSED[k, m], 1.0 - x, x)
    value = -float(_C3 @ np.exp(-np.sum(_A3 * (x - _P3) ** 2, axis=1)))
    return float(5.0 * _COSTS[k, m]) + value - _LEAST3


def _total(block: Callable[[int, int, Array], float], config: Mapping[str, Any]) -> float:
    """Return the sum over the blocks of the chosen method's value; minimum 0."""
    total = 0.0
    for k in range(BLOCKS):
        [(method, ratios)] = config[f"block{k}"].items()
        total += block(k, METHODS.index(method), np.array(list(ratios.values())))
    return total


def blocks() -> Problem:
    """Return the sum of three independent blocks, a bowl for each method."""
    return Problem(
        "blocks",
        blocks_space,
        partial(_total, _bowl),
        0.0,
        evaluations=100,
        description="3 blocks, each with 2 methods of 3 parameters: bowls, added up",
    )


def blocks_hartmann() -> Problem:
    """Return the sum of three independent blocks, a Hartmann function for each method."""
    return Problem(
        "blocks-hartmann",
        blocks_space,
        partial(_total, _hartmann3),
        0.0,
        evaluations=100,
        description="3 blocks, each with 2 methods of 3 parameters: Hartmann3, added up",
    )
