"""Faults of whole processes: drivers that are killed or interrupted, full disks, dead nodes."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray

import raybo
from raybo import Float
from raybo.errors import JournalError
from raybo.result import load_result
from raybo.study.journal.journal import read_journal
from raybo.study.outcome import load_record
from raybo.study.trial import State

pytestmark = pytest.mark.ray

DRIVER = """
    import time
    import raybo

    def objective(config):
        time.sleep(0.2)
        return config["x"]

    raybo.optimize(
        objective, {{"x": raybo.Float(0, 1)}}, method="random", max_trials=500, workers=2,
        storage={storage!r}, name="s", resources={{"num_cpus": 0.1}},
    )
"""


def start_driver(tmp_path: Path) -> subprocess.Popen[bytes]:
    """Run a study in another process, on the cluster of the tests."""
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(DRIVER.format(storage=str(tmp_path))))
    address = ray.get_runtime_context().gcs_address
    return subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "RAY_ADDRESS": address},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_until(condition: Callable[[], Any], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def n_events(tmp_path: Path, kind: str) -> int:
    return sum(e["kind"] == kind for e in read_journal(tmp_path / "s").events)


@pytest.mark.usefixtures("ray_cluster")
def test_a_killed_driver_is_resumed_at_once_without_loss(tmp_path: Path) -> None:
    driver = start_driver(tmp_path)
    wait_until(lambda: n_events(tmp_path, "done") >= 4)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait(30)
    before = load_record("s", tmp_path)
    assert before.stopped is None
    result = raybo.optimize(
        lambda config: config["x"],
        {"x": Float(0, 1)},
        method="random",
        max_trials=20,
        workers=2,
        storage=tmp_path,
        name="s",
        progress=False,
    )
    assert [t.number for t in result.trials] == list(range(20))
    assert all(t.state is State.DONE for t in result.trials)
    for number in before.order:
        assert result.trials[number].value == before.entries[number].trial.value
    assert load_result("s", tmp_path).trials == result.trials


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_drains_and_twice_stops(
    tmp_path: Path,
    presses: int,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", "train.py", raising=False)  # none under xdist
    seconds = 600 if presses == 2 else 1.5

    def objective(config: dict[str, Any]) -> float:
        time.sleep(seconds)
        return float(config["x"])

    def press() -> None:
        wait_until(lambda: n_events(tmp_path, "asked") >= 2)
        for _ in range(presses):
            os.kill(os.getpid(), signal.SIGTERM if presses == 1 else signal.SIGINT)
            time.sleep(0.7)  # a person's pause

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt) if presses == 2 else contextlib.nullcontext():
        raybo.optimize(
            objective,
            {"x": Float(0, 1)},
            method="random",
            max_trials=500,
            workers=2,
            storage=tmp_path,
            name="s",
            resources={"num_cpus": 0.1},
        )
    thread.join()
    result = load_result("s", tmp_path)
    output = "".join(capfd.readouterr())
    assert f"resume with: {shlex.join(sys.orig_argv)}" in output
    assert "raybo resume" not in output  # the objective is a local function
    assert result.stop is not None
    assert result.stop.kind == "interrupted"
    assert result.stop_reason == f"interrupted: {'drained' if presses == 1 else 'stopped'}"
    states = {trial.state for trial in result.trials}
    assert states == ({State.DONE} if presses == 1 else {State.PENDING})


@pytest.mark.usefixtures("ray_cluster")
def test_a_full_disk_ends_the_study_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "full"

    def resources(_: Any) -> dict[str, Any]:  # runs in the coordinator, the writer of the journal
        import resource

        size = (folder / "journal.jsonl").stat().st_size
        if size > 150_000:  # the logs of the process are smaller
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
        return {"num_cpus": 0.1}

    acknowledged = []
    with pytest.raises(JournalError, match=r"File too large; .* make room .* then resume"):
        raybo.optimize(
            lambda config: {"loss": config["x"], "text": "x" * 10_000},
            {"x": Float(0, 1)},
            metric="loss",
            method="random",
            workers=2,
            storage=tmp_path,
            name="full",
            resources=resources,
            progress=False,
            callbacks=[acknowledged.append],
        )
    kept = load_result("full", tmp_path)
    assert len(acknowledged) >= 14
    for trial in acknowledged:
        assert kept.trials[trial.number] == trial


NODES = """
    import os, pathlib, signal, sys, time
    from ray.cluster_utils import Cluster
    import ray, raybo
    from raybo.study.trial import State

    storage, how = sys.argv[1:]
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(cluster.address, logging_level="ERROR", log_to_driver=False)
    nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]

    def objective(config):
        time.sleep(0.3)
        return config["x"]

    def strike(trial):
        if trial.number != 6:
            return
        node = nodes.pop()
        if how == "kill":
            cluster.remove_node(node, allow_graceful=False)
            return
        family = [node.all_processes["raylet"][0].process.pid]
        for pid in family:  # grows while it is walked
            for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                family += map(int, children.read_text().split())
        for pid in family:
            os.kill(pid, signal.SIGSTOP)

    began = time.time()
    result = raybo.optimize(
        objective, {"x": raybo.Float(0, 1)}, method="random", max_trials=16, workers=4,
        storage=storage, name="n", progress=False, callbacks=[strike],
    )
    states = [t.state is State.DONE for t in result.trials]
    print("RESULT", len(states), all(states), sum(t.attempts > 1 for t in result.trials),
          round(time.time() - began), flush=True)
    time.sleep(60)  # the test kills this process and all that it started
"""


def run_alone(tmp_path: Path, text: str, *arguments: str, **variables: str) -> str:
    """Output, up to its RESULT, of a script that has a cluster of its own."""
    script = tmp_path / "alone.py"
    script.write_text(textwrap.dedent(text))
    own = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # short: it holds sockets
    # The note of the machine's current cluster is left alone by RAY_TMPDIR.
    environment = {**os.environ, "RAY_TMPDIR": own, **variables}
    environment.pop("RAY_ADDRESS", None)
    driver = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = ""
    try:
        assert driver.stdout is not None
        for line in driver.stdout:
            output += line
            if line.startswith("RESULT"):
                break
    finally:
        _end_family(driver.pid)
        driver.wait(30)
        shutil.rmtree(own, ignore_errors=True)
    return output


@pytest.mark.parametrize("how", ["kill", pytest.param("freeze", marks=pytest.mark.slow)])
def test_trials_of_a_dead_node_are_evaluated_elsewhere(tmp_path: Path, how: str) -> None:
    output = run_alone(
        tmp_path,
        NODES,
        how,
        RAY_health_check_initial_delay_ms="1000",
        RAY_health_check_period_ms="1000",
        RAY_health_check_timeout_ms="3000",
        RAY_health_check_failure_threshold="4",
    )
    assert "RESULT 16 True" in output, output


MEMORY = """
    import sys, time
    import ray, raybo

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)

    def objective(config):
        kept = []
        while config["x"] > 0.5:  # until the monitor ends it
            kept.append(bytearray(100 * 2**20))
            time.sleep(0.05)
        return 0.0

    result = raybo.optimize(
        objective, {"x": raybo.Float(0, 1)}, method="random", max_trials=2, storage=sys.argv[1],
        progress=False, points=[{"x": 0.9}, {"x": 0.1}],
    )
    trial = result.trials[0]
    print("RESULT", trial.state, trial.attempts, trial.reason, flush=True)
    time.sleep(60)
"""


def child_of(pid: int, name: str) -> int:
    """Return the id of the child of a process that is called `name`."""
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # a process that has ended
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            if facts["Name"] == name and int(facts["PPid"]) == pid:
                return int(facts["Pid"])
    raise AssertionError(f"{pid} has no child {name}")


@pytest.mark.slow
def test_when_ray_itself_dies_the_driver_has_said_how_to_resume(tmp_path: Path) -> None:
    """Ray ends the driver about 15 s after its raylet: nothing of Python runs then."""
    script, output = tmp_path / "driver.py", tmp_path / "output"
    start = "import ray\nray.init(address='local', num_cpus=2, include_dashboard=False)\n"
    script.write_text(start + textwrap.dedent(DRIVER.format(storage=str(tmp_path))))
    command = [sys.executable, str(script)]
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    with output.open("wb") as file:
        driver = subprocess.Popen(
            command, env=environment, stdout=file, stderr=file, start_new_session=True
        )
    try:
        wait_until(lambda: n_events(tmp_path, "done") >= 4)
        os.kill(child_of(driver.pid, "raylet"), signal.SIGKILL)
        assert driver.wait(120) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
    text = output.read_text(errors="replace")
    assert f"end this process, too: resume with: {shlex.join(command)}" in text
    record = load_record("s", tmp_path)
    assert record.stopped is None
    assert len(record.order) >= 4


@pytest.mark.slow
def test_a_trial_that_eats_the_memory_is_killed_and_recorded(tmp_path: Path) -> None:
    pairs = [line.split() for line in Path("/proc/meminfo").read_text().splitlines()]
    sizes = {pair[0]: int(pair[1]) for pair in pairs}
    used = 1 - sizes["MemAvailable:"] / sizes["MemTotal:"]
    output = run_alone(
        tmp_path,
        MEMORY,
        RAY_memory_usage_threshold=f"{used + 0.1:.3f}",
        RAY_max_kill_memory_buffer_bytes=str(10**8),  # else the coordinator is killed too
    )
    assert "RESULT failed 2 out of memory: Ray's monitor killed the worker" in output, output


def _end_family(leader: int) -> None:
    """Kill a process and all that it started, frozen or not."""
    family = [leader]
    for pid in family:  # grows while it is walked
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            family += map(int, children.read_text().split())
    for pid in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
