"""Method rpp: its options, its projection, and the points it proposes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raybo.errors import MethodError, SpaceError
from raybo.methods.base import Data
from raybo.methods.registry import build_method, describe_method
from raybo.methods.rpp.default import Rpp
from raybo.methods.rpp.projection import log_ratio
from raybo.methods.rpp.published import PublishedRpp
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.surrogate.outcomes import SHORT_TAIL, standardize
from tests.helpers.data import data_of

DIM = 5
TILTED = np.eye(DIM) + np.random.default_rng(5).uniform(-0.4, 0.4, (DIM, DIM))


def tilted(x: np.ndarray) -> float:
    """A sum of functions of one direction each, near the columns."""
    return float(np.sin(4 * (TILTED.T @ (x - 0.5))).sum())


def told(n: int, seed: int = 0) -> Data:
    return data_of(Box(DIM, 0, 1), n, tilted, seed=seed)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("cls", [Rpp, PublishedRpp])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": -0.1}, "delta must be a number of at least 0, or inf.*got -0.1"),
        ({"delta": math.nan}, "delta must be a number of at least 0, or inf.*got nan"),
        ({"delta": "wide"}, "delta must be a number of at least 0, or inf.*got 'wide'"),
        ({"group_size": 0}, "group_size must be an integer from 1 to 5"),
        ({"group_size": 6}, "group_size must be an integer from 1 to 5"),
        ({"groups": [[9]]}, "9 is neither a column's name nor a number below 5"),
        ({"decomposition": 3}, "decomposition must be one of"),
    ],
)
def test_bad_options_are_refused(cls: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        cls(Box(DIM), **options)


@pytest.mark.parametrize("cls", [Rpp, PublishedRpp])
def test_spaces_that_cannot_be_projected_are_refused(cls: Any) -> None:
    with pytest.raises(SpaceError, match="'k' is Categorical"):
        cls(Space({"a": Float(0, 1), "k": Categorical(["u", "v"])}))
    with pytest.raises(SpaceError, match="'c' is a Choice; use method 'addtree'"):
        cls(Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})}))


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_an_infinite_delta_is_described_in_json(preset: str) -> None:
    method = build_method("rpp", Box(DIM), {"preset": preset, "delta": math.inf})
    text = json.dumps(describe_method(method), allow_nan=False)
    assert build_method("rpp", Box(DIM), json.loads(text)["options"]) == method


def test_the_model_predicts_a_tilted_function_better_than_the_columns_do() -> None:
    data, unseen = told(160), told(200, seed=1)
    true = standardize(
        unseen.loss, SHORT_TAIL
    )  # the model is of losses whose bad side is drawn in
    errors = []
    for delta in (None, 0.0):
        gp, W, _ = Rpp(Box(DIM, 0, 1), group_size=1, delta=delta).projected_model(data)
        predicted = gp.posterior(gp.X.new_tensor(unseen.X @ W)).mean.numpy()
        errors.append(1 - np.corrcoef(predicted, true)[0, 1] ** 2)
    assert errors[0] < 0.5 * errors[1]


def test_the_directions_of_a_tilted_function_are_approached() -> None:
    _, W, _ = Rpp(Box(DIM, 0, 1), group_size=1).projected_model(told(100))
    unit, true = (V / np.linalg.norm(V, axis=0) for V in (W, TILTED))
    learnt, columns = (unit * true).sum(0), np.diag(true)
    assert learnt.min() > columns.min()
    assert learnt.mean() > 0.5 * (1 + columns.mean())


@pytest.mark.parametrize("delta", [0.0, 0.1, 2.0])
def test_a_given_delta_bounds_the_box(delta: float) -> None:
    _, W, _ = Rpp(Box(DIM, 0, 1), delta=delta, group_size=1).projected_model(told(40))
    assert log_ratio(W) <= math.log1p(delta) + 1e-6
    if delta == 0.0:
        np.testing.assert_array_equal(W, np.eye(DIM))


@pytest.fixture(scope="module")
def learnt() -> tuple[Rpp, np.ndarray, dict[str, Any]]:
    """A method, the projection that it learns from 40 rows, and the memo, as JSON gives it."""
    method = Rpp(Box(DIM, 0, 1), group_size=2)
    _, W, memo = method.projected_model(told(40))
    return method, W, json.loads(json.dumps(memo))


def test_the_projection_is_read_from_the_memo_until_the_data_have_grown(learnt: Any) -> None:
    (method, first, memo), data = learnt, told(40)
    known = replace(data, memos=(memo, *data.memos[1:]))
    _, again, nothing = method.projected_model(known)
    assert nothing == {}
    np.testing.assert_array_equal(again, first)
    more = told(50)
    _, later, written = method.projected_model(replace(more, memos=(memo, *more.memos[1:])))
    assert written
    assert not np.array_equal(later, first)


def test_a_memo_of_free_directions_from_an_earlier_version_is_passed_over(learnt: Any) -> None:
    (method, _, memo), data = learnt, told(40)
    earlier = {k: v for k, v in memo.items() if k in ("fitted", "groups", "theta")}
    earlier |= {"ridge": {"W": np.eye(DIM)[:, :2].tolist(), "theta": {}}}
    found = method.propose(replace(data, memos=(earlier, *data.memos[1:])), rng())
    assert found.x is not None
    assert ((found.x >= 0) & (found.x <= 1)).all()
    assert found.memo


def test_discrete_columns_are_proposed_at_values_they_have() -> None:
    space = Space({"a": Float(0, 1), "n": Int(1, 9), "m": Int(0, 4)})
    data = data_of(space, 20, lambda x: float(np.sum((x - 0.4) ** 2)))
    x = Rpp(space).propose(data, rng()).x
    assert x is not None
    np.testing.assert_array_equal(space.snap(x[None])[0], x)


def test_pending_points_are_not_proposed_again() -> None:
    method, data = Rpp(Box(DIM, 0, 1), group_size=2), told(30)
    first = method.propose(data, rng())
    assert first.x is not None
    later = replace(data, pending=first.x[None], pending_memos=(first.memo,))
    second = method.propose(later, rng())
    assert second.x is not None
    assert np.abs(first.x - second.x).max() > 1e-3


def test_a_projected_additive_function_is_minimised() -> None:
    optimizer = Optimizer(Box(4, 0, 1), "rpp", seed=0, group_size=1)
    for _ in range(30):
        trial = optimizer.ask()
        x = np.asarray(trial.config["x"])
        z = np.array([x[0] + x[1], x[0] - x[1], x[2] + 0.5 * x[3], x[3] - 0.5 * x[2]])
        optimizer.tell(trial.number, float(np.sum((z - [0.8, 0.1, 0.7, 0.2]) ** 2)))
    assert optimizer.best is not None
    assert optimizer.best.value < 0.01  # best of 30 random points: 0.2
