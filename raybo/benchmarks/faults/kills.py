"""A study that is run by a driver process, and ways to kill its parts."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray

from raybo.benchmarks.faults.audit import ENDS, STUDY, Results, evaluating
from raybo.benchmarks.faults.cluster import LocalCluster
from raybo.runtime.driver import NAMESPACE
from raybo.study.journal.journal import JOURNAL_FILE, LOCK_FILE
from raybo.study.journal.lock import read_holder


class Target:
    """A study in `folder`, run by a driver process, and the results seen in its journal.

    `options` are those of target.py.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.seen: Results = {}
        self.latest_start = 0.0  # of the evaluations that were seen, seconds since the epoch
        self._configs: dict[int, Any] = {}
        self._paused: set[int] = set()
        self._read = 0  # bytes of the journal
        pairs = [(f"--{key}", value) for key, value in options.items()]
        self._arguments = [str(folder), *(str(x) for key, v in pairs for x in (key, *_words(v)))]
        folder.mkdir(parents=True)
        self.driver = self.start_driver()

    @property
    def journal(self) -> Path:
        """File of the study's journal."""
        return self.folder / STUDY / JOURNAL_FILE

    @property
    def coordinator(self) -> int:
        """Process that writes the journal; 0 before the first."""
        return int(read_holder(self.folder / STUDY / LOCK_FILE).get("pid", 0))

    @property
    def output(self) -> str:
        """End of what the drivers printed."""
        return (self.folder / "driver.log").read_text(errors="replace")[-3000:]

    def start_driver(self) -> subprocess.Popen[bytes]:
        """Start the driver, or another one in its place."""
        with open(self.folder / "driver.log", "ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, "-m", "raybo.benchmarks.faults.target", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.driver

    def look(self) -> int:
        """Read what is new in the journal and return the number of trials that have ended."""
        for event in self._new_events():
            if event["kind"] == "asked":
                self._configs[event["number"]] = event["config"]["x"]
            elif event["kind"] in ENDS:
                number = event["number"]
                self.seen.setdefault(number, (self._configs[number], event.get("value")))
                self.latest_start = max(self.latest_start, event.get("started", 0.0))
            elif event["kind"] in ("paused", "promoted"):
                change = self._paused.add if event["kind"] == "paused" else self._paused.discard
                change(event["number"])
        return len(self.seen) + len(self._paused)

    def _new_events(self) -> Iterator[dict[str, Any]]:
        if not self.journal.exists():
            return
        with open(self.journal, "rb") as file:
            file.seek(self._read)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        self._read += len(lines)
        for line in lines.splitlines():
            yield json.loads(line)["event"]


def _words(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


Kill = Callable[[Target], bool]  # whether there was something to kill


def kill_worker(target: Target) -> bool:
    """Kill a worker process during an evaluation."""
    pids = [pid for pid in evaluating(target.folder) if _is_ray(pid)]
    return bool(pids) and kill_process(random.choice(pids))


def make_kill_node(cluster: LocalCluster) -> Kill:
    """Return a function that kills a node with its workers, and starts another."""

    def kill_node(_: Target) -> bool:
        if cluster.n_alive() < 2:
            return False
        cluster.kill()
        cluster.add()
        return True

    return kill_node


def make_kill_coordinator() -> Kill:
    """Return a function that ends the coordinator: by a signal and by `ray.kill`, in turns."""
    killed: list[int] = []

    def kill_coordinator(target: Target) -> bool:
        pid = target.coordinator
        if pid in killed or not _is_ray(pid):
            return False  # the next one has not started
        if len(killed) % 2:
            named: Any = ray.util.list_named_actors(all_namespaces=True)
            names = [a["name"] for a in named if a["name"].startswith(f"{STUDY}@")]
            ray.kill(ray.get_actor(names[0], namespace=NAMESPACE), no_restart=False)
        else:
            kill_process(pid)
        killed.append(pid)
        return True

    return kill_coordinator


def kill_driver(target: Target) -> bool:
    """Kill the driver and start it again: it resumes the study."""
    target.driver.kill()
    target.driver.wait()
    target.look()
    target.start_driver()
    return True


def kill_proposer(_: Target) -> bool:
    """Kill the process of the method."""
    pids = actors("ProposerActor")
    return bool(pids) and kill_process(random.choice(pids))


def actors(name: str) -> list[int]:
    """Return the processes of the actors of a class that this process has started."""
    return [pid for pid in _descendants(os.getpid()) if _is_ray(pid, f"ray::{name}".encode())]


def _is_ray(pid: int, name: bytes = b"ray::") -> bool:
    """Return whether a process is a worker or an actor of Ray, not another with that number."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(name)
    except OSError:
        return False


def kill_process(pid: int) -> bool:
    """End a process at once; return whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _descendants(pid: int) -> list[int]:
    """Return the processes that `pid` started, by itself or through others."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [pid]
    for parent in found:
        found += parents.get(parent, [])
    return found[1:]
