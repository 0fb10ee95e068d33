from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raybo.methods.base import LEAST, Data, Proposal
from raybo.methods.registry import build_method
from raybo.space.box import Box
from raybo.space.parameters import Float, Int
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.optimizer import Optimizer
from raybo.study.restarts import RESTART, has_ended
from raybo.study.study import Study

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})  # a design of four


class Spy:
    """A method that keeps what it was shown."""

    lanes = 1

    def __init__(self, space: Space, restarts: bool = True) -> None:
        self.space, self.restarts = space, restarts
        self.seen: list[Data] = []

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        self.seen.append(data)
        return Proposal(x=rng.random(self.space.dim), memo={"number": data.number})


def data_of(losses: Iterable[float], **changes: Any) -> Data:
    loss = np.array(list(losses), dtype=float)
    X = np.random.default_rng(0).random((len(loss), 2))
    empty: tuple[dict[str, Any], ...] = ()
    data = Data(len(loss), 0, X, loss, ({},) * len(loss), np.empty((0, 2)), empty)
    return replace(data, **changes)


def told(study: Study, values: Iterable[float]) -> None:
    for value in values:
        study.tell(study.ask().number, value)


def test_a_search_has_ended_when_half_of_its_last_results_are_the_best() -> None:
    assert has_ended(data_of([3, 4, 2, 5, 1, 1, 1, 1]), 4)
    assert has_ended(data_of([3, 4, 2, 5, 1, 1 + 1e-6, 1 - 1e-6, 1]), 4)
    assert has_ended(data_of([3, 4, 2, 5, 1, 9, 1, 8, 7, 1, 1]), 4)
    assert not has_ended(data_of([3, 4, 2, 5, 1, 9, 1, 8, 7, 6, 5, 1, 1]), 4)  # three of eight
    assert not has_ended(data_of([3, 4, 2, 5, 1, 1, 1, 1.1]), 4)  # three
    assert not has_ended(data_of([3, 4, 2, 5, 1, 3, 3, 3, 3]), 4)  # alike, and not the best
    assert not has_ended(data_of([1, 1, 1, 1, 1, 1, 1, 1, 1]), 4)  # nothing was gained
    assert has_ended(data_of([3, 4, 1, 5, 1, 1, 1, 1]), 4)  # the design has the minimum
    assert not has_ended(data_of([3e6, 4e6, 2, 5e6, 1.1, 1.1, 1.05, 1]), 4)  # gained: 1, not 1e6
    assert not has_ended(data_of([]), 4)
    assert not has_ended(data_of([1.7e308, -1.7e308, 1.7e308, 0, 1, 2, 3, 4]), 4)


def test_noise_and_results_that_do_not_count_end_no_search() -> None:
    rng = np.random.default_rng(1)
    assert not any(
        has_ended(data_of([3, 4, 2, 5, *rng.normal(1.0, 0.01, n)]), 4) for n in range(4, 200)
    )
    losses = [3, 4, 2, 5, 1, 1, 1, 1]
    expected = np.array([0.0] * 7 + [0.5])  # the last trial has not finished
    assert not has_ended(data_of(losses, spread=expected), 4)
    assert not has_ended(data_of(losses, spread=np.ones(8)), 4)
    beyond = np.array([[0.0]] * 7 + [[1.0]])  # the last one breaks a bound
    assert not has_ended(data_of(losses, excess=beyond), 4)
    assert not has_ended(data_of(losses, excess=np.ones((8, 1))), 4)


def test_the_next_search_knows_its_own_trials_and_where_the_last_one_was() -> None:
    spy = Spy(SPACE)
    study = Study(SPACE, spy)
    told(study, [3, 4, 2, 5, 1, 1, 1])
    late = study.ask()  # still pending when the search ends
    told(study, [1])
    first = study.ask()
    assert (spy.seen[-1].n_rows, spy.seen[-1].first) == (0, first.number)
    assert first.memo == {"number": 9, RESTART: 9}
    study.tell(late.number, 1.0)
    study.tell(first.number, 7.0)
    study.add(replace(study.ask(), number=11, memo={}))  # a point of the user
    study.tell(11, 6.0)
    assert study.ask().memo[RESTART] == 9
    np.testing.assert_array_equal(spy.seen[-1].loss, [7.0, 6.0])
    assert [memo["number"] for memo in spy.seen[-1].pending_memos] == [10]
    assert len(spy.seen[-1].earlier) == 9
    assert study.data(13).n_told == 11  # for whoever asks what is known
    assert study.best is not None
    assert study.best.value == 1.0


def test_points_proposed_together_belong_to_the_search_that_has_begun() -> None:
    spy = Spy(SPACE)
    study = Study(SPACE, spy)
    told(study, [3, 4, 2, 5, 1, 1, 1, 1])
    trials = [t for some in study.ask_many([8, 9, 10], LEAST) for t in some]
    assert [t.memo[RESTART] for t in trials] == [8, 8, 8]
    assert [data.n_rows for data in spy.seen[-3:]] == [0, 1, 2]


@pytest.mark.parametrize("why", ["the method", "two metrics", "a finite space"])
def test_some_studies_are_one_search(why: str) -> None:
    space = Space({"x": Int(0, 99), "y": Int(0, 99)}) if why == "a finite space" else SPACE
    spy = Spy(space, restarts=why != "the method")
    others = {"b": "min"} if why == "two metrics" else {}
    study = Study(space, spy, Objective(others=others))
    for value in [3, 4, 2, 5, 1, 1, 1, 1, 1]:
        study.tell(study.ask().number, value, {"b": value})
    study.ask()
    assert spy.seen[-1].n_told == 9


def test_a_search_comes_to_a_corner_where_another_has_been() -> None:
    study = Study(SPACE, build_method("bo", SPACE))
    for _ in range(60):
        trial = study.ask()
        study.tell(trial.number, float(trial.config["x"] + trial.config["y"]))
        assert not trial.memo.get("replaced")
    assert len({trial.memo.get(RESTART) for trial in study.trials.values()}) > 2


def test_each_lane_has_searches_of_its_own() -> None:
    spy = Spy(SPACE)
    spy.lanes = 2
    study = Study(SPACE, spy)
    same, gains = [3, 4, 2, 5, 1, 1, 1, 1], [9, 8, 7, 6, 5, 4, 3, 2]
    told(study, [value for pair in zip(same, gains, strict=True) for value in pair])
    assert study.ask().memo[RESTART] == 16
    assert spy.seen[-1].n_rows == 0
    assert RESTART not in study.ask().memo
    np.testing.assert_array_equal(spy.seen[-1].loss, gains)


def test_which_methods_restart() -> None:
    for name, space in (("auto", SPACE), ("auto", Box(10**6)), ("bo", SPACE), ("bins", SPACE)):
        assert build_method(name, space).restarts  # type: ignore[attr-defined]
    for name in ("rembo", "random", "egp"):
        assert not getattr(build_method(name, SPACE), "restarts", False)
    assert not getattr(build_method("bo", SPACE, {"preset": "paper"}), "restarts", False)


def test_a_resumed_study_goes_on_in_the_search_that_it_was_in() -> None:
    def value(config: dict[str, Any]) -> float:  # two valleys, the wider one less deep
        far, near = (sum((config[n] - at) ** 2 for n in "xy") for at in (0.2, 0.9))
        return float(min(far, 0.1 + near / 4.0))

    whole = Optimizer(SPACE, method="bo", seed=3)
    parts = Optimizer(SPACE, method="bo", seed=3)
    for i in range(60):
        if i in (25, 45):
            parts = Optimizer.from_state(json.loads(json.dumps(parts.state())))
        for opt in (whole, parts):
            trial = opt.ask()
            opt.tell(trial.number, value(trial.config))
    memos = [[t.memo.get(RESTART) for t in opt.trials] for opt in (whole, parts)]
    assert memos[0] == memos[1]
    assert len(set(memos[0])) > 1
