from __future__ import annotations

import numpy as np
import pytest

from raybo.benchmarks.problems.locomotion import LinearPolicy


def test_a_policy_of_zeros_stands_still_and_values_repeat() -> None:
    pytest.importorskip("mujoco", reason="needs mujoco")
    pytest.importorskip("gymnasium", reason="needs gymnasium")
    rng = np.random.default_rng(0)
    for robot, dim in (("hopper", 33), ("swimmer", 16)):
        objective = LinearPolicy(robot)
        configs = [{"x": rng.uniform(-1, 1, dim)} for _ in range(3)]
        values = [objective(config) for config in configs]
        assert len(set(values)) == 3
        assert objective(configs[0]) == values[0]
    assert objective({"x": np.zeros(16)}) == pytest.approx(0.0, abs=1e-6)
