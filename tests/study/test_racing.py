"""Configs over instances: those that are surely worse are dropped."""

from __future__ import annotations

import numpy as np
import pytest

from raybo import Float, Optimizer
from raybo.errors import StudyError
from raybo.study.curves import Course
from raybo.study.racing import instances, surely_worse
from raybo.study.trial import State


def course(values: list[float], complete: bool = False) -> Course:
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    curve = {i: float(mean) for i, mean in enumerate(means, start=1)}
    return Course(np.zeros(0), curve, float(means[-1]) if complete else None)


BEST = course([1.0, 5.0, 2.0, 9.0, 3.0, 4.0, 7.0, 2.0], complete=True)


def test_a_curve_holds_the_values_of_its_instances() -> None:
    assert instances(course([3.0, 1.0, 2.0])) == pytest.approx([3.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("gaps", "worse"),
    [
        ([0.5, 0.6, 0.4, 0.5, 0.7], True),
        ([0.5, 0.5, 0.5, 0.5, 0.5], True),
        ([0.0, 0.0, 0.0, 0.0, 0.0], False),
        ([-0.5, -0.6, -0.4, -0.5, -0.7], False),
        ([9.0, -8.0, 7.0, -6.0, 1.0], False),
    ],
)
def test_worse_is_worse_on_the_same_instances(gaps: list[float], worse: bool) -> None:
    seen = instances(BEST)[:5] + gaps
    assert surely_worse(1, {0: BEST, 1: course(seen.tolist())}) == worse


def test_nothing_is_worse_before_a_config_is_complete() -> None:
    assert not surely_worse(1, {0: course([0.0] * 5), 1: course([9.0] * 5)})


def test_bad_configs_are_dropped_after_few_instances() -> None:
    """Instances differ by far more than configs: only pairs tell."""
    hard = np.random.default_rng(0).uniform(0, 100, 30)
    optimizer = Optimizer(
        {"x": Float(0, 1)}, "random", seed=0, max_steps=30, stop_early=True, over="instances"
    )
    noise = np.random.default_rng(1)
    for _ in range(25):
        trial = optimizer.ask()
        for i, difficulty in enumerate(hard, start=1):
            value = difficulty + 10 * trial.config["x"] + noise.normal()
            if not optimizer.report(trial, i, float(value)):
                break
    stopped = [t for t in optimizer.trials if t.state is State.STOPPED]
    done = [t for t in optimizer.trials if t.state is State.DONE]
    assert len(stopped) > 12
    assert np.mean([max(t.curve) for t in stopped]) < 12
    best = min(optimizer.trials, key=lambda t: t.config["x"])
    assert best.number in [t.number for t in done]
    assert done[0].value == pytest.approx(hard.mean() + 10 * done[0].config["x"], abs=1.0)


def test_instances_are_reported_one_after_the_other() -> None:
    optimizer = Optimizer({"x": Float(0, 1)}, "random", max_steps=9, over="instances")
    trial = optimizer.ask()
    optimizer.report(trial, 1, 1.0)
    with pytest.raises(StudyError, match="instance 3 came after instance 1"):
        optimizer.report(trial, 3, 1.0)
    optimizer.report(trial, 2, 3.0)
    assert optimizer.trials[0].curve == {1: 1.0, 2: 2.0}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"over": "folds", "max_steps": 5}, "'steps' or 'instances', got 'folds'"),
        ({"over": "instances"}, "over='instances' needs max_steps="),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Optimizer({"x": Float(0, 1)}, "random", **options)
