"""Method linear: what the model predicts in many dimensions, and where it proposes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.errors import SpaceError
from raybo.methods.linear.default import Linear
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_of

DIM = 100
SPACE = Box(DIM, 0, 1)
SLOPE = np.random.default_rng(0).standard_normal(DIM)


def plane(X: np.ndarray) -> np.ndarray:
    return np.asarray((X - 0.5) @ SLOPE)


def bowl(X: np.ndarray) -> np.ndarray:
    return np.asarray(((X - 0.3) ** 2).sum(-1))


@pytest.mark.parametrize(("f", "least"), [(plane, 0.9), (bowl, 0.9)])
def test_slopes_are_learnt_in_many_dimensions(f: object, least: float) -> None:
    assert callable(f)
    gp, _ = Linear(SPACE).model(data_of(SPACE, 300, f))
    unseen = data_of(SPACE, 200, f, seed=3)
    predicted = gp.posterior(torch.tensor(unseen.X)).mean
    assert np.corrcoef(predicted, unseen.loss)[0, 1] > least


@pytest.mark.slow
def test_a_minimum_inside_is_searched_inside() -> None:
    optimizer = Optimizer(SPACE, "linear", seed=0)
    for _ in range(60):
        trial = optimizer.ask()
        optimizer.tell(trial, float(bowl(SPACE.encode(trial.config))))
    assert optimizer.best is not None
    assert optimizer.best.value < 0.9 * bowl(np.full(DIM, 0.5))  # the first trial
    inside = np.abs(SPACE.encode(optimizer.best.config) - 0.5) < 0.49
    assert inside.mean() > 0.9  # a plane has its minimum in a corner


def test_categories_are_refused() -> None:
    with pytest.raises(SpaceError, match="'linear' adds up numbers"):
        Linear(Space({"a": Float(0, 1), "b": Categorical(["x", "y"])}))
