from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from raybo.errors import ObjectiveError, StudyError
from raybo.study.objective import Objective


@pytest.mark.parametrize(
    "result", [1.5, np.float32(1.5), np.array(1.5), torch.tensor(1.5), Fraction(3, 2)]
)
def test_numbers_of_any_kind_are_values(result: object) -> None:
    assert Objective().parse(result) == (1.5, {})


def test_a_dict_gives_the_metric_and_the_rest() -> None:
    value, extra = Objective(metric="loss").parse({"loss": 2, "accuracy": 0.9, "note": "ok"})
    assert value == 2.0
    assert extra == {"accuracy": 0.9, "note": "ok"}
    assert Objective().parse({"anything": 3.0}) == (3.0, {})


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (float("nan"), "the objective returned nan, not a finite number"),
        (-float("inf"), "-inf, not a finite number"),
        (None, "the objective returned None"),
        ("0.5", "the objective returned '0.5' .str., not a number"),
        ([0.5], "list"),
        (np.zeros(3), "ndarray"),
        (10**400, "an integer too large for a float"),
        (True, "bool"),
        (np.ma.masked, "a masked value"),
        ({"a": 1, "b": 2}, "name the one to optimise with metric="),
    ],
)
def test_what_is_no_finite_number_is_named(result: object, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message):
        Objective().parse(result)


def test_a_missing_metric_is_named_with_what_there_is() -> None:
    with pytest.raises(
        ObjectiveError, match=r"\['acc', 'time'\], none of them is the metric 'loss'"
    ):
        Objective(metric="loss").parse({"acc": 1, "time": 2})


def test_mode_turns_the_sign_once() -> None:
    assert Objective("max").loss(3.0) == -3.0
    assert Objective("min").loss(3.0) == 3.0
    assert Objective("max").better(3.0, 2.0)
    with pytest.raises(StudyError, match="mode must be 'min' or 'max', got 'up'"):
        Objective("up")
