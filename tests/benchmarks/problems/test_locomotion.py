from __future__ import annotations

import numpy as np
import pytest

from raybo.benchmarks.problems.bocode import POLICIES, files
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.locomotion import ROBOTS, TRAINED, LinearPolicy, environment, scales
from raybo.benchmarks.problems.plain_pickle import read_arrays
from raybo.benchmarks.problems.registry import get_problem


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


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_robot_has_the_actions_and_states_of_its_environment(robot: str) -> None:
    pytest.importorskip("mujoco", reason="needs mujoco")
    pytest.importorskip("gymnasium", reason="needs gymnasium")
    env, (_, n_actions, n_states) = environment(robot), ROBOTS[robot]
    assert env.action_space.shape == (n_actions,)
    assert env.observation_space.shape == (n_states,)
    assert get_problem(robot).space.dim == n_actions * n_states


def test_trained_policies_walk_with_the_scales_of_their_states() -> None:
    pytest.importorskip("mujoco", reason="needs mujoco")
    pytest.importorskip("gymnasium", reason="needs gymnasium")
    try:
        files()
    except DatasetError as error:
        pytest.skip(f"bocode cannot be fetched: {error}")
    for robot, walks in (("walker2d", 5000.0), ("ant", 3000.0)):
        folder, gone = TRAINED[robot]
        weights, *_ = read_arrays(files()[f"{POLICIES}/{folder}/lin_policy_plus.npz"])
        x = np.delete(weights, gone, axis=1).ravel()
        assert LinearPolicy(robot)({"x": x}) > walks
    mean, deviation = scales("humanoid")
    assert mean.shape == deviation.shape == (376,)
