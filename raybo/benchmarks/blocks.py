"""Independent choices side by side: a method for each of three blocks, as in pruning VGG16.

Add-Tree, section 5.3, has 3 blocks of a network, each pruned by one of 2 methods with 3 ratios.
The paper expands the choices into a tree with 42 parameters; without that there are 18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raybo.benchmarks.problems import Problem
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space

BLOCKS, METHODS, RATIOS = 3, ("l1", "l2"), 3

_draw = np.random.default_rng(0)
_CENTRES = _draw.uniform(0.15, 0.85, (BLOCKS, len(METHODS), RATIOS))  # of the best ratios
_WEIGHTS = _draw.uniform(0.5, 1.5, (BLOCKS, len(METHODS), RATIOS))
_COSTS = np.array([(0.0, 0.1), (0.15, 0.0), (0.0, 0.2)])  # of a method, at its best


def blocks_space(most: float = 1.0) -> Space:
    """A choice per block, 3 ratios from 0 to `most` under each of its methods."""
    ratios = {f"ratio{i}": Float(0, most) for i in range(RATIOS)}
    choice = Choice(dict.fromkeys(METHODS, ratios))
    return Space({f"block{k}": choice for k in range(BLOCKS)})


def blocks_value(config: Mapping[str, Any]) -> float:
    """Sum over the blocks of the method's cost and a weighted squared distance; minimum 0."""
    total = 0.0
    for k in range(BLOCKS):
        [(method, ratios)] = config[f"block{k}"].items()
        m = METHODS.index(method)
        away = np.array(list(ratios.values())) - _CENTRES[k, m]
        total += float(_COSTS[k, m] + _WEIGHTS[k, m] @ away**2)
    return total


def blocks() -> Problem:
    """Additive function of three independent blocks."""
    return Problem(
        "blocks",
        blocks_space,
        blocks_value,
        0.0,
        evaluations=100,
        description="3 blocks, each with 2 methods of 3 parameters; additive over the blocks",
    )
