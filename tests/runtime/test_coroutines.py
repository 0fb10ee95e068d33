"""Async objectives on a real local Ray: many at a time in few processes, and what goes wrong."""

# ruff: noqa: T201  (printing is tested, too)

from __future__ import annotations

import asyncio
import importlib
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import raybo
from raybo import Categorical, Float, Space
from raybo.errors import StudyError, StudyFailed
from raybo.result import load_result
from raybo.study.journal.journal import read_journal
from raybo.study.outcome import load_record
from raybo.study.trial import State

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]

SPACE = {"x": Float(0, 1)}

_CRASH = "worker process died: killed .SIGKILL., crashed .SIGSEGV. or exited by itself"

# Name of a fault: fewest attempts, reason. What shares a process with others is tried more often.
FAULTS = {
    "raise": (1, r"ValueError: too large \(test_coroutines.py:\d+\)"),
    "network": (2, r"ConnectionResetError: peer \(test_coroutines.py:\d+\)"),
    "leave": (1, r"SystemExit: 3"),
    "cancel": (1, r"CancelledError"),
    "exit": (3, _CRASH),
    "hang": (1, r"timeout after 1.5 s"),
    "stubborn": (1, r"timeout after 1.5 s"),
    "block": (1, r"timeout after 1.5 s"),
    "nan": (1, r"returned nan, not a finite number"),
    "missing": (1, r"none of them is the metric 'loss'"),
}
# Each of these keeps its process for CANCEL_SECONDS and more before it is killed.
LONG_FAULTS = ("stubborn", "block")


def make_objective() -> Any:
    """Objective that goes wrong as its config says; made here, so that it is pickled by value."""

    async def go_wrong(config: dict[str, Any]) -> Any:
        fault = config["fault"]
        await asyncio.sleep(0.05 if fault == "block" else 0.1)
        if fault == "exit":
            os._exit(1)
        elif fault == "hang":
            await asyncio.sleep(600)
        elif fault == "block":
            time.sleep(600)  # what a user should not do
        while fault == "stubborn":
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                continue
        errors: dict[str, BaseException] = {
            "raise": ValueError("too large"),
            "network": ConnectionResetError("peer"),
            "leave": SystemExit(3),
            "cancel": asyncio.CancelledError(),
        }
        if fault in errors:
            raise errors[fault]
        results = {"nan": float("nan"), "missing": {"acc": 1.0, "other": 2.0}}
        return results.get(fault, {"loss": 1.0})

    return go_wrong


def run(names: list[str], folder: Path) -> raybo.Result:
    """Study with a trial for each name, up to six at a time in one process."""
    return raybo.optimize(
        make_objective(),
        {"fault": Categorical(names)},
        metric="loss",
        method="random",
        points=[{"fault": name} for name in names],
        timeout=1.5,
        workers=6,
        storage=folder,
        progress=False,
        name="faults",
    )


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_fault_is_recorded_and_the_study_goes_on(tmp_path: Path, long: bool) -> None:
    faults = {name: fault for name, fault in FAULTS.items() if long or name not in LONG_FAULTS}
    fine = [f"fine {i}" for i in range(6)]
    names = [*fine[:3], *faults, *fine[3:]]
    result = run(names, tmp_path)
    found = {trial.config["fault"]: trial for trial in result.trials}
    assert found.keys() == set(names)
    for name in fine:
        assert (found[name].state, found[name].value) == (State.DONE, 1.0), found[name].reason
    for name, (attempts, reason) in faults.items():
        trial = found[name]
        assert trial.state is State.FAILED
        assert trial.attempts >= attempts, name
        assert re.search(reason, trial.reason or ""), f"{name}: {trial.reason}"
    assert load_result("faults", tmp_path).trials == result.trials


@pytest.mark.slow  # its process is killed three times
def test_what_a_coroutine_blocks_is_not_the_fault_of_the_others(tmp_path: Path) -> None:
    names = [*(f"fine {i}" for i in range(4)), "block"]
    result = run(names, tmp_path)
    *fine, block = sorted(result.trials, key=lambda trial: names.index(trial.config["fault"]))
    assert [(trial.state, trial.value) for trial in fine] == [(State.DONE, 1.0)] * 4
    assert (block.state, block.reason) == (State.FAILED, "timeout after 1.5 s")


def test_hundreds_run_at_a_time_in_few_processes(tmp_path: Path) -> None:
    async def job(config: dict[str, Any]) -> dict[str, Any]:
        print("at", config["x"])
        began = time.time()
        await asyncio.sleep(5.0)
        return {"loss": config["x"], "pid": os.getpid(), "began": began}

    result = raybo.optimize(
        job,
        SPACE,
        metric="loss",
        method="random",
        max_trials=300,
        workers=300,
        storage=tmp_path,
        name="many",
        progress=False,
    )
    trials = result.trials
    assert all(t.state is State.DONE and t.attempts == 1 for t in trials)
    assert len({t.extra["pid"] for t in trials}) == 2
    spans = [(t.started or 0.0, t.finished or 0.0) for t in trials]
    most = max(sum(a <= moment < b for a, b in spans) for moment, _ in spans)
    assert most > 250  # of 300; the last may start when the first have ended
    kept = (tmp_path / "many" / "output" / "17.txt").read_text()
    assert kept == f"at {trials[17].config['x']}\n"


def test_what_other_processes_cannot_import_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = "async def job(config): return 0.0\ndef allowed(config): return config['x'] < 0.5"
    (tmp_path / "only_here.py").write_text(functions)
    monkeypatch.syspath_prepend(tmp_path)
    found = importlib.import_module("only_here")
    small = {"method": "random", "max_trials": 4, "storage": tmp_path, "progress": False}
    with pytest.raises(StudyFailed, match="No module named 'only_here'; give the workers the"):
        raybo.optimize(found.job, SPACE, **small)
    with pytest.raises(StudyError, match="No module named 'only_here'; a function in where="):
        raybo.optimize(lambda c: c["x"], Space(SPACE, where=found.allowed), **small)


def test_an_async_generator_is_stopped_early(tmp_path: Path) -> None:
    async def train(config: dict[str, Any]) -> AsyncIterator[float]:
        for step in range(9):
            await asyncio.sleep(0.01)
            yield config["x"] + 1 / (1 + step)

    result = raybo.optimize(
        train,
        SPACE,
        method="random",
        max_trials=40,
        workers=10,
        max_steps=9,
        stop_early=True,
        storage=tmp_path,
        progress=False,
    )
    states = [trial.state for trial in result.trials]
    assert set(states) == {State.DONE, State.STOPPED}
    assert all(max(t.curve) == 9 for t in result.trials if t.state is State.DONE)
    assert all(max(t.curve) == 3 for t in result.trials if t.state is State.STOPPED)


def test_a_second_ctrl_c_cancels_the_coroutines_which_clean_up(tmp_path: Path) -> None:
    async def job(config: dict[str, Any]) -> float:
        try:
            (tmp_path / f"{config['x']} runs").touch()
            await asyncio.sleep(600)
        finally:
            (tmp_path / f"{config['x']} cleaned").touch()
        return 0.0

    def press() -> None:
        while len(list(tmp_path.glob("* runs"))) < 5:
            time.sleep(0.05)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.7)  # a person's pause

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        raybo.optimize(
            job,
            SPACE,
            method="random",
            max_trials=50,
            workers=5,
            storage=tmp_path,
            name="s",
            progress=False,
        )
    thread.join()
    assert len(list(tmp_path.glob("* cleaned"))) == 5
    record = load_record("s", tmp_path)
    assert len(record.pending) == 5
    assert [e["kind"] for e in read_journal(tmp_path / "s").events][-1] == "stopped"


def test_resources_of_each_config_are_refused(tmp_path: Path) -> None:
    async def job(config: dict[str, Any]) -> float:
        return float(config["x"])

    with pytest.raises(StudyError, match="an async objective shares a process"):
        raybo.optimize(
            job,
            SPACE,
            method="random",
            resources=lambda config: {"num_cpus": 1},
            storage=tmp_path,
            progress=False,
        )
