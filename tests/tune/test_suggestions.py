"""Suggestions depend on the calls and their results, not on the time that computing takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo import Float, Int, Optimizer, Space
from raybo.methods.base import Data, Effort, Proposal
from raybo.runtime.proposals.proposer import Proposals, Search
from raybo.space.design import design_point
from raybo.study.objective import Objective
from raybo.study.trial import State, TrialRecord, decode
from raybo.tune import RayBOSearch
from raybo.tune.suggestions import SOBOL_FIRST, BackgroundProposer, Suggestions
from raybo.tune.trials import Trials

SPACE = Space({"a": Float(0, 1), "b": Float(1e-3, 1, log=True), "n": Int(1, 50)})


def loss(config: dict[str, Any]) -> float:
    return (config["a"] - 0.3) ** 2 + config["b"] + abs(config["n"] - 20) / 50


class FakeComputer:
    """Answers with the trials known when it started, after as many polls as `delays` says."""

    knows_next = False
    waits: float | None = None  # how long Tune's loop would have waited for the last answer

    def __init__(self, trials: Trials, delays: Iterator[int]) -> None:
        self._trials = trials
        self._delays = delays

    def changed(self, number: int) -> None:
        pass

    def dropped(self, number: int) -> None:
        pass

    def fill(self, number: int) -> None:
        raise AssertionError("only where the first suggestions are known")

    def compute(self, number: int, effort: Effort) -> None:
        trials = self._trials.by_number.values()
        memo = {
            "finished": [t.number for t in trials if t.state is not State.PENDING],
            "pending": [t.number for t in trials if t.state is State.PENDING],
            "effort": effort.name,
        }
        config = SPACE.draw(np.random.default_rng(number))
        self._answer = Proposals([TrialRecord(number, SPACE.to_json(config), memo=memo)], 0.0)
        self._left = next(self._delays)

    def poll(self, seconds: float | None) -> Proposals | None:
        self._left -= 1
        self.waits = seconds
        return self._answer if seconds is None or self._left < 0 else None


class Tune:
    """Asks for trials and completes them, as Tune does through a searcher."""

    def __init__(self, computer: Callable[[Trials], Any]) -> None:
        self.trials = Trials()
        self.computer = computer(self.trials)
        self.suggestions = Suggestions(self.computer, self.trials)

    def ask_once(self, trial_id: str) -> TrialRecord | None:
        record = self.suggestions.ask()
        if record is not None:
            self.trials.add(decode(record, SPACE), trial_id)
            self.suggestions.changed(record.number)
            self.suggestions.prepare()
        return record

    def ask(self, trial_id: str) -> TrialRecord:
        return next(r for _ in range(1000) if (r := self.ask_once(trial_id)) is not None)

    def complete(self, trial_id: str, seconds: float) -> None:
        result = {"loss": 1.0, "time_total_s": seconds}
        trial = self.trials.complete(trial_id, result, False, Objective(metric="loss"))
        assert trial is not None
        self.suggestions.changed(trial.number)


def tune(*delays: int) -> Tune:
    cycle = itertools.cycle(delays or [0])
    return Tune(lambda trials: FakeComputer(trials, cycle))


def searcher(**options: Any) -> RayBOSearch:
    return RayBOSearch(SPACE, "loss", "min", **options)


def test_a_suggestion_for_long_trials_has_seen_all_results_before_the_question() -> None:
    run = tune()
    for i in range(3):
        run.ask(f"t{i}")
    run.complete("t1", 60.0)
    assert run.ask("t3").memo == {"finished": [1], "pending": [0, 2], "effort": "full"}
    run.complete("t0", 60.0)
    run.complete("t2", 60.0)
    assert run.ask("t4").memo == {"finished": [0, 1, 2], "pending": [3], "effort": "full"}


def test_results_after_the_first_question_do_not_change_the_answer() -> None:
    run = tune(0, 0, 2)
    run.ask("t0")
    run.ask("t1")
    assert run.ask_once("x") is None
    run.complete("t0", 60.0)
    assert run.ask_once("y") is None
    answer = run.ask_once("z")
    assert answer is not None
    assert answer.memo == {"finished": [], "pending": [0, 1], "effort": "full"}


def test_a_suggestion_for_short_trials_is_started_early_and_lacks_the_last_result() -> None:
    run = tune()
    for i in range(4):
        run.ask(f"t{i}")
    for i in range(4, 9):
        run.complete(f"t{i - 4}", 0.3)
        answer = run.ask(f"t{i}")
    assert answer.memo == {
        "finished": [0, 1, 2, 3],
        "pending": [4, 5, 6, 7],
        "effort": "reduced",
    }


def test_a_suggestion_for_short_trials_that_lacks_too_much_is_started_again() -> None:
    run = tune()
    for i in range(4):
        run.ask(f"t{i}")
    run.complete("t0", 0.3)
    run.ask("t4")
    for i in (1, 2, 3, 4):
        run.complete(f"t{i}", 0.3)
    assert run.ask("t5").memo["finished"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("seconds", "waits"), [(0.3, 10.0), (60.0, 0.05)])
def test_tune_waits_for_a_slow_suggestion_while_trials_are_short(
    seconds: float, waits: float
) -> None:
    """Of two actors that have no next trial Tune keeps one, and may never start another."""
    run = tune()
    run.ask("t0")
    run.ask("t1")
    run.complete("t0", seconds)
    run.ask("t2")
    assert run.computer.waits == waits


def test_with_one_short_trial_at_a_time_a_suggestion_has_seen_every_result() -> None:
    run = tune()
    for i in range(5):
        assert run.ask(f"t{i}").memo["finished"] == list(range(i))
        run.complete(f"t{i}", 0.3)


@given(
    calls=st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=5, max_size=40),
    delays=st.lists(st.integers(0, 3), min_size=1),
    seconds=st.sampled_from([0.3, 60.0]),
)
def test_delays_of_the_computation_change_no_suggestion(
    calls: list[int | None], delays: list[int], seconds: float
) -> None:
    """None: Tune asks for a trial; k: the k-th live trial completes."""

    def suggestions(run: Tune) -> list[TrialRecord]:
        live, seen = [], []
        for i, call in enumerate(calls):
            if call is None:
                seen.append(run.ask(f"t{i}"))
                live.append(f"t{i}")
            elif live:
                run.complete(live.pop(call % len(live)), seconds)
        return seen

    assert suggestions(tune(*delays)) == suggestions(tune())


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
        assert config == SPACE.decode(design_point(SPACE, i, 2))
        search.on_trial_complete(f"t{i}", {"loss": 1.0})
    assert "since the method failed: ZeroDivisionError('trial 2')" in caplog.text


class Counting(BackgroundProposer):
    """Notes the suggestions that the method computes."""

    computed: tuple[int, ...] = ()

    def compute(self, number: int, effort: Effort) -> None:
        self.computed = (*self.computed, number)
        super().compute(number, effort)


@pytest.mark.parametrize("method", SOBOL_FIRST)
def test_first_suggestions_are_those_of_the_method_and_do_not_wait_for_it(method: str) -> None:
    tune = Tune(lambda trials: Counting(Search(SPACE, method, Objective(), 3), trials))
    optimizer = Optimizer(SPACE, seed=3, method=method)
    for i in range(5):  # the design of three columns
        assert tune.ask(f"t{i}").config == SPACE.to_json(optimizer.ask().config)
    assert tune.computer.computed == ()
    for i in range(2):
        tune.complete(f"t{i}", 60.0)
        optimizer.tell(i, 1.0)
    assert tune.ask("t5").config == SPACE.to_json(optimizer.ask().config)
    assert tune.computer.computed == (5,)


@pytest.mark.parametrize(("seconds", "live"), [(0.1, 4), (0.5, 1), (30.0, 2)])
def test_no_more_points_fill_the_space_than_the_initial_design_has(
    seconds: float, live: int
) -> None:
    search = searcher(seed=1)
    filled = []
    for i in range(14):
        config = search.suggest(f"t{i}")
        filled.append(config == SPACE.decode(design_point(SPACE, i, 1)))
        if i >= live - 1:
            done = i - live + 1
            search.on_trial_complete(f"t{done}", {"loss": float(i), "time_total_s": seconds})
    assert filled == [True] * 5 + [False] * 9


@pytest.mark.parametrize(
    ("space", "options", "known"),
    [
        (SPACE, {}, True),
        (SPACE, {"n_init": 3}, False),  # they may be wrong
        (Space({"n": Int(1, 50)}), {}, False),  # points may have been tried
    ],
)
def test_first_suggestions_are_known_unless_only_the_method_can_tell(
    space: Space, options: dict[str, Any], known: bool
) -> None:
    search = Search(space, "bo", Objective(), 0, options)
    assert BackgroundProposer(search, Trials()).knows_next is known
