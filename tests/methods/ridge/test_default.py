"""Method ridge: the directions that are found, what the model predicts, and what it proposes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from raybo.errors import MethodError, SpaceError
from raybo.methods.base import Data
from raybo.methods.ridge.default import Ridge
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.surrogate.gp import GP
from tests.helpers.data import data_of

DIM = 8
SPACE = Box(DIM, 0, 1)


def directions(seed: int = 0) -> np.ndarray:
    """Two orthonormal directions (DIM, 2)."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((DIM, 2)))[0]


def values(X: np.ndarray) -> np.ndarray:
    z = (X - 0.5) @ directions()
    return np.asarray(np.sin(4 * z[..., 0]) + 2 * z[..., 1] ** 2)


def told(n: int, seed: int = 1) -> Data:
    return data_of(SPACE, n, values, seed=seed)


@pytest.fixture(scope="module")
def fitted() -> GP:
    """The model of 100 rows."""
    return Ridge(SPACE).model(told(100))[0]


def test_the_plane_of_a_function_is_found_and_other_directions_shrink(fitted: GP) -> None:
    _, lengths, rows = np.linalg.svd(fitted.theta["rows"].log().numpy())
    cosines = np.linalg.svd(rows[:2] @ directions())[1]
    assert cosines.min() > 0.99
    assert (lengths[2:] < 0.1 * lengths[1]).all()


def test_unseen_rows_are_predicted(fitted: GP) -> None:
    unseen = told(60, seed=2)
    predicted = fitted.posterior(torch.tensor(unseen.X)).mean
    assert np.corrcoef(predicted, unseen.loss)[0, 1] > 0.99


def test_the_model_read_from_the_memo_is_the_one_that_was_fitted() -> None:
    data = told(60)
    gp, memo = Ridge(SPACE).model(data)
    memo = json.loads(json.dumps(memo))
    read, nothing = Ridge(SPACE).model(replace(data, memos=(memo, *data.memos[1:]), cache={}))
    assert nothing == {}
    unseen = torch.tensor(told(20, seed=2).X)
    torch.testing.assert_close(
        read.posterior(unseen).mean, gp.posterior(unseen).mean, rtol=0, atol=1e-3
    )


def test_equal_losses_give_a_finite_point() -> None:
    data = replace(told(20), loss=np.zeros(20))
    x = Ridge(SPACE).propose(data, np.random.default_rng(0)).x
    assert x is not None
    assert np.isfinite(x).all()


@pytest.mark.slow
def test_a_function_of_two_directions_is_minimised() -> None:
    optimizer = Optimizer(SPACE, "ridge", seed=0)
    for _ in range(45):
        trial = optimizer.ask()
        optimizer.tell(trial.number, float(values(np.asarray(trial.config["x"]))))
    grid = np.linspace(-0.5, 0.5, 21)
    least = min(np.sin(4 * grid))  # as low as it can be where the other direction is at 0
    assert optimizer.best is not None
    assert optimizer.best.value < least + 2e-3
    assert np.sort(values(told(45).X))[0] > least + 2e-3  # not so by chance


def test_integers_are_proposed_at_values_they_have() -> None:
    space = Space({"a": Float(0, 1), "n": Int(1, 9), "m": Int(0, 4)})
    x = Ridge(space).propose(data_of(space, 20, np.sum), np.random.default_rng(0)).x
    assert x is not None
    np.testing.assert_array_equal(space.snap(x[None])[0], x)


def test_bad_options_and_spaces_without_numbers_are_refused() -> None:
    with pytest.raises(MethodError, match="n_init must be an integer of at least 1"):
        Ridge(SPACE, n_init=0)
    with pytest.raises(SpaceError, match="'k' is Categorical"):
        Ridge(Space({"a": Float(0, 1), "k": Categorical(["u", "v"])}))
    with pytest.raises(SpaceError, match="'c' is a Choice; use method 'addtree'"):
        Ridge(Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})}))
