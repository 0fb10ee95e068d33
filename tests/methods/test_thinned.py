"""With little effort a model is made of some of very many results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raybo.methods.base import FULL, LEAST, Data
from raybo.methods.registry import build_method
from raybo.space.box import Box
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.study import Study
from raybo.study.trial import State, Trial
from tests.helpers.data import data_of

FEW = replace(LEAST, max_rows=40)


def told(n: int, n_bounds: int = 0) -> Data:
    rng = np.random.default_rng(1)
    memos = [{"i": i, **({"fitted": 90, "theta": {}} if i == 7 else {})} for i in range(n)]
    excess = rng.random((n, n_bounds)) - 0.5 if n_bounds else np.empty((0, 0))
    return replace(data_of(Box(2), n, rng.random(n), memos=memos), effort=FEW, excess=excess)


@pytest.mark.parametrize("n_bounds", [0, 2])
def test_the_best_are_kept_and_some_others_with_all_that_was_noted(n_bounds: int) -> None:
    data = told(100, n_bounds)
    some = data.thinned()
    assert some.X.shape == (40, 2)
    kept = [memo["i"] for memo in some.memos]
    assert kept == sorted(set(kept))
    best = np.lexsort((data.loss, ~data.feasible))[:20]
    assert set(best.tolist()) <= set(kept)
    assert max(np.diff([-1, *kept, 100])) <= 12  # the others are spread evenly
    assert np.array_equal(some.X, data.X[kept])
    assert np.array_equal(some.loss, data.loss[kept])
    assert np.array_equal(some.feasible, data.feasible[kept])
    assert sorted(memo["i"] for memo in some.all_memos) == list(range(100))
    assert (some.n_told, some.n_rows) == (100, 100)
    assert some.last_fit("theta") == data.memos[7]
    assert some.is_refit_due(60)
    assert not some.is_refit_due(90)


def test_few_results_or_full_effort_leave_the_data_alone() -> None:
    for data in (told(40), replace(told(100), effort=FULL)):
        assert data.thinned() is data


@pytest.mark.parametrize("method", ["auto", "bo", "egp", "addtree", "rembo", "bock", "ridge"])
def test_methods_propose_from_some_of_the_results(method: str) -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    study = Study(space, build_method(method, space))
    for number in range(60):
        trial = study.ask(number) if number < 3 else study.add(Trial(number, draw(space, number)))
        x, y = trial.config["x"], trial.config["y"]
        study.settle(replace(trial, state=State.DONE, value=(x - 0.3) ** 2 + (y - 0.6) ** 2))
    memos = [study.ask(number, FEW).memo for number in range(60, 64)]
    assert not any("replaced" in memo for memo in memos)
    assert study.data(64, FEW).thinned().n_told == 60
    assert sum("fitted" in str(memo) for memo in memos) == 1  # not one for each proposal


def draw(space: Space, number: int) -> dict[str, float]:
    return dict(space.decode(np.random.default_rng(number).random(2)))
