"""A small run of the chaos benchmark on a real Ray."""

from __future__ import annotations

from pathlib import Path

import pytest
import ray

from raybo.benchmarks.faults.chaos import run_with_kills
from raybo.benchmarks.faults.kills import Target, kill_worker, make_kill_coordinator


@pytest.mark.slow  # these kills are tested in tests/runtime/test_faults.py, too
@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_kills_of_a_worker_and_the_coordinator_lose_nothing_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    turns = [kill_worker, make_kill_coordinator()]

    def kill(target: Target) -> bool:
        killed = turns[0](target)
        if killed:
            turns.pop(0)
        return killed

    outcome = run_with_kills("test", kill, tmp_path / "chaos", 12, len(turns), patience=120.0)
    assert outcome.good, vars(outcome)
    assert (outcome.done, outcome.faults, turns) == (12, 2, [])
