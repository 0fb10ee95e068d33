"""Suggestions depend on the calls and their results, not on the time that computing takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo import Float, Int, Optimizer, Space
from raybo.methods.base import Data, Proposal
from raybo.space.design import sobol_point
from raybo.tune import RayBOSearch, ahead
from raybo.tune.suggester import Answer, Search
from raybo.tune.worker import SOBOL_FIRST, Worker

SPACE = Space({"a": Float(0, 1), "b": Float(1e-3, 1, log=True), "n": Int(1, 50)})


def loss(config: dict[str, Any]) -> float:
    return (config["a"] - 0.3) ** 2 + config["b"] + abs(config["n"] - 20) / 50


class FakeWorker:
    """Answers with what was known when it began, after as many polls as `delays` says."""

    delays: Callable[[], int] = staticmethod(lambda: 0)

    def __init__(self, search: Search, history: Callable[[], list[dict[str, Any]]]) -> None:
        self._space = search.space
        self._history = history
        self.began: list[int] = []
        self.knows_first = False

    def start(self) -> None:
        pass

    def changed(self, update: dict[str, Any]) -> None:
        pass

    def begin(self, number: int, haste: int) -> None:
        self.began.append(number)
        told = [t["number"] for t in self._history() if t["state"] != "pending"]
        pending = [t["number"] for t in self._history() if t["state"] == "pending"]
        rng = np.random.default_rng([number, haste])
        memo = {"told": told, "pending": pending, "haste": haste}
        self._answer = Answer(self._space.to_json(self._space.draw(rng)), memo)
        self._left = self.delays()

    def poll(self, seconds: float | None) -> Answer | None:
        self._left -= 1
        return self._answer if seconds is None or self._left < 0 else None


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorker]:
    monkeypatch.setattr(ahead, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "delays", staticmethod(lambda: 0))
    return FakeWorker


def searcher(**options: Any) -> RayBOSearch:
    return RayBOSearch(SPACE, "loss", "min", **options)


def memo(search: RayBOSearch, trial_id: str) -> dict[str, Any]:
    return search._book.trials[search._book.numbers[trial_id]].memo


def until_suggested(search: RayBOSearch, trial_id: str) -> Any:
    return next(c for _ in range(1000) if (c := search.suggest(trial_id)) is not None)


@pytest.mark.usefixtures("fake")
def test_long_trials_suggestion_knows_all_that_was_told_before_it_was_asked_for() -> None:
    search = searcher()
    for i in range(3):
        search.suggest(f"t{i}")
    search.on_trial_complete("t1", {"loss": 1.0, "time_total_s": 60.0})
    search.suggest("t3")
    assert memo(search, "t3") == {"told": [1], "pending": [0, 2], "haste": 0}
    search.on_trial_complete("t0", {"loss": 1.0, "time_total_s": 60.0})
    search.on_trial_complete("t2", {"loss": 1.0, "time_total_s": 60.0})
    search.suggest("t4")
    assert memo(search, "t4") == {"told": [0, 1, 2], "pending": [3], "haste": 0}


def test_what_is_told_after_the_first_question_does_not_change_the_answer(
    fake: type[FakeWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searcher()
    search.suggest("t0")
    search.suggest("t1")
    monkeypatch.setattr(fake, "delays", staticmethod(lambda: 2))
    assert search.suggest("x") is None
    search.on_trial_complete("t0", {"loss": 1.0, "time_total_s": 60.0})
    assert search.suggest("y") is None
    assert search.suggest("z") is not None
    assert memo(search, "z") == {"told": [], "pending": [0, 1], "haste": 0}


@pytest.mark.usefixtures("fake")
def test_short_trials_suggestion_is_begun_ahead_and_lacks_the_last_result() -> None:
    search = searcher()
    for i in range(4):
        search.suggest(f"t{i}")
    for i in range(4, 9):
        search.on_trial_complete(f"t{i - 4}", {"loss": 1.0, "time_total_s": 0.3})
        search.suggest(f"t{i}")
    assert memo(search, "t8")["told"] == [0, 1, 2, 3]
    assert memo(search, "t8")["pending"] == [4, 5, 6, 7]
    assert memo(search, "t8")["haste"] == 1


@pytest.mark.usefixtures("fake")
def test_short_trials_suggestion_that_lacks_too_much_is_begun_again() -> None:
    search = searcher()
    for i in range(4):
        search.suggest(f"t{i}")
    search.on_trial_complete("t0", {"loss": 1.0, "time_total_s": 0.3})
    search.suggest("t4")
    for i in (1, 2, 3, 4):
        search.on_trial_complete(f"t{i}", {"loss": 1.0, "time_total_s": 0.3})
    search.suggest("t5")
    assert memo(search, "t5")["told"] == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("fake")
def test_one_short_trial_at_a_time_knows_every_result() -> None:
    search = searcher()
    for i in range(5):
        search.suggest(f"t{i}")
        assert memo(search, f"t{i}")["told"] == list(range(i))
        search.on_trial_complete(f"t{i}", {"loss": 1.0, "time_total_s": 0.3})


@given(
    calls=st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=5, max_size=40),
    delays=st.lists(st.integers(0, 3), min_size=1),
    seconds=st.sampled_from([0.3, 60.0]),
)
def test_delays_of_the_worker_change_no_suggestion(
    calls: list[int | None], delays: list[int], seconds: float
) -> None:
    """None: Tune asks for a trial; k: the k-th live trial completes."""

    def run() -> list[Any]:
        search, live, seen = searcher(), [], []
        for i, call in enumerate(calls):
            if call is None:
                config = until_suggested(search, f"t{i}")
                seen.append((config, memo(search, f"t{i}")))
                live.append(f"t{i}")
            elif live:
                done = live.pop(call % len(live))
                search.on_trial_complete(done, {"loss": float(i), "time_total_s": seconds})
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "Worker", FakeWorker)
        cycle = itertools.cycle(delays)
        patch.setattr(FakeWorker, "delays", staticmethod(lambda: next(cycle)))
        slow = run()
        patch.setattr(FakeWorker, "delays", staticmethod(lambda: 0))
        assert run() == slow


@pytest.mark.parametrize("method", ["bo", "random", "sobol"])
@pytest.mark.parametrize("parallel", [1, 3])
def test_suggestions_are_those_of_the_optimizer(method: str, parallel: int) -> None:
    search, optimizer = searcher(method=method, seed=5), Optimizer(SPACE, method, seed=5)
    ours, theirs = [], []
    for i in range(14):
        ours.append(search.suggest(f"t{i}"))
        theirs.append(optimizer.ask().config)
        if i >= parallel - 1:
            done = i - parallel + 1
            value = loss(theirs[done])
            search.on_trial_complete(f"t{done}", {"loss": value})
            optimizer.tell(done, value)
    assert ours == theirs


class Broken:
    """A method with a fault."""

    space = SPACE
    lanes = 1

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        raise ZeroDivisionError(f"trial {data.number}")


def test_method_that_fails_is_replaced_by_space_filling_points(
    caplog: pytest.LogCaptureFixture,
) -> None:
    search = searcher(method=Broken(), seed=2)
    for i in range(3):
        config = search.suggest(f"t{i}")
        assert config == SPACE.decode(sobol_point(SPACE, i, 2))
        search.on_trial_complete(f"t{i}", {"loss": 1.0})
    assert "since the method failed: ZeroDivisionError('trial 2')" in caplog.text


def test_worker_without_ray_sends_the_history_once() -> None:
    search = Search(SPACE, "random", {}, "min", 0)
    sent = []
    worker = Worker(search, lambda: sent.append(1) or [])  # type: ignore[func-returns-value]
    for number in range(3):
        worker.begin(number, 0)
        assert worker.poll(None) is not None
    assert sent == [1]


@pytest.mark.parametrize("method", SOBOL_FIRST)
def test_first_suggestions_are_those_of_the_method_and_need_no_process(method: str) -> None:
    search, study = searcher(seed=3, method=method), Optimizer(SPACE, seed=3, method=method)
    for i in range(3):
        assert search.suggest(f"t{i}") == study.ask().config
    assert search._ahead is not None
    assert search._ahead._worker._inline is None  # the method was not even built
    search.on_trial_complete("t0", {"loss": 1.0})
    search.on_trial_complete("t1", {"loss": 2.0})
    study.tell(0, 1.0)
    study.tell(1, 2.0)
    assert search.suggest("t3") == study.ask().config
    assert search._ahead._worker._inline is not None


@pytest.mark.parametrize(("seconds", "filling"), [(0.1, 20), (0.5, 12), (30.0, 3)])
def test_very_short_trials_fill_the_space_while_the_process_starts(
    seconds: float, filling: int
) -> None:
    search = searcher(seed=1)
    filled = []
    search.suggest("t0")
    for i in range(1, 25):  # two trials at a time
        config = search.suggest(f"t{i}")
        filled.append(config == SPACE.decode(sobol_point(SPACE, i, 1)))
        search.on_trial_complete(f"t{i - 1}", {"loss": float(i), "time_total_s": seconds})
    assert all(filled[: filling - 1])
    assert not any(filled[max(filling, 7) :])  # the method's own design is of 5


@pytest.mark.parametrize(
    ("space", "options"), [({"n": Int(1, 50)}, {}), (SPACE, {"n_init": 3}), ({"n": Int(1, 2)}, {})]
)
def test_method_is_asked_first_where_options_or_repeats_are_its_business(
    space: Any, options: dict[str, Any]
) -> None:
    search = RayBOSearch(
        Space(space) if isinstance(space, dict) else space, "loss", "min", method_options=options
    )
    search.suggest("t0")
    assert search._ahead is not None
    assert search._ahead._worker._inline is not None
