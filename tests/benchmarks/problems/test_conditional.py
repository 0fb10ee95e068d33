from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from raybo.benchmarks.problems.conditional import blocks, blocks_hartmann, jenatton


@pytest.mark.parametrize(
    ("x1", "x2", "leaf", "best"),
    [("0", "0", "x4", 0.1), ("0", "1", "x5", 0.2), ("1", "0", "x6", 0.3), ("1", "1", "x7", 0.4)],
)
def test_jenatton_has_one_parabola_per_leaf(x1, x2, leaf, best):
    shared, choice = ("r8", "x2") if x1 == "0" else ("r9", "x3")
    config = {"x1": {x1: {shared: 0.0, choice: {x2: {leaf: 0.0}}}}}
    assert jenatton(config) == pytest.approx(best)
    config["x1"][x1][shared] = 0.25
    config["x1"][x1][choice][x2][leaf] = -0.5
    assert jenatton(config) == pytest.approx(best + 0.5)


@pytest.mark.parametrize("make", [blocks, blocks_hartmann])
def test_blocks_have_their_optimum_at_the_methods_without_a_cost(make):
    problem = make()
    assert problem.space.dim == 21

    def value(ratios):
        return problem.objective(
            {
                f"block{k}": {method: {f"ratio{i}": r for i, r in enumerate(ratios[k])}}
                for k, method in enumerate(("l1", "l2", "l1"))
            }
        )

    ratios, rng = np.full((3, 3), 0.5), np.random.default_rng(0)
    for k in range(3):  # the blocks add up: one after the other is enough

        def alone(row, k=k):
            ratios[k] = row
            return value(ratios)

        found = [
            minimize(alone, x, bounds=[(0, 1)] * 3, method="L-BFGS-B") for x in rng.random((8, 3))
        ]
        ratios[k] = min(found, key=lambda f: f.fun).x
    assert value(ratios) == pytest.approx(problem.optimum, abs=1e-4)
