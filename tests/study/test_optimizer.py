from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import raybo
from raybo import Box, Categorical, Choice, Float, Int, Optimizer, Space
from raybo.errors import MethodError, SpaceError, StudyError

SPACE = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "width": Int(16, 512, log=True),
        "act": Categorical(["relu", "gelu"]),
        "compress": Choice({"svd": {"rank": Int(10, 500)}, "l1": {"threshold": Float(0, 1)}}),
    }
)


def value_of(config: dict) -> float:
    return abs(np.log10(config["lr"]) + 3) + (config["act"] == "relu") + config["width"] / 512


@pytest.mark.parametrize("method", ["random", "sobol", "bo"])
def test_same_seed_and_results_give_the_same_trials_also_after_a_round_trip(method: str) -> None:
    one = Optimizer(SPACE, method, seed=3)
    two = Optimizer(SPACE, method, seed=3)
    for _ in range(7):
        a, b = one.ask(), two.ask()
        assert a.config == b.config
        one.tell(a.number, value_of(a.config))
        two.tell(b.number, value_of(b.config))
    pending = [one.ask() for _ in range(5)]
    assert [two.ask().config for _ in range(5)] == [t.config for t in pending]
    one.fail(pending[1].number, "lost")
    two = Optimizer.from_state(json.loads(json.dumps(one.state())))
    one.tell(pending[4].number, 0.5)
    two.tell(pending[4].number, 0.5)
    assert one.ask().config == two.ask().config
    assert one.best == two.best


def test_another_seed_gives_other_trials() -> None:
    assert Optimizer(SPACE, "random", seed=0).ask() != Optimizer(SPACE, "random", seed=1).ask()


def test_maximising_is_minimising_the_negative() -> None:
    up, down = Optimizer({"x": Float(0, 1)}, mode="max"), Optimizer({"x": Float(0, 1)})
    for _ in range(12):
        a, b = up.ask(), down.ask()
        assert a.config == b.config
        up.tell(a.number, -((a.config["x"] - 0.3) ** 2))
        down.tell(b.number, (b.config["x"] - 0.3) ** 2)
    assert up.best is not None
    assert up.best.value > -1e-3


def test_points_of_the_users_own_are_data() -> None:
    opt = Optimizer({"x": Float(0, 1)}, seed=0)
    opt.add({"x": 0.25}, 0.5)
    trial = opt.add({"x": 0.75})
    opt.tell(trial.number, 0.1)
    assert opt.best is not None
    assert opt.best.config == {"x": 0.75}
    with pytest.raises(SpaceError, match="'x'"):
        opt.add({"x": 1.5}, 0.5)


def test_a_state_of_another_space_or_version_is_refused_with_the_difference() -> None:
    state = Optimizer({"x": Float(0, 1)}, "random").state()
    with pytest.raises(StudyError, match="another space: 'x'"):
        Optimizer.from_state(state, space={"x": Float(0, 2)})
    with pytest.raises(StudyError, match="version 99"):
        Optimizer.from_state({**state, "version": 99})


def test_options_go_to_the_method_and_are_checked() -> None:
    with pytest.raises(MethodError, match="n_init must be an integer of at least 1, got 0"):
        Optimizer(SPACE, "bo", n_init=0)
    with pytest.raises(MethodError, match="acquisition must be one of 'log_ei', 'ei', 'ucb'"):
        Optimizer(SPACE, "bo", acquisition="thompson")
    with pytest.raises(SpaceError, match="use method 'bins', 'rembo' or 'random'"):
        Optimizer(Box(10**9), "bo")
    with pytest.raises(SpaceError, match="a space is"):
        Optimizer([1, 2])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"preset": "paper"}, marks=pytest.mark.slow),
        {"acquisition": "ucb"},
        pytest.param({"acquisition": "ei"}, marks=pytest.mark.slow),
        pytest.param({"maximizer": "cmaes"}, marks=pytest.mark.slow),
    ],
)
def test_every_variant_of_bo_gets_close_to_a_bowls_minimum(options: dict) -> None:
    opt = Optimizer({"x": Float(-1, 1), "y": Float(-1, 1)}, "bo", seed=0, n_init=5, **options)
    for _ in range(11):
        trial = opt.ask()
        opt.tell(trial.number, (trial.config["x"] - 0.3) ** 2 + (trial.config["y"] + 0.5) ** 2)
    assert opt.best is not None
    assert opt.best.value < 0.02


def test_one_huge_outlier_leaves_the_search_on_course() -> None:
    def regret(outlier: bool) -> float:
        opt = Optimizer({"x": Float(-1, 1), "y": Float(-1, 1)}, "bo", seed=1)
        for i in range(20):
            trial = opt.ask()
            bowl = (trial.config["x"] - 0.3) ** 2 + (trial.config["y"] + 0.5) ** 2
            opt.tell(trial.number, 1e300 if outlier and i == 3 else bowl)
        assert opt.best is not None
        return float(opt.best.value)

    assert regret(outlier=True) <= 100 * max(regret(outlier=False), 1e-6)


@pytest.mark.parametrize(
    "space",
    [
        Space({"k": Categorical(list(range(10_000)))}),
        Space({"n": Int(1, 10**18), "m": Int(1, 10**18, log=True)}),
        Box(1000),
    ],
    ids=["10^4 categories", "integers to 10^18", "1000 dimensions"],
)
def test_extreme_spaces_get_proposals_inside(space: raybo.Space) -> None:
    opt = Optimizer(space, "bo", seed=0, n_init=4)
    for i in range(7):
        trial = opt.ask()
        space.encode(trial.config)  # refuses what is not inside
        opt.tell(trial.number, float(np.cos(i)))


def test_a_trial_is_told_by_itself_or_by_its_number_and_several_are_asked_at_once() -> None:
    opt = Optimizer({"x": Float(0, 1)}, "random")
    one, two, three = opt.ask(3)
    assert [one.number, two.number, three.number] == [0, 1, 2]
    opt.tell(one, 4.0)
    opt.tell(two.number, 5.0)
    opt.fail(three, "no")
    assert [t.value for t in opt.trials] == [4.0, 5.0, None]
    assert opt.trials[2].reason == "no"


def test_what_a_user_does_with_a_config_leaves_the_study_alone() -> None:
    opt = Optimizer({"x": Float(0, 1), "c": Choice({"a": {"k": Int(1, 9)}})}, "random")
    trial = opt.ask()
    x, k = trial.config["x"], trial.config["c"]["a"]["k"]
    trial.config["x"], trial.config["c"]["a"]["k"] = 33, 99  # type: ignore[index]
    own = {"x": 0.5, "c": {"a": {"k": 3}}}
    opt.add(own, 1.0)
    own["x"] = 7
    assert [t.config["x"] for t in opt.trials] == [x, 0.5]
    assert opt.trials[0].config["c"] == {"a": {"k": k}}


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("method", ["bo", "egp", "ridge", "local"])
def test_predictions_are_in_units_of_the_objective(method: str, mode: str) -> None:
    sign = 1.0 if mode == "min" else -1.0

    def f(config: Mapping[str, Any]) -> float:
        return sign * (1000 + 50 * (config["x"] - 0.3) ** 2)

    opt = Optimizer({"x": Float(0, 1)}, method, mode)
    for x in (0.0, 1.0):  # between which it predicts
        opt.add({"x": x}, f({"x": x}))
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, f(trial.config))
    configs = [{"x": x} for x in (0.1, 0.35, 0.8)]
    mean, deviation = opt.predict(configs)
    assert (abs(mean - [f(c) for c in configs]) <= 2 * deviation + 0.1).all()
    assert abs(mean[1] - f(configs[1])) < 0.1  # near the optimum, where most trials are
    assert (deviation > 0).all()
    assert deviation[1] < deviation[2]


def test_predictions_that_cannot_be_made_say_why() -> None:
    with pytest.raises(MethodError, match="Sobol has no model to predict from; use auto"):
        Optimizer({"x": Float(0, 1)}, "sobol").predict([{"x": 0.5}])
    with pytest.raises(MethodError, match="needs two values, and 0 have been told"):
        Optimizer({"x": Float(0, 1)}).predict([{"x": 0.5}])


@pytest.mark.parametrize("seed", ["x", 1.5, -1, True])
def test_a_seed_that_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(StudyError, match="seed must be a whole number of 0 or more"):
        Optimizer({"x": Float(0, 1)}, seed=seed)


def test_a_seed_of_none_is_any_seed_and_part_of_the_state() -> None:
    first, second = (Optimizer({"x": Float(0, 1)}, "random", seed=None) for _ in range(2))
    again = Optimizer.from_state(first.state())
    asked = first.ask().config
    assert asked == again.ask().config
    assert asked != second.ask().config


def test_a_point_that_is_not_allowed_is_refused() -> None:
    study = Optimizer(Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a <= b"))
    with pytest.raises(SpaceError, match=r"is not allowed by where \('a <= b'\)"):
        study.add({"a": 1.0, "b": 0.0}, 3.0)
    assert study.add({"a": 0.0, "b": 1.0}, 3.0).value == 3.0


def test_a_state_needs_the_space_where_its_condition_is_a_function() -> None:
    def limited(limit: float) -> Space:
        return Space({"a": Float(0, 1)}, where=lambda c: c["a"] < limit)

    state = json.loads(json.dumps(Optimizer(limited(0.5)).state()))
    with pytest.raises(SpaceError, match="its where is the function"):
        Optimizer.from_state(state)
    with pytest.raises(StudyError, match="another space: where"):
        Optimizer.from_state(state, space=limited(0.6))
    assert Optimizer.from_state(state, space=limited(0.5)).ask().config["a"] < 0.5
