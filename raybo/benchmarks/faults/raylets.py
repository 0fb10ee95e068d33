"""A Ray cluster of several nodes on this machine, whose nodes can be killed and replaced.

Each node leads a process group of its own and keeps its files in a folder of its own. The cluster
has a token of its own: other Rays on this machine are neither touched nor found by it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ray

from raybo.benchmarks.problems.base import BenchmarkError

_START_SECONDS = 180.0
_END_SECONDS = 15.0

_TOKEN = "RAY_AUTH_TOKEN_PATH"
_SETTINGS = {  # a dead node is noticed in about 5 s; see cluster/README.md for what this costs
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "5",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_worker_niceness": "0",  # Ray adds 15, and workers starve beside other programs
}


def restart_with_token() -> None:
    """Start this program again with a token of its own, unless it has one.

    Ray reads its settings when it is imported: setting them now would be too late.
    """
    if Path(os.environ.get(_TOKEN, "")).name == "raybo-token":
        return
    folder = Path(tempfile.mkdtemp(prefix="raybo-", dir="/tmp"))  # short: it will hold sockets
    token = folder / "raybo-token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    environment = {**os.environ, **_SETTINGS, _TOKEN: str(token)}
    environment.pop("RAY_ADDRESS", None)
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


class Raylets:
    """A head without CPUs and `nodes` nodes; entered, this process is connected to it.

    Needs `restart_with_token` before.
    """

    def __init__(self, nodes: int = 3, cpus: int = 2) -> None:
        self.address = ""
        self._cpus = cpus
        self._wanted = nodes
        self._count = 0
        self._folder = Path(os.environ[_TOKEN]).parent
        self._head: subprocess.Popen[bytes] | None = None
        self._nodes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._head = self._start("head", "--head", "--port=0", "--num-cpus=0",
                                     "--include-dashboard=false")  # fmt: skip
            self.address = self._wait_for_head()
            os.environ["RAY_ADDRESS"] = self.address  # for the drivers
            for _ in range(self._wanted):
                self.add()
            init: Any = ray.init
            init(address=self.address, logging_level="ERROR", log_to_driver=False)
            self.wait(self._wanted)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def add(self) -> None:
        """Start another node."""
        self._count += 1
        cpus = f"--num-cpus={self._cpus}"
        address = f"--address={self.address}"
        node = self._start(f"node-{self._count}", address, cpus, "--include-log-monitor=false")
        self._nodes.append(node)

    def kill(self, index: int) -> None:
        """Kill a node with all its processes at once, as a power cut would."""
        end_family(self._nodes.pop(index % len(self._nodes)))

    def n_alive(self) -> int:
        """Nodes with CPUs that the cluster counts on."""
        nodes: Any = ray.nodes
        return sum(node["Alive"] and "CPU" in node["Resources"] for node in nodes())

    def wait(self, nodes: int) -> None:
        """Return when so many nodes are there."""
        deadline = time.monotonic() + _START_SECONDS
        while self.n_alive() < nodes:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"not all {nodes} nodes came up; see {self._folder}/*.log")
            time.sleep(0.2)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        ray_command = str(Path(sys.executable).with_name("ray"))
        folder = self._folder / name
        with open(f"{folder}.log", "wb") as log:
            return subprocess.Popen(
                [ray_command, "start", "--block", f"--temp-dir={folder}", *arguments,
                 "--object-store-memory=100000000", "--dashboard-agent-listen-port=0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def _wait_for_head(self) -> str:
        note = self._folder / "head" / "ray_current_cluster"
        deadline = time.monotonic() + _START_SECONDS
        while not (note.exists() and note.read_text().strip()):
            if time.monotonic() > deadline or (self._head and self._head.poll() is not None):
                text = (self._folder / "head.log").read_text()[-2000:]
                raise BenchmarkError(f"the head of the cluster did not start:\n{text}")
            time.sleep(0.2)
        return note.read_text().strip()

    def _end(self) -> None:
        shutdown: Any = ray.shutdown
        shutdown()
        leaders = [node for node in (*self._nodes, self._head) if node is not None]
        for leader in leaders:
            leader.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for leader in leaders:
            with contextlib.suppress(subprocess.TimeoutExpired):
                leader.wait(max(0.1, deadline - time.monotonic()))
            end_family(leader)
        shutil.rmtree(self._folder, ignore_errors=True)


def end_family(leader: subprocess.Popen[Any]) -> None:
    """Kill a process and all that it started."""
    family = [leader.pid] if leader.poll() is None else []
    for pid in family:  # grows while it is walked
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                family += map(int, children.read_text().split())
    for pid in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    leader.wait(_END_SECONDS)
