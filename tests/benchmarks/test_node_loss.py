"""The check of a study that lost a node: it passes a whole one and names every fault."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from raybo.benchmarks.faults.node_loss import KillOneNode, faults, network_space, objective
from raybo.result import Result
from raybo.study.trial import State, Trial

TRIALS = [Trial(n, {}, value=n / 4, state=State.DONE) for n in range(4)]
WHOLE = Result("s", "", "min", None, {"name": "bo"}, network_space(), TRIALS, 1.0, "", None)
HANDED = [(trial.number, trial.value) for trial in TRIALS]


def test_a_whole_study_has_no_faults() -> None:
    assert faults(WHOLE, WHOLE, HANDED) == []


@pytest.mark.parametrize(
    ("kept", "handed", "said"),
    [
        (TRIALS[:3], HANDED, "trial 3 was 0.75, is None"),
        (TRIALS, [*HANDED, HANDED[1]], "trial 1 was handed over 2 times"),
        (TRIALS, HANDED[:3], "trial 3 was not handed over"),
        ([*TRIALS[:3], replace(TRIALS[3], value=9.0)], HANDED, "trial 3 was 0.75, is 9.0"),
        ([*TRIALS[:3], Trial(3, {})], HANDED, "trial 3 is pending"),
    ],
)
def test_every_fault_is_named(kept: list[Trial], handed: list, said: str) -> None:
    assert said in faults(WHOLE, replace(WHOLE, trials=kept), handed)


def test_a_node_is_killed_once_and_half_way() -> None:
    blows: list[int] = []
    watch = KillOneNode(SimpleNamespace(kill=blows.append), 4)
    for trial in TRIALS:
        watch.on_trial(trial)
        assert len(blows) == (trial.number >= 1)
    assert watch.handed == HANDED


def test_the_network_learns_and_a_diverged_one_has_a_finite_loss() -> None:
    space = network_space()
    config = space.decode(np.full(space.dim, 0.5))
    config |= {"lr": 0.1, "momentum": 0.9, "batch": 16, "dropout": 0.0}
    assert objective(config) < 1.0  # the logarithm of 10 is what a guess gives
    bad = {**config, "lr": 1.0, "momentum": 0.99}
    assert objective(bad) <= 10.0
