"""Shared fixtures: one local Ray cluster for the whole run."""

from __future__ import annotations

import os
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
    # It looks at the files of all processes there ever were ten times a second; nobody reads them.
    ray._private.worker._global_node.kill_log_monitor()
    yield
    ray.shutdown()


@pytest.fixture
def pid_of_actor(ray_cluster: None) -> Callable[[str], int | None]:
    """Return a function that finds a process by the class of its actor, started in this test."""
    import ray

    from raybo.runtime.proposals.kept import kept

    session = ray._private.worker._global_node.get_session_dir_path()

    def processes() -> Iterator[tuple[str, str, str]]:
        """Pid, title and parent of the processes of this machine."""
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    title = (folder / "cmdline").read_bytes().decode(errors="replace")
                    parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                except OSError:  # it has ended
                    continue
                yield folder.name, title, parent

    # Other clusters may run on this machine.
    raylets = {pid for pid, title, _ in processes() if session in title and "/raylet\0" in title}

    def actors(name: str) -> Iterator[int]:
        for pid, title, parent in processes():
            if title.startswith(f"ray::{name}") and "Actor" in title and parent in raylets:
                yield int(pid)

    kept.clear()
    old = set(actors(""))  # of earlier tests, which may take a while to end
    return lambda name: next((pid for pid in actors(name) if pid not in old), None)
