"""The Ray cluster: how to join or start it, and what resources it has."""

from __future__ import annotations

import logging
import math
import os
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from raybo.errors import StudyError
from raybo.runtime.session import Resources
from raybo.runtime.timeouts import FREE_SECONDS, REACH_SECONDS, RETRY_SECONDS

logger = logging.getLogger(__name__)

WAIT_VARIABLE = "RAYBO_WAIT_FOR_NODES"
_NAMES = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}


def connect() -> None:
    """Join the cluster of this machine, or start a local one that lasts as long as the process.

    RAY_ADDRESS names a cluster; without it Ray joins one that runs on this machine, and starts
    one if there is none.
    """
    if ray.util.client.ray.is_connected():  # type: ignore[no-untyped-call]
        raise StudyError(
            "a ray:// client cannot run a study: its journal would be on another machine; submit "
            "the script with `ray job submit`, or run it on a node of the cluster"
        )
    if ray.is_initialized():
        return
    # Ray warns that it asks for a token, which is what the documentation tells people to do.
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
    stale = None if "RAY_ADDRESS" in os.environ else _stale_address()
    if stale:
        logger.warning("the cluster at %s is gone: starting a local one instead", stale)
    try:
        ray.init(address="local" if stale else None, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError, ValueError, exceptions.RayError) as error:
        address = os.environ.get("RAY_ADDRESS")
        where = (
            f"the cluster at RAY_ADDRESS={address}" if address else "a local or running cluster"
        )
        raise StudyError(
            f"cannot connect to {where}: {error}; check that it runs (ray status), that Ray and "
            "Python have the same versions there, and that RAY_AUTH_MODE and its token are the "
            "same; or unset RAY_ADDRESS and call ray.init(address='local') first"
        ) from error


def _stale_address() -> str | None:
    """Return the address of a cluster that was killed but is still noted, where Ray would wait."""
    root = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    try:
        address = (Path(root) / "ray" / "ray_current_cluster").read_text().strip()
    except OSError:
        return None
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, ValueError):
        return address or None
    return None


def most_workers(resources: Resources) -> int:
    """Return how many evaluations fit into the whole cluster at once."""
    need = {"CPU": 1.0} if callable(resources) else needs(resources)
    return sum(_fits(node, need) for node in _nodes()) if need else 2**31


def default_workers(resources: Resources) -> int:
    """Return how many evaluations the free resources of the cluster allow at once, at least 1.

    Ray frees the resources of a study that has just ended after a moment, for which this waits.
    """
    need = {"CPU": 1.0} if callable(resources) else needs(resources)
    need = need or {"CPU": 1.0}  # asks for nothing: one per CPU
    most = sum(_fits(node, need) for node in _nodes())
    deadline = time.monotonic() + FREE_SECONDS
    while (found := _free(need)) < most and time.monotonic() < deadline:
        time.sleep(RETRY_SECONDS)
    return max(1, min(found, most))


def _free(need: Mapping[str, float]) -> int:
    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    together = min(free.get(name, 0.0) / amount for name, amount in need.items())
    return math.floor(together + 1e-9)


def check_fit(resources: Mapping[str, Any]) -> None:
    """Raise when no node could ever run an evaluation, for which Ray would wait in silence."""
    need, nodes = needs(resources), _nodes()
    if any(_fits(node, need) for node in nodes) or os.environ.get(WAIT_VARIABLE):
        return
    wanted = ", ".join(f"{name}={amount:g}" for name, amount in need.items())
    have = "; ".join(_describe(node, need) for node in nodes) or "no nodes"
    raise StudyError(
        f"no node has {wanted} for one evaluation; the cluster has: {have}; lower resources=, add "
        f"a node, or set {WAIT_VARIABLE}=1 if the cluster starts such nodes on demand"
    )


def needs(resources: Mapping[str, Any]) -> dict[str, float]:
    """Return what one evaluation needs of a node, by Ray's names."""
    named = {_NAMES[k]: float(v) for k, v in resources.items() if k in _NAMES and v}
    custom = resources.get("resources") or {}
    if "num_cpus" not in resources:
        named["CPU"] = 1.0  # Ray's default for a task
    return {**named, **{str(k): float(v) for k, v in custom.items() if v}}


def _nodes() -> list[dict[str, float]]:
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node["Resources"] for node in nodes if node["Alive"]]


def _fits(node: Mapping[str, float], need: Mapping[str, float]) -> int:
    """Return how many evaluations fit on an empty node."""
    if not need:
        return 1
    return min(math.floor(node.get(name, 0.0) / amount + 1e-9) for name, amount in need.items())


def _describe(node: Mapping[str, float], need: Mapping[str, float]) -> str:
    shown = {name: node.get(name, 0.0) for name in dict.fromkeys(["CPU", "GPU", *need])}
    return "a node with " + ", ".join(f"{name}={amount:g}" for name, amount in shown.items())
