"""Shared fixtures: one local Ray cluster for the whole run."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("raybo", deadline=None, derandomize=True)
settings.load_profile("raybo")

# Threads that wait for each other in small solves only keep other processes from the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The hundreds of processes that the tests start would each compile raybo anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Read when ray is imported or started, here and in the drivers that tests start: no calls home, no
# warning about GPU variables, no token for a cluster that lives as long as the tests.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # 30 are too few on busy cores


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Start a local Ray with two CPUs and no dashboard, in a fresh namespace."""
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        namespace=uuid.uuid4().hex,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()


@pytest.fixture
def pid_of_actor(ray_cluster: None) -> Callable[[str], int | None]:
    """Return a function that finds the process of an actor of this cluster by its class."""
    import ray

    from raybo.runtime.proposals.kept import kept

    session = ray._private.worker._global_node.get_session_dir_path()

    def processes() -> Iterator[tuple[Path, str]]:
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    yield folder, (folder / "cmdline").read_bytes().decode(errors="replace")
                except OSError:  # it has ended
                    continue

    raylets = {f.name for f, line in processes() if session in line and "/raylet/raylet\0" in line}

    def find(name: str) -> int | None:
        for folder, title in processes():
            if title.startswith(f"ray::{name}"):
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if parent in raylets:  # other clusters may run on this machine
                    return int(folder.name)
        return None

    kept.clear()  # else it may find one that no study uses
    deadline = time.monotonic() + 60
    while find("ProposerActor") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return find
