"""Linear policies for MuJoCo's robots, action = W (state - mean) / deviation.

The value is the sum of rewards of one run. After Mania, Guy & Recht (2018), as used to compare
tuners by Wang, Fonseca & Tian (2020). Mean and deviation of the states are fixed, so that a value
depends on the config alone. For the smaller robots they are those of random actions; for the
larger ones, which soon fall when they act at random, those of trained policies of Mania et al.,
which the package bocode holds.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.bocode import POLICIES, files
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.plain_pickle import read_arrays
from raybo.space.box import Box

# Name: environment of Gymnasium, numbers of actions and of states. Humanoid-v5 leaves out states
# of the published task.
ROBOTS = {
    "swimmer": ("Swimmer-v5", 2, 8),
    "hopper": ("Hopper-v5", 3, 11),
    "half-cheetah": ("HalfCheetah-v5", 6, 17),
    "walker2d": ("Walker2d-v5", 6, 17),
    "ant": ("Ant-v5", 8, 105),
    "humanoid": ("Humanoid-v4", 17, 376),
}
# Robots with the states' scales of a trained policy: its folder, and its states that the
# environment no longer has (in Ant-v5, the forces on the ground itself).
TRAINED = {
    "walker2d": ("Walker2d-v1", slice(0, 0)),
    "ant": ("Ant-v1", slice(27, 33)),
    "humanoid": ("Humanoid-v1", slice(0, 0)),
}
STEPS = 1000
_RANDOM = 3  # runs in which the states are measured


@lru_cache(maxsize=3)
def environment(name: str) -> Any:
    """Return the robot, kept from one evaluation to the next."""
    try:
        importlib.import_module("mujoco")
        gymnasium = importlib.import_module("gymnasium")
    except ImportError:
        raise DatasetError(
            f"problem {name!r} needs MuJoCo; pip install 'gymnasium' 'mujoco'"
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about Humanoid-v4, which is not the newest
        # Without noise every run starts at rest: a swimmer that does nothing otherwise coasts on
        # its random first velocity, for a return of 24 with seed 0 and -11 with seed 1.
        return gymnasium.make(ROBOTS[name][0], max_episode_steps=STEPS, reset_noise_scale=0.0)


def episode(name: str, policy: Callable[[Array], Array]) -> tuple[float, Array]:
    """Run once from the same start; return the sum of rewards and the states (steps, states)."""
    env = environment(name)
    state, _ = env.reset(seed=0)
    strongest = float(env.action_space.high[0])
    total, states = 0.0, []
    for _ in range(STEPS):
        states.append(state)
        state, reward, over, late, _ = env.step(np.clip(policy(state), -strongest, strongest))
        total += float(reward)
        if over or late:
            break
    return total, np.array(states)


@lru_cache(maxsize=len(ROBOTS))
def scales(name: str) -> tuple[Array, Array]:
    """Return mean and deviation of the states, under random actions or of a trained policy.

    Under a policy of random weights they would not do: at rest, where every run starts, its action
    is 0.
    """
    if name in TRAINED:
        return _trained(*TRAINED[name])
    rng = np.random.default_rng(0)
    n_actions = ROBOTS[name][1]
    runs = [episode(name, lambda _: rng.uniform(-1, 1, n_actions))[1] for _ in range(_RANDOM)]
    met = np.concatenate(runs)
    return met.mean(0), met.std(0) + 1e-6


def _trained(folder: str, gone: slice) -> tuple[Array, Array]:
    _, mean, deviation = read_arrays(files()[f"{POLICIES}/{folder}/lin_policy_plus.npz"])
    return np.delete(mean, gone), np.delete(deviation, gone)


@dataclass(frozen=True)
class LinearPolicy:
    """Sum of rewards of the policy whose weights are {"x": row by row}."""

    robot: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        _, n_actions, n_states = ROBOTS[self.robot]
        weights = np.asarray(config["x"], dtype=np.float64).reshape(n_actions, n_states)
        mean, deviation = scales(self.robot)
        return episode(self.robot, lambda state: weights @ ((state - mean) / deviation))[0]


def locomotion(robot: str) -> Problem:
    """Return the problem of a robot of `ROBOTS`."""
    _, n_actions, n_states = ROBOTS[robot]
    dim = n_actions * n_states
    return Problem(
        robot,
        partial(Box, dim),
        LinearPolicy(robot),
        mode="max",
        evaluations=400,
        description=f"MuJoCo's {robot}: return of a linear policy of {dim} weights",
        cost="0.2 s",
    )
