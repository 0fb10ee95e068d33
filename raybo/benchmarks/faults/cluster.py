"""A Ray cluster of several nodes on this machine, whose nodes can be killed and replaced."""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from typing import Any, Self

import ray
from ray.cluster_utils import Cluster

_START_SECONDS = 180.0  # for the nodes to join
_SYSTEM = {  # a dead node is noticed in about 5 s; see cluster/README.md for what this costs
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 5,
    "worker_niceness": 0,  # Ray adds 15, and workers starve beside other programs
}
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}


class LocalCluster:
    """A head without CPUs, and `nodes` nodes; inside `with`, this process is connected to it.

    Drivers started inside find it by RAY_ADDRESS. Other Rays of this machine are left alone: the
    cluster's files, and the note of its address, are in a folder that is removed at the end.
    """

    def __init__(self, nodes: int = 3, cpus: int = 2) -> None:
        self._n_nodes = nodes
        self._cpus = cpus
        self._nodes: list[Any] = []
        self._cluster: Any = None

    def __enter__(self) -> Self:
        self._environment = dict(os.environ)
        self._folder = tempfile.mkdtemp(prefix="raybo-", dir="/tmp")  # short: it holds sockets
        os.environ.update(_ENVIRONMENT, RAY_TMPDIR=self._folder)
        os.environ.pop("RAY_ADDRESS", None)
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": _SYSTEM}
        try:
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
            os.environ["RAY_ADDRESS"] = self._cluster.address
            ray.init(self._cluster.address, logging_level=logging.ERROR, log_to_driver=False)
            for _ in range(self._n_nodes):
                self.add()
            self._cluster.wait_for_nodes(_START_SECONDS)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def add(self) -> None:
        """Start another node; on a busy machine Ray may need several tries."""
        for tries_left in (2, 1, 0):
            try:
                self._nodes.append(self._cluster.add_node(wait=False, num_cpus=self._cpus))
            except Exception:
                if not tries_left:
                    raise
            else:
                return

    def kill(self) -> None:
        """Kill a node chosen at random, without warning; its workers end with it."""
        node = self._nodes.pop(random.randrange(len(self._nodes)))
        self._cluster.remove_node(node, allow_graceful=False)

    def n_alive(self) -> int:
        """Return the number of nodes with CPUs that the cluster counts on."""
        nodes: Any = ray.nodes
        return sum(node["Alive"] and "CPU" in node["Resources"] for node in nodes())

    def _end(self) -> None:
        shutdown: Any = ray.shutdown
        shutdown()
        if self._cluster is not None:
            self._cluster.shutdown()
        os.environ.clear()
        os.environ.update(self._environment)
        shutil.rmtree(self._folder, ignore_errors=True)
