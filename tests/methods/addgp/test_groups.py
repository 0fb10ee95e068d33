"""Groups of columns: given, drawn and learnt."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from raybo.methods.addgp.groups import (
    Learnt,
    exchange_columns,
    first_groups,
    given_groups,
    likeliest_groups,
    partition,
)
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.map import NOISE_HYPER, fit, starting_theta
from raybo.surrogate.outcomes import standardize
from tests.helpers.data import data_of

MIXED = Space(
    {"a": Float(0, 1), "n": Int(1, 5), "k": Categorical(["u", "v", "w"]), "b": Float(0, 1)}
)


def pairs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values of a function of (x0, x3) plus one of (x1, x2), neither of them additive."""
    X = np.random.default_rng(0).random((n, 4))
    loss = np.sin(6 * X[:, 0] * X[:, 3]) + np.cos(7 * X[:, 1] * (1 - X[:, 2]))
    return torch.tensor(X), torch.tensor(standardize(loss))


def test_groups_are_given_by_name_or_number_and_other_columns_stand_alone() -> None:
    assert given_groups(MIXED, [["k", "a"], [1]]) == ((2, 0), (1,), (3,))


def test_a_partition_holds_every_column_once() -> None:
    groups = partition(13, 5, np.random.default_rng(0))
    assert sorted(c for g in groups for c in g) == list(range(13))
    assert [len(g) for g in groups] == [5, 5, 3]


@pytest.mark.parametrize(
    ("dim", "sizes"), [(1, [1]), (5, [3, 2]), (12, [6, 6]), (25, [10, 10, 5])]
)
def test_by_default_there_are_two_groups_or_groups_of_ten(dim: int, sizes: list[int]) -> None:
    groups = first_groups(Box(dim), None, None, np.random.default_rng(0))
    assert [len(g) for g in groups] == sizes


@pytest.mark.parametrize("learner", ["candidates", "exchanges"])
def test_likelihood_finds_the_groups_of_an_additive_function(learner: str) -> None:
    X, y = pairs(60)
    wrong, right = ((0, 1), (2, 3)), {frozenset((0, 3)), frozenset((1, 2))}
    theta = fit(Additive(wrong), X, y, [starting_theta(Additive(wrong), NOISE_HYPER)])
    if learner == "candidates":
        candidates = [wrong, ((0, 3), (1, 2)), ((0, 2), (1, 3))]
        found = likeliest_groups(candidates, Additive, X, y, theta)
    else:
        found = wrong
        for seed in range(3):
            found = exchange_columns(found, Additive, X, y, theta, np.random.default_rng(seed))
    assert set(map(frozenset, found)) == right


def test_exchanges_leave_a_single_group_as_it_is() -> None:
    X, y = pairs(12)
    one = ((0, 1, 2, 3),)
    theta = starting_theta(Additive(one), NOISE_HYPER)
    assert exchange_columns(one, Additive, X, y, theta, np.random.default_rng(0)) == one


def test_the_latest_learning_is_found_among_told_and_pending_trials() -> None:
    X, _ = pairs(3)
    older, newer = (
        Learnt(n, groups, starting_theta(Additive(groups), NOISE_HYPER))
        for n, groups in ((10, ((0, 1), (2, 3))), (12, ((0, 3), (1, 2))))
    )
    read = [json.loads(json.dumps(learnt.to_memo())) for learnt in (older, newer)]
    data = data_of(
        Box(4, 0, 1),
        3,
        np.arange(3.0),
        pending=1,
        X=np.vstack([X, X[:1] / 2]),
        memos=({}, read[0], {}, read[1]),
    )
    found = Learnt.last(data)
    assert found is not None
    assert (found.fitted, found.groups) == (12, newer.groups)
    for name, value in newer.theta.items():
        torch.testing.assert_close(found.theta[name], value)


def test_a_memo_with_hyperparameters_no_longer_used_is_read() -> None:
    groups = ((0, 1), (2, 3))
    learnt = Learnt(10, groups, starting_theta(Additive(groups), NOISE_HYPER))
    memo = learnt.to_memo()
    memo["theta"]["mean"] = 0.3  # written by earlier versions
    assert Learnt.from_memo(memo).to_memo() == learnt.to_memo()
