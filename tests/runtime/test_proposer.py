"""How many proposals one call makes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.methods.base import Data, Proposal
from raybo.runtime.proposals.pacing import LONGEST_CALL
from raybo.runtime.proposals.proposer import Proposer, Search
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.objective import Objective

SPACE = Space({"x": Float(0, 1)})


@dataclass(frozen=True)
class Sleeper:
    """A method that takes its time."""

    seconds: Callable[[int], float]  # by the number of the proposal
    space: Space = SPACE

    lanes = 1

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        time.sleep(self.seconds(data.number))
        return Proposal(x=rng.random(1))


def proposed(seconds: Callable[[int], float], wanted: int) -> list[int]:
    proposer = Proposer(Search(SPACE, Sleeper(seconds), Objective("min", "loss"), 0))
    answer = proposer.propose([], [], range(wanted))
    return [number for number, _, _ in answer["items"]]


def test_quick_proposals_are_all_made_in_one_call() -> None:
    assert proposed(lambda _: 0.0, 20) == list(range(20))


def test_a_slow_proposal_does_not_wait_for_the_next() -> None:
    assert proposed(lambda _: 2 * LONGEST_CALL, 5) == [0]


def test_a_slow_first_proposal_is_followed_by_quick_ones_when_they_are_known_to_be_quick() -> None:
    proposer = Proposer(
        Search(SPACE, Sleeper(lambda n: 2 * LONGEST_CALL * (n == 5)), Objective("min", "loss"), 0)
    )
    proposer.propose([], [], range(5))
    answer = proposer.propose([], [], range(5, 10))
    assert [number for number, _, _ in answer["items"]] == list(range(5, 10))
