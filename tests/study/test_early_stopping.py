"""Reports of trials on their way, by ask and tell."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from raybo import Float, Optimizer
from raybo.errors import StudyError
from raybo.study.curves import Course
from raybo.study.halving import promising
from raybo.study.steps import Steps
from raybo.study.trial import State

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


@pytest.mark.parametrize(
    ("max_steps", "rungs"),
    [
        (1, ()),
        (3, ()),
        (4, ()),
        (7, (3,)),
        (10, (4,)),
        (50, (6, 17)),
        (52, (6, 18)),
        (1000, (112, 334)),
    ],
)
def test_rungs_are_thirds_from_a_tenth_on_and_never_before_the_third_report(
    max_steps: int, rungs: tuple[int, ...]
) -> None:
    assert sorted(Steps(max_steps, True).rungs) == list(rungs)
    assert not Steps(max_steps, False).rungs


def ended(n: int, luck: float) -> dict[int, Course]:
    """Trials 100 and on, which ended as they stood at step 3, give or take `luck`."""
    rng = np.random.default_rng(0)
    pairs = [(float(now), float(now + luck * rng.normal())) for now in np.linspace(0, 9, n)]
    return {100 + i: Course(np.zeros(0), {3: a, 10: b}, b) for i, (a, b) in enumerate(pairs)}


def test_where_curves_tell_the_end_the_best_third_is_promising() -> None:
    came = {n: Course(np.zeros(0), {3: float(n)}) for n in range(9)}
    sure = [n for n in promising(3, came | ended(30, luck=0.01)) if n < 100]
    assert sure == [0, 1, 2]


def test_the_less_curves_say_the_more_trials_are_promising() -> None:
    came = {n: Course(np.zeros(0), {3: float(n)}) for n in range(9)}
    assert promising(3, came) == [0, 1, 2, 3]  # nothing is known of their ends
    unsure = [n for n in promising(3, came | ended(30, luck=3.0)) if n < 100]
    assert set(unsure) > {0, 1, 2, 3}
    goes_on = [Steps(10, True).goes_on(n, 4, at(4, came)) for n in came]
    assert goes_on == [True] * 4 + [False] * 5


def test_a_trial_is_compared_with_those_that_came_as_far() -> None:
    others = {n: Course(np.zeros(0), {1: -5.0}) for n in range(1, 9)}
    assert promising(3, {0: Course(np.zeros(0), {3: 1.0}), **others}) == [0]


def test_as_good_as_the_last_of_the_best_third_is_promising() -> None:
    came = {n: Course(np.zeros(0), {3: float(n > 1)}) for n in range(7)}
    assert promising(3, came) == list(range(7))
    assert promising(3, {}) == []


def at(step: int, courses: dict[int, Course]) -> dict[int, Course]:
    """The same courses, one report long, at another step."""
    return {n: Course(c.row, dict.fromkeys([step], *c.curve.values())) for n, c in courses.items()}


def courses_of(**losses: list[float]) -> dict[int, Course]:
    """Courses of `t0=[...]` and so on, which report a loss at 6 and, the longer ones, at 17."""
    steps = (6, 17)
    return {
        int(name[1:]): Course(np.zeros(0), dict(zip(steps, values, strict=False)))
        for name, values in losses.items()
    }


def test_a_paused_trial_is_promoted_when_it_is_promising() -> None:
    steps = Steps(50, True)
    three = courses_of(t0=[1.0], t1=[2.0], t2=[3.0])
    assert steps.promotable([1, 2], three) is None
    six = three | courses_of(t3=[4.0], t4=[5.0], t5=[6.0])
    assert steps.promotable([1, 2, 3, 4, 5], six) == 1
    assert steps.promotable([4, 5], six) is None
    assert steps.promotable([], six) is None


def test_the_highest_rung_is_looked_at_first_and_the_best_of_it_goes_on() -> None:
    courses = courses_of(t0=[0.0], t1=[9.0, 0.6], t2=[9.0, 0.5], t3=[9.0, 0.4], t4=[9.0, 0.7])
    assert Steps(50, True).promotable([0, 1, 2, 4], courses) == 2
    assert Steps(50, True).promotable([0, 1, 4], courses) == 0


def test_no_trial_is_promoted_without_early_stopping() -> None:
    courses = courses_of(t0=[0.0])
    assert Steps(50).promotable([0], courses) is None
    assert Steps(50, True).promotable([0], {}) is None


def test_a_trial_that_is_run_again_is_not_judged_where_it_has_passed() -> None:
    courses = courses_of(t0=[1.0], t1=[9.0, 9.0])
    assert Steps(50, True).goes_on(1, 6, courses)
    assert not Steps(50, True).goes_on(1, 17, courses | courses_of(t2=[1.0, 1.0]))


def loss_at(config: Any, step: int) -> float:
    return float((config["x"] - 0.3) ** 2 + math.exp(-step / 4.0))


def bowl(config: Any) -> float:
    return float((config["x0"] - 0.4) ** 2 + (config["x1"] - 0.6) ** 2)


def train(optimizer: Optimizer, steps: int = 20) -> None:
    trial = optimizer.ask()
    for step in range(1, steps + 1):
        if not optimizer.report(trial, step, loss_at(trial.config, step)):
            return


def run(method: str = "random", n: int = 30, **options: Any) -> Optimizer:
    optimizer = Optimizer(SPACE, method, seed=1, max_steps=20, stop_early=True, **options)
    for _ in range(n):
        train(optimizer)
    return optimizer


def test_bad_trials_are_stopped_and_good_ones_are_complete() -> None:
    trials = run().trials
    stopped = [t for t in trials if t.state is State.STOPPED]
    done = [t for t in trials if t.state is State.DONE]
    assert len(stopped) + len(done) == 30
    assert len(stopped) >= 12
    assert {max(t.curve) for t in stopped} <= {3, 7}
    assert {max(t.curve) for t in done} == {20}
    assert all(t.value is None for t in stopped)
    assert all(t.value == loss_at(t.config, 20) for t in done)
    best = min(trials, key=lambda t: abs(t.config["x"] - 0.3))
    assert best.state is State.DONE


def test_the_best_trial_is_a_complete_one() -> None:
    optimizer = run()
    assert optimizer.best is not None
    assert optimizer.best.value == min(t.value for t in optimizer.trials if t.value is not None)


@pytest.mark.parametrize(
    "method",
    ["auto", "bo", "egp", "addgp", "addtree", "bock", "rembo", "rpp", "ridge", "linear", "local"],
)
def test_every_method_learns_from_the_curves_of_unfinished_trials(method: str) -> None:
    space = {f"x{i}": Float(0, 1) for i in range(2)}
    options = {"n_init": 4, **({"k": 1} if method == "rembo" else {})}
    made = [Optimizer(space, method, seed=0, max_steps=10, **options) for _ in range(2)]
    for optimizer in made:
        for _ in range(6):
            trial = optimizer.ask()
            for step in range(1, 11):
                optimizer.report(trial, step, bowl(trial.config) + 1 / step)
    for optimizer, level in zip(made, (0.2, 0.7), strict=True):
        running = optimizer.ask()
        optimizer.report(running, 5, level)
    a, b = ([trial.config for trial in optimizer.ask(3)] for optimizer in made)
    assert a != b


def test_the_model_knows_the_step() -> None:
    """A trial that is stopped at a high loss, which all have at that step, is not bad for it."""
    optimizer = Optimizer(SPACE, "bo", seed=0, max_steps=20, stop_early=False)
    for _ in range(12):
        train(optimizer)
    trial = optimizer.ask()
    optimizer.report(trial, 5, loss_at(trial.config, 5))
    (mean,), (deviation,) = optimizer.predict([trial.config])
    assert mean == pytest.approx(loss_at(trial.config, 20), abs=0.05)
    assert deviation < 0.1


def test_the_recommended_config_has_finished() -> None:
    recommended = run("bo", 15).recommend()
    assert recommended is not None
    assert recommended.trial.state is State.DONE


def test_a_state_goes_on_with_its_curves() -> None:
    first = run("bo", 12)
    second = Optimizer.from_state(json.loads(json.dumps(first.state())))
    assert [t.curve for t in second.trials] == [t.curve for t in first.trials]
    for optimizer in (first, second):
        for _ in range(4):
            train(optimizer)
    assert [t.config for t in second.trials] == [t.config for t in first.trials]
    assert [t.state for t in second.trials] == [t.state for t in first.trials]


def test_values_are_maximised_by_their_sign() -> None:
    optimizer = Optimizer(SPACE, "random", "max", max_steps=20, stop_early=True)
    for _ in range(30):
        trial = optimizer.ask()
        for step in range(1, 21):
            if not optimizer.report(trial, step, -loss_at(trial.config, step)):
                break
    stopped = [t.config["x"] for t in optimizer.trials if t.state is State.STOPPED]
    done = [t.config["x"] for t in optimizer.trials if t.state is State.DONE]
    assert np.mean(np.abs(np.array(done) - 0.3)) < np.mean(np.abs(np.array(stopped) - 0.3))


def test_without_max_steps_the_user_tells_the_value() -> None:
    optimizer = Optimizer(SPACE, "random")
    trial = optimizer.ask()
    assert optimizer.report(trial, None, 3.0)
    assert optimizer.report(trial, None, 2.0)
    told = optimizer.tell(trial, 1.0)
    assert (told.value, told.curve) == (1.0, {1: 3.0, 2: 2.0})


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32("nan")])
def test_a_step_without_a_finite_value_is_a_failure(value: float) -> None:
    optimizer = Optimizer(SPACE, "random", max_steps=9)
    trial = optimizer.ask()
    assert optimizer.report(trial, 1, 1.0)
    assert not optimizer.report(trial, 2, value)
    (found,) = optimizer.trials
    assert (found.state, found.cause) == (State.FAILED, "result")
    assert "step 2" in str(found.reason)


@pytest.mark.parametrize(
    ("step", "value", "words"),
    [
        (0, 1.0, "step must be a whole number of 1 or more, got 0"),
        (1.5, 1.0, "got 1.5"),
        (True, 1.0, "got True"),
        (2, 1.0, "step 2 was reported after step 2"),
        (1, 1.0, "step 1 was reported after step 2"),
        (3, "good", "not a number"),
        (3, None, "not a number"),
    ],
)
def test_what_is_no_report_is_refused_and_changes_nothing(
    step: Any, value: Any, words: str
) -> None:
    optimizer = Optimizer(SPACE, "random", max_steps=9)
    trial = optimizer.ask()
    optimizer.report(trial, 2, 1.0)
    with pytest.raises(StudyError, match=words):
        optimizer.report(trial, step, value)
    assert optimizer.trials[0].curve == {2: 1.0}
    assert optimizer.report(trial, 3, 1.0)


def test_a_trial_that_is_over_takes_no_more() -> None:
    optimizer = run()
    stopped = next(t for t in optimizer.trials if t.state is State.STOPPED)
    for call in (optimizer.tell, lambda t, v: optimizer.report(t, 20, v)):
        with pytest.raises(StudyError, match=r"stopped early at step \d+: report"):
            call(stopped, 1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stop_early": True}, "needs max_steps="),
        ({"max_steps": 0}, "whole number of 1 or more, got 0"),
        ({"max_steps": 2.5}, "got 2.5"),
        ({"max_steps": True}, "got True"),
        ({"max_steps": 5, "stop_early": "yes"}, "True or False, got 'yes'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Optimizer(SPACE, "random", **options)


def test_bounds_hold_for_reports_that_name_their_outcomes() -> None:
    bounds = {"latency": (None, 1.0)}
    optimizer = Optimizer(SPACE, "bo", constraints=bounds, max_steps=3)
    for _ in range(8):
        trial = optimizer.ask()
        for step in (1, 2, 3):
            optimizer.report(trial, step, trial.config["x"], {"latency": 2 * trial.config["y"]})
    running = optimizer.ask()
    optimizer.report(running, 1, 0.0, {"latency": 0.5})
    optimizer.ask()
    assert optimizer.best is not None
    assert optimizer.best.extra["latency"] <= 1.0
