"""Add-GP-UCB: its groups, its options, and its search of every group by itself."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from raybo.errors import MethodError, SpaceError
from raybo.methods.addgp.default import AddGp
from raybo.methods.addgp.groups import (
    N_CYC,
    Learnt,
    best_groups,
    first_theta,
    given_groups,
    partition,
    swap_columns,
)
from raybo.methods.addgp.search import GroupSearch, exploration
from raybo.methods.base import Data
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.map import fit
from raybo.surrogate.outcomes import standardize

MIXED = Space(
    {"a": Float(0, 1), "n": Int(1, 5), "k": Categorical(["u", "v", "w"]), "b": Float(0, 1)}
)


def told(space: Any, n: int, loss: Any, memos: Any = None, seed: int = 0) -> Data:
    X = space.sample(n, np.random.default_rng(seed))
    return Data(
        number=n,
        seed=1,
        X=X,
        loss=np.array([loss(x) for x in X]),
        failed=np.zeros(n, dtype=bool),
        memos=memos or ({},) * n,
        pending=np.empty((0, space.dim)),
        pending_memos=(),
    )


def pairs(x: np.ndarray) -> float:
    """A function of (x0, x3) plus one of (x1, x2), neither a sum of functions of one column."""
    return float(np.sin(6 * x[0] * x[3]) + np.cos(7 * x[1] * (1 - x[2])))


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
        ({"seconds": 0}, r"seconds must be a positive number, .* got 0"),
        ({"seconds": 1, "preset": "paper"}, r"is not an option of the paper preset"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        AddGp(Box(6), **options)


def test_a_conditional_space_is_refused() -> None:
    space = Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})})
    with pytest.raises(SpaceError, match="'c' is a Choice; use method 'addtree'"):
        AddGp(space)


def test_groups_are_given_by_name_or_number_and_the_rest_stands_alone() -> None:
    assert given_groups(MIXED, [["k", "a"], [1]]) == ((2, 0), (1,), (3,))


def test_a_partition_holds_every_column_once() -> None:
    groups = partition(13, 5, np.random.default_rng(0))
    assert sorted(c for g in groups for c in g) == list(range(13))
    assert [len(g) for g in groups] == [5, 5, 3]


def test_exploration_is_the_formula_of_the_authors_code() -> None:
    groups = ((0, 1, 2), (3,))
    assert exploration(groups, 7, paper=True) == pytest.approx(0.2 * 3 * math.log(14))
    assert exploration(groups, 7, paper=False) == pytest.approx(0.05 * 3 * math.log(14))


@pytest.mark.parametrize("learner", ["candidates", "swaps"])
def test_likelihood_finds_the_groups_of_an_additive_function(learner: str) -> None:
    data = told(Box(4, 0, 1), 60, pairs)
    X, y = torch.tensor(data.X), torch.tensor(standardize(data.loss))

    def kernel(groups: Any) -> Additive:
        return Additive(groups, "se", ard=False)

    wrong, right = ((0, 1), (2, 3)), {frozenset((0, 3)), frozenset((1, 2))}
    theta = fit(kernel(wrong), X, y, [first_theta(kernel(wrong))])
    if learner == "candidates":
        found = best_groups([wrong, ((0, 3), (1, 2)), ((0, 2), (1, 3))], kernel, X, y, theta)
    else:
        found = wrong
        for seed in range(3):
            found = swap_columns(found, kernel, X, y, theta, np.random.default_rng(seed))
    assert set(map(frozenset, found)) == right


def test_swaps_of_one_group_leave_it() -> None:
    data = told(Box(3, 0, 1), 12, sum)
    X, y = torch.tensor(data.X), torch.tensor(standardize(data.loss))
    one = ((0, 1, 2),)
    theta = first_theta(Additive(one, ard=False))
    assert (
        swap_columns(one, lambda g: Additive(g, ard=False), X, y, theta, np.random.default_rng(0))
        == one
    )


def test_climb_and_direct_find_the_maximum_of_every_group_of_a_fine_grid() -> None:
    space, groups = Box(3, 0, 1), ((2,), (0,), (1,))
    data = told(space, 25, lambda x: float(np.sin(7 * x[0]) + np.cos(9 * x[1]) + x[2] ** 2))
    X, y = torch.tensor(data.X), torch.tensor(standardize(data.loss))
    kernel = Additive(groups, ard=False)
    gp = GP.of(kernel, fit(kernel, X, y, [first_theta(kernel)]), X, y)
    search = GroupSearch.in_space(gp, groups, 2.0, space)
    grid = torch.linspace(0, 1, 2001, dtype=torch.float64)
    bounds = search.acquisition(grid.reshape(1, -1, 1).expand(3, -1, -1))
    best = grid[bounds.argmax(1)].numpy()
    expected = np.empty(3)
    expected[[2, 0, 1]] = best
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(search.climb(data.X[:3], rng), expected, atol=1e-3)
    np.testing.assert_allclose(search.direct(rng), expected, atol=1e-2)


def test_discrete_columns_are_searched_on_their_own_grids() -> None:
    groups = ((3, 1), (2,), (0,))
    data = told(MIXED, 30, lambda x: (x[1] - 0.7) ** 2 + abs(x[2] - 0.5) + x[0])
    X, y = torch.tensor(data.X), torch.tensor(standardize(data.loss))
    kernel = Additive(groups, ard=False, unordered=(2,))
    gp = GP.of(kernel, fit(kernel, X, y, [first_theta(kernel)]), X, y)
    search = GroupSearch.in_space(gp, groups, 0.1, MIXED)
    x = search.climb(data.X[:3], np.random.default_rng(0))
    np.testing.assert_array_equal(MIXED.snap(x[None])[0], x)
    assert (x[1], x[2]) == pytest.approx((0.7, 0.5))  # the values 4 and "v"


def test_groups_and_hyperparameters_are_in_the_memo_only_when_they_change() -> None:
    optimizer = Optimizer(Box(6, 0, 1), "addgp", seed=2, preset="paper", group_size=3)
    for _ in range(10 + N_CYC + 2):
        trial = optimizer.ask()
        optimizer.tell(trial.number, float(np.sum(np.asarray(trial.config["x"]) ** 2)))
    learnt = [t.number for t in optimizer.trials if t.memo]
    assert learnt == [10, 10 + N_CYC]
    memo = json.loads(json.dumps(optimizer.trials[10].memo))
    assert sorted(c for g in memo["groups"] for c in g) == list(range(6))
    assert set(memo) == {"fitted", "groups", "theta"}


def test_what_was_learnt_is_read_back_from_pending_memos_too() -> None:
    method = AddGp(Box(4, 0, 1))
    data = told(method.space, 14, pairs)
    memo = method.propose(data, np.random.default_rng(0)).memo
    later = Data(
        **{**vars(data), "number": 15, "pending": data.X[:1] / 2, "pending_memos": (memo,)}
    )
    found = Learnt.last(later)
    assert found is not None
    assert found.to_memo() == memo
    assert method.propose(later, np.random.default_rng(0)).memo == {}


def test_given_groups_are_kept() -> None:
    method = AddGp(Box(4, 0, 1), groups=[[0, 3]])
    memo = method.propose(told(method.space, 14, pairs), np.random.default_rng(0)).memo
    assert memo["groups"] == [[0, 3], [1], [2]]


def test_random_decompositions_differ_between_proposals() -> None:
    method = AddGp(Box(8, 0, 1), decomposition="random", group_size=2)
    data = told(method.space, 14, pairs)
    memo = method.propose(data, np.random.default_rng(0)).memo
    again = Data(**{**vars(data), "memos": (memo, *data.memos[1:])})
    rows = [method.propose(again, np.random.default_rng(i)).x for i in range(3)]
    assert not np.allclose(rows[0], rows[1])
    assert not np.allclose(rows[1], rows[2])


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_an_additive_function_is_minimised(preset: str) -> None:
    optimizer = Optimizer(Box(6, 0, 1), "addgp", seed=0, preset=preset, group_size=2)
    for _ in range(30):
        trial = optimizer.ask()
        x = np.asarray(trial.config["x"])
        optimizer.tell(trial.number, float(np.sum((x - 0.3) ** 2)))
    assert optimizer.best is not None
    assert optimizer.best.value < 0.06  # best of 30 random points: about 0.2
