from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.errors import SpaceExhausted, StudyError, SurrogateError
from raybo.methods.base import EFFORTS, FULL, Data, Effort, Proposal
from raybo.methods.random_search import RandomSearch, Sobol
from raybo.methods.registry import build_method
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.study import Study
from raybo.study.trial import State, Trial

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})


class Spy:
    """A method that keeps what it was shown."""

    def __init__(self, space: Space, lanes: int = 1) -> None:
        self.space, self.lanes = space, lanes
        self.seen: list[Data] = []

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        self.seen.append(data)
        return Proposal(x=rng.random(self.space.dim), memo={"number": data.number})


def test_failures_that_say_nothing_are_left_out_and_their_points_free() -> None:
    spy = Spy(SPACE)
    study = Study(SPACE, spy)
    for cause in ("lost", "timeout"):
        study.fail(study.ask().number, "gone", cause)
    study.ask()
    np.testing.assert_array_equal(spy.seen[-1].failed, [SPACE.encode(study.trials[1].config)])
    few = Study(Space({"n": Int(1, 2)}), RandomSearch(Space({"n": Int(1, 2)})))
    for _ in range(6):
        few.fail(few.ask().number, "gone", "lost")  # never exhausted
    with pytest.raises(StudyError, match="cause must be one of"):
        few.fail(few.ask().number, "gone", "banana")


def test_a_method_sees_told_failed_and_pending_trials_in_order() -> None:
    spy = Spy(SPACE)
    study = Study(SPACE, spy, Objective("max"))
    for _ in range(5):
        study.ask()
    study.tell(3, 7.0)
    study.tell(1, 2.0)
    study.fail(2, "lost")
    study.ask()
    data = spy.seen[-1]
    np.testing.assert_array_equal(data.loss, [-2.0, -7.0])
    np.testing.assert_array_equal(data.failed, [SPACE.encode(study.trials[2].config)])
    assert [m["number"] for m in data.memos] == [1, 3]
    assert [m["number"] for m in data.failed_memos] == [2]
    assert [m["number"] for m in data.pending_memos] == [0, 4]
    assert (data.number, data.n_told, data.n_rows) == (5, 2, 5)
    np.testing.assert_allclose(data.X[1], SPACE.encode(study.trials[3].config))


def test_a_method_that_reads_no_data_is_given_none() -> None:
    spy = Spy(SPACE)
    spy.reads_data = RandomSearch.reads_data and Sobol.reads_data  # type: ignore[attr-defined]
    study = Study(SPACE, spy)
    study.tell(study.ask().number, 1.0)
    study.ask()
    assert study.ask().number == 2
    assert [data.n_rows for data in spy.seen] == [0, 0, 0]


def test_lanes_do_not_see_each_other() -> None:
    spy = Spy(SPACE, lanes=3)
    study = Study(SPACE, spy)
    for _ in range(7):
        trial = study.ask()
        study.tell(trial.number, float(trial.number))
    study.ask()  # number 7, of the lane of 1 and 4
    np.testing.assert_array_equal(spy.seen[-1].loss, [1.0, 4.0])


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(["ask", "tell", "fail"]), st.integers(0, 30)), max_size=60)
)
def test_ask_and_tell_in_any_order_keep_each_trial_once(moves: list) -> None:
    study = Study(SPACE, RandomSearch(SPACE))
    ended: dict[int, State] = {}
    for move, number in moves:
        if move == "ask":
            assert study.ask().number == len(study.trials) - 1
        elif number in study.trials and number not in ended:
            trial = study.tell(number, 1.0) if move == "tell" else study.fail(number, "no")
            ended[number] = trial.state
        else:
            with pytest.raises(StudyError):
                study.tell(number, 1.0)
    assert {n: t.state for n, t in study.trials.items() if n in ended} == ended


def test_telling_twice_or_an_unknown_trial_says_so() -> None:
    study = Study(SPACE, RandomSearch(SPACE))
    study.tell(study.ask().number, 0.31)
    with pytest.raises(
        StudyError, match=r"trial 0 was already told \(value 0.31\); a trial is told"
    ):
        study.tell(0, 0.5)
    with pytest.raises(StudyError, match="trial 17 does not exist"):
        study.tell(17, 0.5)
    with pytest.raises(StudyError, match="trial 0 was asked before"):
        study.ask(0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_a_value_that_is_not_finite_is_a_failure(value: float) -> None:
    study = Study(SPACE, RandomSearch(SPACE))
    trial = study.tell(study.ask().number, value)
    assert trial.state is State.FAILED
    assert trial.value is None
    assert "not a finite number" in str(trial.reason)


@pytest.mark.parametrize("value", [None, "0.3", [1.0], np.array([1.0, 2.0]), 10**400, True, 1j])
def test_what_is_no_number_is_refused_and_the_trial_stays_pending(value: object) -> None:
    study = Study(SPACE, RandomSearch(SPACE))
    trial = study.ask()
    with pytest.raises(StudyError, match="trial 0: the value is"):
        study.tell(0, value)
    assert trial.state is State.PENDING
    study.tell(0, np.float32(1.5))
    assert trial.value == 1.5


def test_best_follows_the_mode() -> None:
    for mode, best in (("min", 1), ("max", 2)):
        study = Study(SPACE, RandomSearch(SPACE), Objective(mode))
        assert study.best is None
        for value in (0.0, -3.0, 5.0):
            study.tell(study.ask().number, value)
        assert study.best is not None
        assert study.best.number == best


def test_a_duplicate_is_replaced_by_a_fresh_point() -> None:
    class Stubborn:
        lanes = 1

        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            return Proposal(x=np.array([0.5, 0.5]))

    study = Study(SPACE, Stubborn())
    configs = [tuple(study.ask().config.values()) for _ in range(10)]
    assert len(set(configs)) == 10


def test_a_method_learns_that_its_point_was_replaced() -> None:
    space = Space({"c": Categorical(["a", "b"])})
    spy = Spy(space)
    spy.propose = lambda data, rng: Proposal(x=np.array([0.25]), memo={"number": data.number})
    study = Study(space, spy)
    first, second = study.ask(), study.ask()
    assert (first.config["c"], second.config["c"]) == ("a", "b")
    assert "replaced" not in first.memo
    assert second.memo == {"number": 1, "replaced": True}


def test_a_finite_space_is_tried_completely_and_then_exhausted() -> None:
    space = Space({"n": Int(0, 3), "k": Categorical(["a", "b", "c"])})
    for method in (RandomSearch(space), Sobol(space)):
        study = Study(space, method)
        for _ in range(12):
            trial = study.ask()
            study.tell(trial.number, 1.0)
        assert len({tuple(t.config.values()) for t in study.trials.values()}) == 12
        with pytest.raises(SpaceExhausted, match="all 12 points of the space have been tried"):
            study.ask()


def test_a_model_that_fails_gives_a_random_point_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        lanes = 1

        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            raise SurrogateError("3 rows: no Cholesky factor")

    trial = Study(SPACE, Broken()).ask()
    SPACE.encode(trial.config)
    assert "trial 0 is a random point, since the model failed: 3 rows" in caplog.text


def test_a_long_fit_of_many_trials_is_spoken_of_while_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raybo.study.study._MANY_TRIALS", 2)
    monkeypatch.setattr("raybo.study.study._SLOW_SECONDS", 0.0)

    class Slow(Spy):
        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            if data.n_rows >= 2:
                for _ in range(500):
                    if caplog.records:
                        break
                    time.sleep(0.01)
            return super().propose(data, rng)

    study = Study(SPACE, Slow(SPACE))
    for _ in range(3):
        study.ask()
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "trial 2: still fitting a model of 2 trials"
    ]


def test_numbers_that_lie_far_apart_take_no_room() -> None:
    space = Space({"x": Float(0, 1)})
    study = Study(space, build_method("bo", space), seed=0)
    for number in (0, 10**12, 10**30):
        study.add(Trial(number, {"x": number % 7 / 10}, 1.0, State.DONE))
    assert study.data(1).X[:, 0].tolist() == [0.0, 10**12 % 7 / 10, 10**30 % 7 / 10]
    study.ask(5)
    study.drop(5)
    assert study.ask(5).number == 5
    assert len(study.data(6).pending) == 1


def test_trials_added_late_keep_the_order_of_their_numbers() -> None:
    study = Study(SPACE, RandomSearch(SPACE))
    for number in (4, 0, 2):
        study.add(Trial(number, {"x": number / 10, "y": 0.0}))
    assert list(study.trials) == [0, 2, 4]
    assert study.next_number == 5
    with pytest.raises(StudyError, match="trial 2 is in the study already"):
        study.add(Trial(2, {"x": 0.9, "y": 0.9}))


@pytest.mark.parametrize("effort", EFFORTS, ids=lambda e: e.name)
def test_what_a_study_remembers_changes_no_proposal(effort: Effort) -> None:
    """The model is kept between asks; a study without it proposes the same points."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    kept = Study(space, build_method("bo", space), seed=3)
    for number in range(12):
        kept.ask()
        if number % 3:
            kept.tell(number, float(number % 5))
    for _ in range(4):
        fresh = Study(space, build_method("bo", space), seed=3)
        for trial in kept.trials.values():
            fresh.add(replace(trial))
        expected = fresh.ask(effort=effort)
        found = kept.ask(effort=effort)
        tolerance = 0.0 if effort is FULL else 1e-6  # else factors are extended row by row
        for name in ("x", "y"):
            assert abs(found.config[name] - expected.config[name]) <= tolerance
        assert found.memo == expected.memo


@dataclass(frozen=True)
class Stubborn:
    """Proposes one row, whatever the data."""

    row: tuple[float, ...]
    lanes = 1

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        return Proposal(x=np.array(self.row), memo={"mine": 1})


def test_a_proposal_that_is_not_allowed_is_moved_and_the_next_ones_differ() -> None:
    space = Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a + b <= 1")
    study = Study(space, Stubborn((0.9, 0.9)))
    trials = [study.ask() for _ in range(4)]
    assert all(space.allows(trial.config) for trial in trials)
    assert trials[0].config["a"] + trials[0].config["b"] > 0.999
    assert trials[0].memo == {"mine": 1, "replaced": True}
    assert len({str(trial.config) for trial in trials}) == 4


def test_a_space_is_exhausted_when_all_that_is_allowed_was_tried() -> None:
    space = Space({"a": Int(0, 3), "b": Int(0, 3)}, where="a + b == 3")
    study = Study(space, Stubborn((0.1, 0.1)))
    assert {study.ask().config["a"] for _ in range(4)} == {0, 1, 2, 3}
    with pytest.raises(SpaceExhausted, match="all 4 points of the space have been tried"):
        study.ask()


def test_a_space_too_large_to_count_is_exhausted_when_nothing_new_is_found() -> None:
    space = Space({"a": Int(0, 109), "b": Int(0, 109)}, where="a + b <= 1")
    study = Study(space, Stubborn((0.0, 0.0)))
    assert len({str(study.ask().config) for _ in range(3)}) == 3
    with pytest.raises(SpaceExhausted, match="all points found have been tried"):
        study.ask()
