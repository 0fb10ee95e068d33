"""The check of a study that lost a node: it passes a complete one and names every fault."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from raybo.benchmarks.faults.node_loss import KillOneNode, faults, network_space, objective
from raybo.result import Result
from raybo.study.trial import State, Trial

TRIALS = [Trial(n, {}, value=n / 4, state=State.DONE) for n in range(4)]
COMPLETE = Result("s", "", "min", None, {"name": "bo"}, network_space(), TRIALS, 1.0, "", None)
RECEIVED = [(trial.number, trial.value) for trial in TRIALS]


def test_a_complete_study_has_no_faults() -> None:
    assert faults(COMPLETE, COMPLETE, RECEIVED) == []


@pytest.mark.parametrize(
    ("kept", "received", "said"),
    [
        (TRIALS[:3], RECEIVED, "trial 3 was 0.75, is None"),
        (TRIALS, [*RECEIVED, RECEIVED[1]], "trial 1 was received 2 times"),
        (TRIALS, RECEIVED[:3], "trial 3 was not received"),
        ([*TRIALS[:3], replace(TRIALS[3], value=9.0)], RECEIVED, "trial 3 was 0.75, is 9.0"),
        ([*TRIALS[:3], Trial(3, {})], RECEIVED, "trial 3 is pending"),
    ],
)
def test_every_fault_is_named(kept: list[Trial], received: list, said: str) -> None:
    assert said in faults(COMPLETE, replace(COMPLETE, trials=kept), received)


def test_a_node_is_killed_once_and_half_way() -> None:
    kills: list[int] = []
    watch = KillOneNode(SimpleNamespace(kill=lambda: kills.append(1)), 4)
    for trial in TRIALS:
        watch.on_trial(trial)
        assert len(kills) == (trial.number >= 1)
    assert watch.received == RECEIVED


def test_a_diverged_network_has_a_finite_loss() -> None:
    space = network_space()
    config = space.decode(np.full(space.dim, 0.5))
    assert objective({**config, "lr": 1.0, "momentum": 0.99, "batch": 64}) <= 10.0
