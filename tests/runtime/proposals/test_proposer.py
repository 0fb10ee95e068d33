"""What a proposer answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from raybo.errors import MethodError, SpaceExhausted
from raybo.methods.base import Data, Proposal
from raybo.runtime.proposals.pacing import LONGEST_CALL
from raybo.runtime.proposals.proposer import Call, Proposer, Search, opening
from raybo.space.design import sobol
from raybo.space.parameters import Float, Int
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.trial import State, TrialRecord

SPACE = Space({"x": Float(0, 1)})
LONG = 1.0  # seconds of a call, so many that a busy machine does not end one early


@dataclass(frozen=True)
class Sleeper:
    """A method that takes its time, and notes how many trials it saw."""

    seconds: Callable[[int], float]  # by the number of the proposal
    space: Space = SPACE

    lanes = 1

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        time.sleep(self.seconds(data.number))
        counts = {
            "done": data.n_told,
            "failed": len(data.failed),
            "pending": len(data.pending_memos),
        }
        return Proposal(x=rng.random(1), memo=counts)


def proposer(seconds: Callable[[int], float] = lambda _: 0.0) -> Proposer:
    return Proposer(Search(SPACE, Sleeper(seconds), Objective(), 0))


def proposed(
    seconds: Callable[[int], float], wanted: int, longest: float = LONGEST_CALL
) -> list[int]:
    answer = proposer(seconds).propose(Call([], [], range(wanted), seconds=longest))
    return [trial.number for trial in answer.trials]


def test_quick_proposals_are_all_made_in_one_call() -> None:
    assert proposed(lambda _: 0.0, 20, math.inf) == list(range(20))


@pytest.fixture
def loaded() -> None:
    """Load what a design needs: the time would count as that of a proposal."""
    sobol(SPACE, 1, 0)


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(("method", "lanes"), [("auto", 1), ("rembo", 3)])
def test_an_opening_has_the_trials_that_proposers_would_propose(method: str, lanes: int) -> None:
    space = Space({f"x{i}": Float(0, 1) for i in range(5)})
    options = {"k": lanes} if lanes > 1 else {}
    search = Search(space, method, Objective(), 7, options)
    points = [{f"x{i}": x for i in range(5)} for x in (0.25, 0.5)]
    made = opening(search, points, 8)
    assert [trial.number for trial in made] == [2, 3, 4, 5, 6, 7]
    for lane in range(lanes):
        known = [TrialRecord(n, points[n]) for n in range(2) if n % lanes == lane]
        numbers = [n for n in range(2, 8) if n % lanes == lane]
        answer = Proposer(search).propose(Call(known, (), numbers, seconds=LONG))
        assert [trial for trial in made if trial.number % lanes == lane] == answer.trials


def test_a_method_of_the_user_proposes_in_its_own_process_alone() -> None:
    assert opening(Search(SPACE, Sleeper(lambda _: 0.0), Objective(), 0), [], 3) == ()


@pytest.mark.usefixtures("loaded")
def test_an_opening_ends_where_the_space_does() -> None:
    search = Search(Space({"x": Int(0, 2)}), "auto", Objective(), 0)
    assert len(opening(search, [{"x": 1}], 6)) == 2


def test_points_of_the_user_that_keep_all_workers_busy_need_no_opening() -> None:
    points = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]
    assert opening(Search(SPACE, "auto", Objective(), 0), points, 2) == ()


def test_a_slow_proposal_does_not_wait_for_the_next() -> None:
    assert proposed(lambda _: 2 * LONGEST_CALL, 5) == [0]


def test_quick_proposals_follow_a_slow_first_one() -> None:
    made = proposer(lambda n: 2 * LONG * (n == 5))
    made.propose(Call([], [], range(5), seconds=LONG))
    answer = made.propose(Call([], [], range(5, 10), seconds=LONG))
    assert [trial.number for trial in answer.trials] == list(range(5, 10))


def test_the_method_sees_updates_and_not_what_was_dropped() -> None:
    made = proposer()
    made.propose(Call([], [], [0, 1, 2], seconds=math.inf))
    done = TrialRecord(0, {"x": 0.5}, value=3.0, state=State.DONE)
    failed = TrialRecord(7, {"x": 0.25}, state=State.FAILED, reason="no")
    [trial] = made.propose(Call([done, failed], [2, 5], [8])).trials
    assert trial.memo == {"done": 1, "failed": 1, "pending": 1}
    again = TrialRecord(7, {"x": 0.25}, value=1.0, state=State.DONE)  # run again, with success
    [trial] = made.propose(Call([again], [8, 0], [8])).trials
    assert trial.memo == {"done": 2, "failed": 0, "pending": 1}


def test_a_method_given_by_name_is_built_by_the_proposer() -> None:
    search = Search(SPACE, "sobol", Objective(), 0, {"bogus": 1})
    error = Proposer(search).propose(Call([], [], [0])).error
    assert isinstance(error, MethodError)
    assert "no option 'bogus'" in str(error)


def test_what_was_proposed_before_the_space_was_exhausted_is_kept() -> None:
    space = Space({"n": Int(1, 3)})
    call = Call([], [], range(5), seconds=math.inf)
    answer = Proposer(Search(space, "random", Objective(), 0)).propose(call)
    assert sorted(trial.config["n"] for trial in answer.trials) == [1, 2, 3]
    assert isinstance(answer.error, SpaceExhausted)
