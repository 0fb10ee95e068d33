"""Bounds of other outcomes: the best trial keeps them, and the search learns where they hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import raybo
from raybo.errors import MetricError, ObjectiveError, StudyError
from raybo.study.objective import Objective

SPACE = {"x": raybo.Float(0, 6), "y": raybo.Float(0, 6)}
CONSTRAINTS = {"c": (None, 0.95)}


def gardner(config: dict[str, float]) -> dict[str, float]:
    """The second problem of Gardner et al. (2014); the best allowed value is 0.2532."""
    x, y = config["x"], config["y"]
    return {"loss": math.sin(x) + y, "c": math.sin(x) * math.sin(y) + 1.9}


def test_a_constrained_problem_is_solved() -> None:
    optimizer = raybo.Optimizer(SPACE, seed=2, constraints=CONSTRAINTS)
    broken = []
    for _ in range(40):
        trial = optimizer.ask()
        found = gardner(trial.config)
        broken.append(found["c"] > 0.95)
        optimizer.tell(trial, found["loss"], {"c": found["c"]})
    best = optimizer.best
    assert best is not None
    assert best.extra["c"] <= 0.95
    assert best.value < 0.2532 + 0.1
    assert min(t.value for t in optimizer.trials) < best.value  # others are better and not allowed


def test_the_state_keeps_constraints_and_outcomes() -> None:
    optimizer = raybo.Optimizer(SPACE, "random", constraints=CONSTRAINTS)
    for _ in range(6):
        trial = optimizer.ask()
        found = gardner(trial.config)
        optimizer.tell(trial, found["loss"], {"c": found["c"]})
    again = raybo.Optimizer.from_state(optimizer.state())
    assert again.best == optimizer.best
    assert again.ask().config == optimizer.ask().config


def test_tell_asks_for_what_is_bounded() -> None:
    optimizer = raybo.Optimizer(SPACE, constraints=CONSTRAINTS)
    trial = optimizer.ask()
    with pytest.raises(StudyError, match="tell it as extra="):
        optimizer.tell(trial, 1.0)
    with pytest.raises(StudyError, match="'a' \\(str\\), not a number"):
        optimizer.tell(trial, 1.0, {"c": "a"})
    with pytest.raises(StudyError, match="not a dict of outcomes"):
        optimizer.tell(trial, 1.0, [0.5])  # type: ignore[arg-type]
    assert trial.number in {t.number for t in optimizer.trials if t.state == "pending"}
    with pytest.raises(StudyError, match="tell it as extra="):
        optimizer.add({"x": 1.0, "y": 1.0}, 2.0)
    assert len(optimizer.trials) == 1  # a point that is refused leaves nothing behind
    assert optimizer.add({"x": 1.0, "y": 1.0}, 2.0, {"c": 0.5}).state == "done"
    assert optimizer.tell(trial, 1.0, {"c": float("nan")}).state == "failed"


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        ([("c", 1)], "not a dict"),
        ({"c": 3.0}, "give \\(low, high\\)"),
        ({"c": (None, None)}, "needs a bound"),
        ({"c": (2.0, 1.0)}, "low <= high"),
        ({"c": (None, "9")}, "not a number"),
        ({"c": (1.0, 2.0, 3.0)}, "give \\(low, high\\)"),
        ({"loss": (None, 1.0)}, "is the metric"),
    ],
)
def test_what_is_no_constraint_is_refused(constraints: Any, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        Objective("min", "loss", constraints)


def test_excesses_are_of_every_bound() -> None:
    goal = Objective("min", "loss", {"a": (1.0, 3.0), "b": (None, 0.0)})
    assert goal.excess({"a": 2.5, "b": -1.0}) == [-1.5, -0.5, -1.0]
    assert goal.allows({"a": 3.0, "b": 0.0})
    assert not goal.allows({"a": 0.5, "b": 0.0})
    value, extra = goal.parse({"loss": 1.0, "a": np.float32(2.0), "b": 0, "note": "x"})
    assert (value, extra) == (1.0, {"a": 2.0, "b": 0.0, "note": "x"})
    with pytest.raises(MetricError, match="none of them is 'b'"):
        goal.parse({"loss": 1.0, "a": 2.0})
    with pytest.raises(MetricError, match="returns a dict"):
        goal.parse(1.0)
    with pytest.raises(ObjectiveError, match="not a finite number"):
        goal.parse({"loss": 1.0, "a": float("inf"), "b": 0.0})


@pytest.mark.ray
def test_a_study_on_ray_keeps_its_constraints(ray_cluster: None, tmp_path: Any) -> None:
    options: dict[str, Any] = {
        "metric": "loss", "workers": 2, "method": "random", "storage": tmp_path, "name": "bounded",
        "progress": False, "constraints": CONSTRAINTS,
    }  # fmt: skip
    result = raybo.optimize(gardner, SPACE, max_trials=12, **options)
    allowed = [t.value for t in result.trials if t.extra["c"] <= 0.95]
    assert result.best_value == (min(allowed) if allowed else None)
    loaded = raybo.load("bounded", tmp_path)
    assert loaded.best_value == result.best_value
    with pytest.raises(StudyError, match="constraints: was"):
        raybo.optimize(gardner, SPACE, max_trials=14, **{**options, "constraints": None})
    known = {"x": 1.0, "y": 1.0}
    with pytest.raises(StudyError, match=r"evaluated: .* returns a dict of the metric"):
        raybo.optimize(gardner, SPACE, evaluated=[(known, 2.0)], max_trials=13, **options)
    with pytest.raises(StudyError, match=r"evaluated: .* none of them is 'c'"):
        raybo.optimize(gardner, SPACE, evaluated=[(known, {"loss": 2})], max_trials=13, **options)
    evaluated = [(known, {"loss": -9.0, "c": 0.5}), (known, {"loss": -10.0, "c": 1.5})]
    options["evaluated"] = evaluated
    for n in (13, 14):  # the second call adds nothing that is known
        result = raybo.optimize(gardner, SPACE, max_trials=n, **options)
    assert len(result.trials) == 14 + 2
    assert result.best_value == -9.0
    assert result.best_trial.extra == {"c": 0.5}
