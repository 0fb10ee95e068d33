"""Shared fixtures: one local Ray cluster for the whole run."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("raybo", deadline=None, derandomize=True)
settings.load_profile("raybo")

# Read when ray is imported or started, here and in the drivers that tests start: no calls home, no
# warning about GPU variables, no token for a cluster that lives as long as the tests.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Start a local Ray with four CPUs and no dashboard, in a fresh namespace."""
    import ray

    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        namespace=uuid.uuid4().hex,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()
