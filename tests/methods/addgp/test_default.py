"""Method addgp: its options, its groups, and the points it proposes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raybo.errors import MethodError, SpaceError
from raybo.methods.addgp.default import AddGp
from raybo.methods.addgp.published import PublishedAddGp
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_of


def pairs(x: np.ndarray) -> float:
    """A function of (x0, x3) plus one of (x1, x2), neither a sum of functions of one column."""
    return float(np.sin(6 * x[0] * x[3]) + np.cos(7 * x[1] * (1 - x[2])))


@pytest.mark.parametrize("cls", [AddGp, PublishedAddGp])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_size": 0}, r"group_size must be an integer from 1 to 6.*got 0"),
        ({"group_size": 7}, r"group_size must be an integer from 1 to 6.*got 7"),
        ({"group_size": 2.0}, r"group_size must be an integer from 1 to 6.*got 2.0"),
        (
            {"decomposition": "best"},
            r"decomposition must be one of 'learnt', 'random', got 'best'",
        ),
        ({"groups": [[0, 1], [1, 2]]}, r"column 'x\[1\]' is there twice"),
        ({"groups": [[0, 6]]}, r"6 is neither a column's name nor a number below 6"),
        ({"groups": [0, 1]}, r"groups must be a list of lists of columns"),
        ({"groups": [[]]}, r"groups must be a list of lists of columns"),
        ({"groups": [[0]], "group_size": 2}, r"leave out group_size and decomposition"),
        ({"n_init": 0}, r"n_init must be an integer of at least 1"),
    ],
)
def test_bad_options_are_refused(cls: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        cls(Box(6), **options)


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(MethodError, match=r"seconds must be a positive number, .* got 0"):
        AddGp(Box(6), seconds=0)


@pytest.mark.parametrize("cls", [AddGp, PublishedAddGp])
def test_a_conditional_space_is_refused(cls: Any) -> None:
    space = Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})})
    with pytest.raises(SpaceError, match="'c' is a Choice; use method 'addtree'"):
        cls(space)


def test_the_model_finds_the_groups_of_an_additive_function() -> None:
    method, data = AddGp(Box(4, 0, 1)), data_of(Box(4, 0, 1), 60, pairs)
    gp, memo = method.model(data)
    for _ in range(2):  # each learning goes on from the last
        grown = replace(data_of(Box(4, 0, 1), 60, pairs), memos=({**memo, "fitted": 50},) * 60)
        gp, memo = method.model(grown)
    assert set(map(frozenset, gp.kernel.groups)) == {frozenset((0, 3)), frozenset((1, 2))}


def test_groups_are_learnt_again_only_when_the_data_have_grown() -> None:
    method = AddGp(Box(4, 0, 1))
    data = data_of(method.space, 14, pairs)
    gp, memo = method.model(data)
    assert memo
    known = replace(data, memos=(memo, *data.memos[1:]))
    again, nothing = method.model(known)
    assert nothing == {}
    assert again.kernel == gp.kernel
    more = data_of(method.space, 20, pairs)
    grown = replace(more, memos=(memo, *more.memos[1:]))
    assert method.model(grown)[1]


def test_given_groups_are_kept() -> None:
    method = AddGp(Box(4, 0, 1), groups=[[0, 3]])
    gp, _ = method.model(data_of(method.space, 14, pairs))
    assert gp.kernel.groups == ((0, 3), (1,), (2,))


def test_random_decompositions_differ_between_proposals() -> None:
    method = AddGp(Box(8, 0, 1), decomposition="random", group_size=2)
    data = data_of(method.space, 14, pairs)
    kernels = {method.model(replace(data, number=i))[0].kernel for i in range(3)}
    assert len(kernels) == 3


def test_discrete_columns_are_proposed_at_values_they_have() -> None:
    space = Space({"a": Float(0, 1), "n": Int(1, 5), "k": Categorical(["u", "v", "w"])})
    data = data_of(space, 30, lambda x: (x[1] - 0.7) ** 2 + abs(x[2] - 0.5) + 0.1 * x[0])
    x = AddGp(space).propose(data, np.random.default_rng(0)).x
    assert x is not None
    np.testing.assert_array_equal(space.snap(x[None])[0], x)
    assert (x[1], x[2]) == pytest.approx((0.7, 0.5))  # the values 4 and "v"


def test_an_additive_function_is_minimised() -> None:
    optimizer = Optimizer(Box(6, 0, 1), "addgp", seed=0, group_size=2)
    for _ in range(30):
        trial = optimizer.ask()
        x = np.asarray(trial.config["x"])
        optimizer.tell(trial.number, float(np.sum((x - 0.3) ** 2)))
    assert optimizer.best is not None
    assert optimizer.best.value < 0.01  # best of 30 random points: about 0.2
