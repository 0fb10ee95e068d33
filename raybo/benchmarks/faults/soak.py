"""A study that runs for a given time while everything it consists of is killed at random."""

from __future__ import annotations

import random
import signal
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from raybo.benchmarks.faults.audit import Findings, append_line, examine
from raybo.benchmarks.faults.cluster import LocalCluster
from raybo.benchmarks.faults.kills import (
    Kill,
    Target,
    kill_driver,
    kill_proposer,
    kill_worker,
    make_kill_coordinator,
    make_kill_node,
)

_WORKERS = 2
_EVALUATION = (0.5, 2.0)  # seconds, shortest and longest
_LOOK_SECONDS = 0.2  # between two looks at the journal
_PATIENCE_SECONDS = 300.0  # without a result, after which the study is stuck
_DRAIN_SECONDS = 120.0  # for the last trials, after the last kill


@dataclass(frozen=True)
class Soak:
    """What a soak found."""

    seconds: float
    kills: Counter[str]  # by what was killed
    recoveries: list[float]  # seconds from a kill to the end of a trial that started after it
    findings: Findings
    output: str  # end of the drivers' output, unless the last ended well when it was told to


def run_soak(cluster: LocalCluster, folder: Path, seconds: float, every: float) -> Soak:
    """Run a study for `seconds` and kill a part of it about `every` so many seconds.

    A kill comes when the study has recovered from the one before, after a random pause. In the
    end the driver gets Ctrl-C, and the trials that run may finish.
    """
    kills: dict[str, Kill] = {
        "worker": kill_worker,
        "node": make_kill_node(cluster),
        "coordinator": make_kill_coordinator(),
        "driver": kill_driver,
        "proposer": kill_proposer,
    }
    begin = time.monotonic()
    target = Target(folder, trials=10**9, workers=_WORKERS, seconds=_EVALUATION)
    done, recoveries = Counter[str](), list[float]()
    try:
        while time.monotonic() - begin < seconds and _wait(target, time.time()) is not None:
            time.sleep(random.uniform(0, 2 * every))
            name = random.choice(list(kills))
            killed, clock = time.time(), time.monotonic()
            if not kills[name](target):
                continue
            done[name] += 1
            if _wait(target, killed) is None:
                break
            recoveries.append(time.monotonic() - clock)
            line = {"killed": name, "time": killed, "recovery": recoveries[-1]}
            append_line(folder / "kills.log", line)
        target.driver.send_signal(signal.SIGINT)
        ended = target.driver.wait(_DRAIN_SECONDS) == 0
    finally:
        target.driver.kill()
        target.driver.wait()
    target.look()
    findings = examine(folder, None, target.seen, all_received=False)
    output = "" if ended else target.output
    return Soak(time.monotonic() - begin, done, recoveries, findings, output)


def _wait(target: Target, since: float) -> float | None:
    """Wait for the end of a trial that started after `since`; None if there is none."""
    begin = time.monotonic()
    while target.latest_start <= since:
        if time.monotonic() - begin > _PATIENCE_SECONDS or target.driver.poll() is not None:
            return None
        time.sleep(_LOOK_SECONDS)
        target.look()
    return time.monotonic() - begin


def describe(soak: Soak) -> str:
    """Return what was killed how often, and how soon the study went on, in words."""
    kinds = ", ".join(f"{n} of a {name}" for name, n in soak.kills.most_common())
    text = f"soak of {soak.seconds / 60:.0f} minutes, {soak.kills.total()} kills: {kinds}"
    times = sorted(soak.recoveries)
    if len(times) < 2:
        return text
    late = statistics.quantiles(times, n=20, method="inclusive")[-1]
    return (
        f"{text}; from a kill to the end of a trial that started after it: p50 "
        f"{statistics.median(times):.1f} s, p95 {late:.1f} s, longest {times[-1]:.1f} s (a trial "
        f"takes {_EVALUATION[0]:g} to {_EVALUATION[1]:g} s)"
    )
