"""Proposers that serve one study after another."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
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
from raybo.runtime.proposals import kept as module
from raybo.runtime.proposals.kept import is_plain, kept
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


def pid_of(proposer: Any) -> int:
    """Return the process of a proposer; its method tells."""

    class Tells(Own):
        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            return Proposal(x=rng.random(2), memo={"pid": os.getpid()})

    proposer.begin.remote(Search(SPACE, Tells(), Objective(), 0))
    (trial,) = ray.get(proposer.propose.remote(Call([], [], [0]))).trials
    return int(trial.memo["pid"])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_a_proposer_that_was_given_back_is_taken_again_while_the_cluster_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = kept.take(1)
    pid = pid_of(first[0].actor)
    kept.give_back(first)
    second = kept.take(2)
    assert pid in [pid_of(proposer.actor) for proposer in second]
    kept.give_back(second)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_cluster", lambda: ("another", "01"))
        patch.setattr(module, "start_proposer", lambda spread: second[0].actor)
        (new,) = kept.take(1)
    assert new not in second
    for proposer in second:  # handles of an old cluster are only forgotten
        ray.kill(proposer.actor)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_a_proposer_that_still_computes_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Own):
        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            time.sleep(600)
            raise AssertionError

    monkeypatch.setattr(module, "REST_SECONDS", 0.1)
    busy = kept.take(1)
    pid_of(busy[0].actor)  # it has started
    busy[0].actor.begin.remote(Search(SPACE, Slow(), Objective(), 0))
    answer = busy[0].actor.propose.remote(Call([], [], [0]))
    kept.give_back(busy)
    with pytest.raises(exceptions.RayActorError):
        ray.get(answer, timeout=60)
    (new,) = kept.take(1)
    assert new is not busy[0]
    kept.give_back([new])


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_a_proposer_that_nobody_uses_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_SECONDS", 0.01)
    (proposer,) = kept.take(1)
    pid = pid_of(proposer.actor)
    kept.give_back([proposer])
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def run(folder: Path, name: str, **options: Any) -> list[Any]:
    """Run a study and return its configs."""
    result = raybo.optimize(
        lambda config: (config["x"] - 0.3) ** 2,
        options.pop("space", SPACE),
        workers=1,
        storage=folder,
        name=name,
        progress=False,
        **options,
    )
    return [trial.config for trial in result.trials]


@pytest.mark.ray
def test_the_users_own_method_has_a_new_process_for_each_study(
    tmp_path: Path, pid_of_actor: Callable[[str], int | None]
) -> None:
    run(tmp_path, "own", space=Space({"x": Float(0, 1)}), method=Own(), max_trials=2)
    wait_until(lambda: pid_of_actor("ProposerActor") is None)


@pytest.mark.ray
def test_a_second_study_in_the_same_process_has_the_trials_of_the_first(
    tmp_path: Path, pid_of_actor: Callable[[str], int | None], caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {"method": "bo", "method_options": {"n_init": 3}, "max_trials": 6}
    first = run(tmp_path, "first", **options)
    pid = pid_of_actor("ProposerActor")
    assert pid is not None
    assert run(tmp_path, "second", **options) == first
    assert pid_of_actor("ProposerActor") == pid
    os.kill(pid, signal.SIGKILL)  # while no study uses it
    with caplog.at_level(logging.WARNING):
        assert len(run(tmp_path, "third", method="random", max_trials=3)) == 3
    assert "was lost" not in caplog.text
