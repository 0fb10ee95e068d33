"""What can go wrong in an evaluation, on a real local Ray: recorded, and the study goes on."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

import raybo
from raybo import Categorical, Float
from raybo.errors import StudyFailed
from raybo.result import load_result
from raybo.runtime.driver import NAMESPACE
from raybo.study.trial import State, Trial

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]

_CRASH = "worker process died: killed .SIGKILL., crashed .SIGSEGV. or exited by itself"

# Name of a fault: attempts, reason.
FAULTS = {
    "raise": (1, r"ValueError: too large \(test_faults.py:\d+\)"),
    "network": (2, r"ConnectionResetError: peer \(test_faults.py:\d+\)"),
    "unpicklable": (1, r"Odd: .*\(test_faults.py:\d+\)"),
    "leave": (1, r"SystemExit: 3"),
    "close": (1, r"GeneratorExit \(test_faults.py:\d+\)"),
    "interrupt": (1, r"KeyboardInterrupt \(test_faults.py:\d+\)"),
    "exit": (2, _CRASH),
    "kill": (2, _CRASH),
    "segv": (2, _CRASH),
    "hang": (1, r"timeout after 1.5 s"),
    "freeze": (1, r"timeout after 1.5 s"),
    "nan": (1, r"returned nan, not a finite number"),
    "inf": (1, r"returned -inf, not a finite number"),
    "none": (1, r"returned None \(NoneType\), not a number"),
    "text": (1, r"returned '0.5' \(str\), not a number"),
    "array": (1, r"returned array.* \(ndarray\), not a number"),
    "huge": (1, r"an integer too large for a float"),
    "missing": (1, r"none of them is the metric 'loss'"),
}


def make_objective() -> Any:
    """Objective that goes wrong as its config says; made here, so that it is pickled by value."""

    def go_wrong(config: dict[str, Any]) -> Any:
        class Odd(Exception):
            def __reduce__(self) -> Any:
                raise TypeError("never")

            def __str__(self) -> str:
                raise RuntimeError("no text")

        results: dict[str, Any] = {
            "nan": float("nan"),
            "inf": -np.inf,
            "none": None,
            "text": "0.5",
            "array": np.zeros(3),
            "huge": 10**400,
            "missing": {"acc": 1.0, "other": 2.0},
            "fine": {"loss": 1.0},
        }
        errors: dict[str, BaseException] = {
            "raise": ValueError("too large"),
            "network": ConnectionResetError("peer"),
            "unpicklable": Odd(),
            "leave": SystemExit(3),
            "close": GeneratorExit(),
            "interrupt": KeyboardInterrupt(),
        }
        acts: dict[str, Any] = {
            "exit": lambda: os._exit(1),
            "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
            "hang": lambda: time.sleep(600),
            "freeze": lambda: os.kill(os.getpid(), signal.SIGSTOP),
        }
        fault = config["fault"]
        if fault in errors:
            raise errors[fault]
        return acts[fault]() if fault in acts else results[fault]

    return go_wrong


def test_every_fault_is_recorded_and_the_study_goes_on(tmp_path: Path) -> None:
    names = ["fine", *FAULTS]
    result = raybo.optimize(
        make_objective(),
        {"fault": Categorical(names)},
        metric="loss",
        method="random",
        points=[{"fault": name} for name in names],
        timeout=1.5,
        workers=2,
        storage=tmp_path,
        progress=False,
        name="faults",
    )
    found = {trial.config["fault"]: trial for trial in result.trials}
    assert found.keys() == set(names)
    assert (found["fine"].state, found["fine"].value) == (State.DONE, 1.0)
    for name, (attempts, reason) in FAULTS.items():
        trial = found[name]
        assert trial.state is State.FAILED
        assert trial.attempts == attempts, name
        assert re.search(reason, trial.reason or ""), f"{name}: {trial.reason}"
    assert load_result("faults", tmp_path).trials == result.trials


def test_a_study_whose_trials_all_fail_ends_with_one_clear_error(tmp_path: Path) -> None:
    def objective(config: dict[str, Any]) -> float:
        return float(config["no such key"])

    with pytest.raises(StudyFailed) as caught:
        raybo.optimize(
            objective, {"x": Float(0, 1)}, method="random", storage=tmp_path, progress=False
        )
    text = str(caught.value)
    assert re.search(r"trials all failed in the same way; trial \d: KeyError: 'no such key'", text)
    assert "Traceback" in text
    deadline = time.monotonic() + 30
    while any(a["namespace"] == NAMESPACE for a in ray.util.list_named_actors(True)):
        assert time.monotonic() < deadline, "the coordinator outlives its study"
        time.sleep(0.1)


def sleeps(config: dict[str, Any]) -> float:
    time.sleep(0.1)
    return float(config["x"])


async def waits(config: dict[str, Any]) -> float:
    await asyncio.sleep(0.3)
    return float(config["x"])


@pytest.mark.parametrize(
    ("objective", "workers", "victims"),
    [
        (sleeps, 4, {5: "CoordinatorActor", 12: "ProposerActor", 20: "CoordinatorActor"}),
        pytest.param(
            waits,
            30,
            {20: "EvaluatorActor", 60: "CoordinatorActor", 100: "EvaluatorActor"},
            marks=pytest.mark.slow,  # lost processes are tested in test_coroutines.py, too
        ),
    ],
    ids=["functions", "coroutines"],
)
def test_killed_actors_lose_nothing_and_double_nothing(
    objective: Callable[[dict[str, Any]], Any],
    workers: int,
    victims: dict[int, str],
    tmp_path: Path,
    pid_of_actor: Callable[[str], int | None],
) -> None:
    killed: list[int] = []
    acknowledged: dict[int, Trial] = {}

    def kill(trial: Trial) -> None:
        assert trial.number not in acknowledged
        acknowledged[trial.number] = trial
        if len(acknowledged) in victims:
            deadline = time.monotonic() + 30
            while (pid := pid_of_actor(victims[len(acknowledged)])) is None:
                assert time.monotonic() < deadline, "it was not started again"
                time.sleep(0.02)
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    n = max(victims) + 10 + workers
    result = raybo.optimize(
        objective,
        {"x": Float(0, 1)},
        method="random",
        max_trials=n,
        workers=workers,
        storage=tmp_path,
        name="k",
        progress=False,
        callbacks=[kill],
    )
    assert len(set(killed)) == 3
    assert [t.number for t in result.trials] == list(range(n))
    assert all(t.state is State.DONE for t in result.trials)
    assert [acknowledged[number] for number in range(n)] == result.trials
    assert load_result("k", tmp_path).trials == result.trials
    assert len({t.config["x"] for t in result.trials}) == n


def test_ctrl_c_is_remembered_when_the_coordinator_dies_while_it_drains(
    tmp_path: Path, pid_of_actor: Callable[[str], int | None]
) -> None:
    def objective(config: dict[str, Any]) -> float:
        time.sleep(1.5 * config["x"])
        return float(config["x"])

    def kill() -> None:
        pid = pid_of_actor("CoordinatorActor")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    timers = []

    def interrupt(_: Trial) -> None:
        if not timers:
            signal.raise_signal(signal.SIGINT)
            timers.append(threading.Timer(0.5, kill))  # while a trial of 1.5 s is waited for
            timers[0].start()

    result = raybo.optimize(
        objective,
        {"x": Float(0, 1)},
        method="random",
        points=[{"x": 0.0}, {"x": 1.0}],
        max_trials=50,
        workers=2,
        storage=tmp_path,
        progress=False,
        callbacks=[interrupt],
    )
    timers[0].join()
    assert result.stop_reason == "interrupted: drained"
    assert len(result.trials) < 10
