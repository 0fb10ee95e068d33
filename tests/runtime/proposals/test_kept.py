"""Proposers that serve one study after another."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray import exceptions

import raybo
from raybo.methods.base import Data, Proposal
from raybo.methods.registry import METHODS, build_method
from raybo.runtime.proposals import kept as kept_proposers
from raybo.runtime.proposals.kept import Kept, is_plain, kept
from raybo.runtime.proposals.proposer import Call, Search
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.objective import Objective

SPACE = Space({"x": Float(0, 1), "n": Int(1, 9)})


@dataclass(frozen=True)
class Own:
    """A method of the user, or a value of a parameter."""

    lanes = 1

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        return Proposal(x=rng.random(1), memo={})


def search(space: Any = SPACE, method: Any = "random", **options: Any) -> Search:
    return Search(space, build_method(method, space, options), Objective(), 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_search_with_a_method_of_raybo_is_plain(method: str) -> None:
    assert is_plain(search(method=method))


@pytest.mark.parametrize(
    "space",
    [
        raybo.Box(10**9),
        Space({"a": Int(0, 9), "b": Float(1, 9, log=True)}, where="a <= b"),
        Space({"a": Int(0, 9)}, where=[{"a": 1}, {"a": 5}]),
        Space(
            {"net": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}), "c": Categorical(["a", "b"])}
        ),
    ],
    ids=["box", "where", "listed", "tree"],
)
def test_a_space_without_code_of_the_user_is_plain(space: Any) -> None:
    assert is_plain(search(space))


def is_even(config: dict[str, Any]) -> bool:
    return bool(config["n"] % 2 == 0)


@pytest.mark.parametrize(
    "mine",
    [
        search(method=Own()),
        search(Space({"n": Int(1, 9)}, where=is_even)),
        search(Space({"n": Int(1, 9)}, where=lambda config: bool(config["n"] > 1))),
        search(Space({"n": Categorical([Own(), None])})),
        Search(SPACE, "random", Objective(), 0, snap=lambda config: config),
    ],
    ids=["method", "function", "lambda", "value", "snap"],
)
def test_a_search_with_code_of_the_user_is_not_plain(mine: Search) -> None:
    assert not is_plain(mine)


@pytest.fixture
def own(ray_cluster: None) -> Iterator[Kept]:
    """Return proposers that no other test uses."""
    mine = Kept()
    yield mine
    mine.clear()


def pid_of(proposer: Any) -> int:
    """Return the process of a proposer; its method tells."""

    class Tells(Own):
        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            return Proposal(x=rng.random(2), memo={"pid": os.getpid()})

    proposer.begin.remote(Search(SPACE, Tells(), Objective(), 0))
    (trial,) = ray.get(proposer.propose.remote(Call([], [], [0]))).trials
    return int(trial.memo["pid"])


@pytest.mark.ray
def test_a_proposer_that_was_given_back_is_taken_again(own: Kept) -> None:
    first = own.take(1)
    pid = pid_of(first[0].actor)
    own.give_back(first)
    second = own.take(2)
    assert pid in [pid_of(proposer.actor) for proposer in second]
    own.give_back(second)


@pytest.mark.ray
def test_a_proposer_that_still_computes_is_ended(
    own: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Own):
        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            time.sleep(600)
            raise AssertionError

    monkeypatch.setattr(kept_proposers, "REST_SECONDS", 0.1)
    busy = own.take(1)
    pid_of(busy[0].actor)  # it has started
    busy[0].actor.begin.remote(Search(SPACE, Slow(), Objective(), 0))
    answer = busy[0].actor.propose.remote(Call([], [], [0]))
    own.give_back(busy)
    with pytest.raises(exceptions.RayActorError):
        ray.get(answer, timeout=60)
    (new,) = own.take(1)
    assert new.actor is not busy[0].actor
    own.give_back([new])


@pytest.mark.ray
def test_a_proposer_that_nobody_uses_is_ended(own: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_proposers, "KEEP_SECONDS", 0.01)
    (proposer,) = own.take(1)
    pid = pid_of(proposer.actor)
    own.give_back([proposer])
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.ray
def test_proposers_of_another_cluster_are_forgotten(
    own: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = own.take(1)
    own.give_back(old)
    with monkeypatch.context() as patch:
        patch.setattr(kept_proposers, "_cluster", lambda: ("another", "01"))
        patch.setattr(kept_proposers, "start_proposer", lambda spread: old[0].actor)
        (new,) = own.take(1)
        assert new is not old[0]
    ray.kill(old[0].actor)


@pytest.mark.ray
def test_a_second_study_has_the_trials_of_the_first_also_when_its_proposer_has_died(
    tmp_path: Path,
    pid_of_actor: Callable[[str], int | None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run(name: str) -> tuple[list[Any], int | None]:
        result = raybo.optimize(
            lambda config: (config["x"] - 0.3) ** 2,
            SPACE,
            method="bo",
            method_options={"n_init": 3},
            max_trials=6,
            workers=1,
            storage=tmp_path,
            name=name,
            progress=False,
        )
        return [(trial.config, trial.value) for trial in result.trials], pid_of_actor(
            "ProposerActor"
        )

    first, pid = run("first")
    second, again = run("second")
    assert pid is not None
    assert again == pid
    os.kill(pid, signal.SIGKILL)
    with caplog.at_level(logging.WARNING):
        third, new = run("third")
    assert new != pid
    assert first == second == third
    assert "was lost" not in caplog.text


@pytest.mark.ray
def test_the_users_own_method_has_a_new_process_for_each_study(
    tmp_path: Path, pid_of_actor: Callable[[str], int | None]
) -> None:
    kept.clear()
    space = Space({"x": Float(0, 1)})
    raybo.optimize(
        lambda config: config["x"],
        space,
        method=Own(),
        max_trials=2,
        storage=tmp_path,
        progress=False,
    )
    deadline = time.monotonic() + 60
    while pid_of_actor("ProposerActor") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
