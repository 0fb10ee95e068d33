"""The decisions of a coordinator, on a backend without Ray."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybo.errors import JournalError, StudyFailed
from raybo.methods.base import FULL, Data, Effort, Proposal
from raybo.methods.random_search import RandomSearch
from raybo.runtime.backend import ProposerFailed, ProposerLost
from raybo.runtime.coordinator import Command, Coordinator, News
from raybo.runtime.evaluations.evaluate import Evaluation
from raybo.runtime.evaluations.failures import Failure, failure_of_metric, failure_of_result
from raybo.runtime.proposals.proposer import Call, Proposals, Proposer, Search
from raybo.runtime.session import Session, Settings
from raybo.runtime.writer import JournalWriter
from raybo.space.parameters import Float, Int
from raybo.space.space import Space
from raybo.study.journal.journal import Journal, read_journal
from raybo.study.journal.record import Record
from raybo.study.journal.storage import FolderStore, Store
from raybo.study.objective import Objective
from raybo.study.outcome import Stop
from raybo.study.trial import Batch, Checkpoint, State, TrialRecord
from raybo.views.progress import Progress

SPACE = Space({"x": Float(0, 1)})
SETTINGS = Settings(
    max_trials=10,
    max_seconds=None,
    target=None,
    workers=3,
    resources={"num_cpus": 1},
    timeout=None,
    retries=1,
)
CRASH = Failure("crash", "worker process died", "crash")

Evaluate = Callable[[float], Any]


class Lanes:
    """RandomSearch in several lanes; a memo notes how many trials the proposal has seen."""

    def __init__(self, space: Space, lanes: int) -> None:
        self.lanes = lanes
        self._random = RandomSearch(space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        memo = {"results": data.n_told, "trials": data.n_rows}
        return replace(self._random.propose(data, rng), memo=memo)


class FakeBackend:
    """Proposes and evaluates in this process; `evaluate` may return a value, a Failure or None.

    None means that the evaluation never ends.
    """

    def __init__(
        self, evaluate: Evaluate, space: Space = SPACE, lanes: int = 1, seconds: float = 0.001
    ) -> None:
        self.search = Search(space, Lanes(space, lanes), Objective(), 0)
        self.proposers: dict[int, Proposer] = {}
        self.evaluate = evaluate
        self.seconds = seconds  # of an evaluation
        self.cancelled: list[str] = []
        self.calls: list[tuple[int, list[int]]] = []
        self.active = 0  # evaluations that run
        self.most_active = 0
        self.node = "node-a"
        self.dead: set[str] = set()
        self.losses = 0  # proposers to lose
        self.begins: list[Any] = []  # checkpoints from which evaluations started
        self.coordinator: Coordinator | None = None

    async def propose(self, lane: int, call: Call) -> Proposals:
        self.calls.append((lane, list(call.numbers)))
        await asyncio.sleep(0)
        if self.losses:
            self.losses -= 1
            self.proposers.pop(lane, None)
            raise ProposerLost("gone")
        answer = self.proposers.setdefault(lane, Proposer(self.search)).propose(call)
        return replace(answer, seconds=0.0)

    def submit(self, attempt: str, config: Any, resources: Any, begin: Any = None) -> Any:
        assert resources["num_cpus"] == 1
        self.begins.append(begin)
        return attempt, config, begin

    async def evaluation(self, handle: Any) -> Evaluation | Failure:
        attempt, config, _ = handle
        assert self.coordinator is not None
        self.coordinator.started(attempt, self.node, 1)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        value = self.evaluate(config.get("x", 0.0))
        await asyncio.sleep(60 if value is None else self.seconds)
        self.active -= 1
        return value if isinstance(value, Failure) else Evaluation(value, {}, None, 1.0, 0.5)

    def cancel(self, handle: Any) -> None:
        self.cancelled.append(handle[0])

    async def end(self, handle: Any) -> bool:
        self.cancel(handle)
        return True

    async def dead_nodes(self) -> set[str]:
        return self.dead

    async def close(self) -> None:
        pass


@dataclass
class Ended:
    """What a driver learnt from a session."""

    stop: Stop
    progress: Progress
    trials: list[TrialRecord]
    paused: list[TrialRecord]


def run(
    folder: Path,
    backend: FakeBackend,
    during: Callable[[News], Command | None] = lambda _: None,
    session: str = "s",
    lanes: int = 1,
    points: tuple[Any, ...] = (),
    given: tuple[Any, ...] = (),
    opening: tuple[TrialRecord, ...] = (),
    store: Store | None = None,
    space: Space = SPACE,
    elapsed: float = 0.0,
    resumes: bool = False,
    make_journal: Callable[[Path], Journal] = Journal,
    **changes: Any,
) -> Ended:
    """Run a session to its end; `during` gets the news every few milliseconds."""
    plan = Session(
        id=session,
        storage=str(folder),
        spool="",
        holder={},
        header={"name": "t", "mode": "min", "lanes": lanes},
        settings=replace(SETTINGS, **changes),
        points=points,
        given=given,
        opening=opening,
        resumes=resumes,
    )

    async def go() -> Ended:
        writer = JournalWriter(store or FolderStore(folder), make_journal(folder))
        made = Coordinator(plan, writer, backend, space, Objective(), elapsed, 0.01)
        backend.coordinator = made
        trials: list[TrialRecord] = []
        paused: list[TrialRecord] = []
        command = Command.RUN
        try:
            while True:
                news = await made.poll(len(trials), 0.005, command)
                trials += news.trials
                paused += news.paused
                if news.stop is not None:
                    return Ended(news.stop, news.progress, trials, paused)
                command = during(news) or command
        finally:
            writer.release()  # as the end of its process would

    return asyncio.run(asyncio.wait_for(go(), 30))


def recorded(folder: Path) -> Record:
    return Record.from_contents(read_journal(folder))


def numbers(record: Record, state: State) -> list[int]:
    return [trial.number for trial in record.trials if trial.state is state]


def test_a_study_runs_to_its_budget_and_is_on_disk(tmp_path: Path) -> None:
    done = run(tmp_path, FakeBackend(lambda x: x))
    assert (done.stop.kind, done.stop.error) == ("max_trials", None)
    record = recorded(tmp_path)
    assert numbers(record, State.DONE) == list(range(10))
    assert all(trial.attempts == 1 for trial in record.trials)
    assert record.stopped
    assert record.stopped["outcome"] == "max_trials"
    assert [trial.number for trial in done.trials] == record.order


def test_never_more_trials_run_than_there_are_workers(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x)
    run(tmp_path, backend)
    assert backend.most_active == 3


def test_a_finished_study_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    run(tmp_path, FakeBackend(lambda x: x))
    run(tmp_path, FakeBackend(lambda x: x), session="again")
    assert len(recorded(tmp_path).trials) == 10
    run(tmp_path, FakeBackend(lambda x: x), session="more", max_trials=15)
    record = recorded(tmp_path)
    assert numbers(record, State.DONE) == list(range(15))
    configs = [trial.config["x"] for trial in record.trials]
    assert len(set(configs)) == 15


def test_the_same_seed_proposes_the_same_points(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tmp_path / name, FakeBackend(lambda x: x), workers=1)
    a, b = (recorded(tmp_path / name).trials for name in ("a", "b"))
    assert [t.config for t in a] == [t.config for t in b]


def test_lanes_have_equal_shares(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x, lanes=4)
    run(tmp_path, backend, lanes=4, max_trials=12)
    trials = recorded(tmp_path).trials
    assert [trial.number for trial in trials] == list(range(12))
    assert [trial.memo["trials"] for trial in trials] == [n // 4 for n in range(12)]
    asked: dict[int, list[int]] = {}
    for lane, call in backend.calls:
        asked.setdefault(lane, []).extend(call)
    assert {lane: len(set(call)) for lane, call in asked.items()} == dict.fromkeys(range(4), 3)
    assert all(n % 4 == lane for lane, call in asked.items() for n in call)


def test_trials_of_an_opening_start_before_any_proposal_and_only_in_a_new_study(
    tmp_path: Path,
) -> None:
    opening = tuple(TrialRecord(n, {"x": x}) for n, x in enumerate((0.1, 0.2, 0.3)))
    backend = FakeBackend(lambda _: None)
    stop = lambda _: Command.STOP if backend.active == 3 else None  # noqa: E731
    run(tmp_path, backend, stop, opening=opening)
    assert [t.config["x"] for t in recorded(tmp_path).trials] == [0.1, 0.2, 0.3]
    backend = FakeBackend(lambda x: x)
    run(
        tmp_path,
        backend,
        session="again",
        workers=4,
        opening=(*opening, TrialRecord(3, {"x": 0.4})),
    )
    record = recorded(tmp_path)
    assert [t.config["x"] for t in record.trials[:4]] == [0.1, 0.2, 0.3, 0.4]
    assert numbers(record, State.DONE) == list(range(10))
    assert min(number for _, call in backend.calls for number in call) == 4
    assert all(trial.memo["trials"] == trial.number for trial in record.trials[4:])
    late = (TrialRecord(10, {"x": 0.7}),)
    run(tmp_path, backend, session="more", opening=late, max_trials=11)
    assert recorded(tmp_path).trials[10].config["x"] != 0.7


def test_a_long_wait_for_the_method_is_spoken_of(tmp_path: Path) -> None:
    class Slow(FakeBackend):
        async def propose(self, lane: int, call: Call) -> Proposals:
            await asyncio.sleep(1.5 if len(self.calls) == 1 else 0.0)
            return await super().propose(lane, call)

    def states(backend: FakeBackend, name: str) -> set[str]:
        seen: set[str] = set()
        run(tmp_path / name, backend, lambda news: seen.add(news.progress.state), workers=1)
        return seen

    waiting = "the method prepares the next trials"
    assert waiting in states(Slow(lambda x: x), "slow")
    assert waiting not in states(FakeBackend(lambda x: x, seconds=0.1), "quick")


def test_proposals_of_a_resumed_study_take_no_longer_than_its_trials_allow(tmp_path: Path) -> None:
    """Its workers ended 200 trials a second: there is no time for full effort."""
    run(tmp_path, FakeBackend(lambda x: x), workers=100, max_trials=200)
    efforts: list[Effort] = []

    class Watched(FakeBackend):
        async def propose(self, lane: int, call: Call) -> Proposals:
            efforts.append(call.effort)
            return await super().propose(lane, call)

    run(tmp_path, Watched(lambda x: x), session="again", workers=100, max_trials=400)
    assert FULL not in efforts


def known_point(x: float, value: float) -> dict[str, Any]:
    return {"config": {"x": x}, "value": value, "extra": {}}


def test_known_points_count_as_data_but_not_as_trials(tmp_path: Path) -> None:
    given = (known_point(0.25, 4.0), known_point(0.75, 2.0))
    backend = FakeBackend(lambda x: x + 9)
    done = run(tmp_path, backend, given=given, points=({"x": 0.5},), max_trials=4)
    record = recorded(tmp_path)
    assert [t.config["x"] for t in record.trials[:3]] == [0.25, 0.75, 0.5]
    assert [t.value for t in record.trials[:2]] == [4.0, 2.0]
    assert [t.attempts for t in record.trials] == [0, 0, 1, 1, 1, 1]
    assert done.progress.best_value == 2.0
    assert all(t.memo["results"] >= 2 for t in record.trials[3:])
    run(tmp_path, backend, session="again", given=given, points=({"x": 0.5},), max_trials=5)
    assert len(recorded(tmp_path).trials) == 7


def test_a_failed_attempt_is_tried_again_as_often_as_allowed(tmp_path: Path) -> None:
    run(tmp_path, FakeBackend(lambda _: CRASH), retries=2, max_trials=3)
    trials = recorded(tmp_path).trials
    assert [(t.state, t.attempts) for t in trials] == [(State.FAILED, 3)] * 3


def test_a_crash_that_passes_is_no_failure(tmp_path: Path) -> None:
    seen: list[float] = []

    def flaky(x: float) -> Any:
        seen.append(x)
        return CRASH if seen.count(x) == 1 else x

    run(tmp_path, FakeBackend(flaky))
    assert [(t.state, t.attempts) for t in recorded(tmp_path).trials] == [(State.DONE, 2)] * 10


def test_a_result_that_is_no_number_is_not_tried_again(tmp_path: Path) -> None:
    bad = failure_of_result("the objective returned nan")
    run(tmp_path, FakeBackend(lambda x: bad if x < 0.5 else x))
    failed = [t for t in recorded(tmp_path).trials if t.state is State.FAILED]
    assert failed
    assert all(t.attempts == 1 and "nan" in (t.reason or "") for t in failed)


def test_failures_alike_end_the_study(tmp_path: Path) -> None:
    backend = FakeBackend(lambda _: Failure("exception", "ValueError: no (o.py:3)", "v", "Trace!"))
    done = run(tmp_path, backend, max_trials=100)
    assert done.stop.error is StudyFailed
    assert re.match(r"the first [5-8] trials all failed in the same way", done.stop.text)
    assert "ValueError: no (o.py:3)" in done.stop.text
    assert "Trace!" in done.stop.text


@pytest.mark.parametrize(
    ("failure", "changes", "least", "most"),
    [
        (failure_of_metric("the objective returned the entries ['a', 'b']"), {}, 1, 3),
        (failure_of_result("the objective returned nan"), {}, 50, 53),
        (failure_of_result("the objective returned nan"), {"max_failures": 70}, 70, 73),
        (Failure("exception", "ValueError", "v"), {"max_failures": 2}, 2, 5),
    ],
)
def test_how_many_failures_end_a_study_depends_on_whether_a_config_may_work(
    tmp_path: Path, failure: Failure, changes: dict[str, Any], least: int, most: int
) -> None:
    done = run(tmp_path, FakeBackend(lambda _: failure), max_trials=100, **changes)
    assert done.stop.error is StudyFailed
    assert least <= len(recorded(tmp_path).order) <= most


def test_a_few_configs_that_work_are_found_among_many_that_do_not(tmp_path: Path) -> None:
    bad = failure_of_result("the objective returned nan")
    done = run(tmp_path, FakeBackend(lambda x: x if x > 0.92 else bad), max_trials=100)
    assert (done.stop.kind, done.stop.error) == ("max_trials", None)


def test_a_study_ends_when_its_best_value_improves_no_more(tmp_path: Path) -> None:
    values = iter([3.0, 2.0, 1.0])
    backend = FakeBackend(lambda _: next(values, 5.0))
    done = run(tmp_path, backend, patience=4, workers=1, max_trials=100)
    assert (done.stop.kind, done.stop.text) == ("plateau", "no better value in 4 trials")
    assert len(recorded(tmp_path).order) == 7


def test_a_repaired_study_is_not_stopped_for_old_failures(tmp_path: Path) -> None:
    run(tmp_path, FakeBackend(lambda _: Failure("exception", "no", "v")), max_trials=100)
    done = run(tmp_path, FakeBackend(lambda x: x), session="repaired", max_trials=20)
    assert done.stop.error is None
    assert len(numbers(recorded(tmp_path), State.DONE)) >= 12


def test_a_timeout_cancels_and_the_late_result_is_dropped(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x)

    async def evaluation(handle: Any) -> Any:
        backend.seconds = 0.4 if handle[1]["x"] < 0.5 else 0.001
        return await FakeBackend.evaluation(backend, handle)

    backend.evaluation = evaluation  # type: ignore[method-assign]
    run(tmp_path, backend, timeout=0.02, max_trials=12)
    record = recorded(tmp_path)
    failed = [t for t in record.trials if t.state is State.FAILED]
    assert failed
    assert {(t.reason, t.attempts) for t in failed} == {("timeout after 0.02 s", 1)}
    assert len(backend.cancelled) == len(failed)
    assert sorted(record.order) == list(range(12))


def test_attempts_on_a_dead_node_are_given_up_and_tried_again(tmp_path: Path) -> None:
    backend = FakeBackend(lambda _: None)

    def node_dies(_: News) -> None:
        if backend.active == 3 and backend.node == "node-a":
            backend.dead, backend.node, backend.evaluate = {"node-a"}, "node-b", lambda x: x

    done = run(tmp_path, backend, node_dies)
    assert done.stop.error is None
    trials = recorded(tmp_path).trials
    assert [t.state for t in trials] == [State.DONE] * 10
    assert [t.attempts for t in trials[:3]] == [2, 2, 2]


def test_draining_waits_for_what_runs_and_starts_nothing(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x, seconds=0.05)
    done = run(tmp_path, backend, lambda _: Command.DRAIN, max_trials=1000)
    assert (done.stop.kind, done.stop.error) == ("interrupted", None)
    assert done.progress.state == "interrupted"
    record = recorded(tmp_path)
    assert numbers(record, State.PENDING) == []
    assert len(record.trials) < 1000


def test_a_callback_ends_the_study_as_a_drain_does(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x, seconds=0.05)
    done = run(tmp_path, backend, lambda _: Command.END, max_trials=1000)
    assert (done.stop.kind, done.stop.error) == ("callback", None)
    assert done.progress.state == "finished"
    assert numbers(recorded(tmp_path), State.PENDING) == []


def test_stopping_leaves_trials_pending_that_are_evaluated_later(tmp_path: Path) -> None:
    backend = FakeBackend(lambda _: None)
    done = run(tmp_path, backend, lambda _: Command.STOP if backend.active == 3 else None)
    assert (done.stop.kind, done.stop.error) == ("interrupted", None)
    record = recorded(tmp_path)
    assert numbers(record, State.PENDING) == [0, 1, 2]
    assert len(backend.cancelled) == 3
    configs = [trial.config for trial in record.trials]
    run(tmp_path, FakeBackend(lambda x: x), session="again")
    record = recorded(tmp_path)
    assert [trial.config for trial in record.trials[:3]] == configs
    assert [(t.state, t.attempts) for t in record.trials] == [(State.DONE, 1)] * 10


def test_a_killed_session_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def kill(_: News) -> None:
        if len(recorded(tmp_path).order) >= 4:
            raise Killed

    for _ in range(2):
        backend = FakeBackend(lambda x: x, seconds=0.05)
        evaluations = iter([None])  # the first trial is still running when the session is killed
        backend.evaluate = lambda x, values=evaluations: next(values, x)
        with pytest.raises(Killed):
            run(tmp_path, backend, kill)
    before = recorded(tmp_path)
    assert len(before.order) >= 4
    run(tmp_path, FakeBackend(lambda x: x))
    record = recorded(tmp_path)
    assert numbers(record, State.DONE) == list(range(10))
    for number in before.order:
        assert record.entries[number].trial == before.entries[number].trial


def test_a_trial_that_is_interrupted_too_often_is_given_up(tmp_path: Path) -> None:
    def kill(news: News) -> None:
        if news.progress.running:
            raise InterruptedError

    losses = 0
    while losses < 10:  # a session may end before its first events are on disk
        with pytest.raises(InterruptedError):
            run(tmp_path, FakeBackend(lambda _: None), kill, workers=1)
        losses = max((entry.losses for entry in recorded(tmp_path).entries.values()), default=0)
    run(tmp_path, FakeBackend(lambda x: x), workers=1)
    trials = recorded(tmp_path).trials
    assert trials[0].state is State.FAILED
    assert "interrupted 10 times" in (trials[0].reason or "")
    assert all(trial.state is State.DONE for trial in trials[1:])


def test_the_target_stops_the_study_at_once(tmp_path: Path) -> None:
    given = (known_point(0.5, -1.0),)
    done = run(tmp_path, FakeBackend(lambda _: None), given=given, target=-0.5)
    assert (done.stop.kind, done.stop.error) == ("target", None)


@pytest.mark.parametrize(
    ("days", "limits", "kind"),
    [(1, {"max_seconds": 3600.0}, "max_trials"), (-1, {"max_trials": None}, "max_seconds")],
)
def test_a_clock_that_is_set_changes_no_limit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    days: int,
    limits: dict[str, Any],
    kind: str,
) -> None:
    clock = time.time

    def set_clock(_: News) -> None:
        monkeypatch.setattr(time, "time", lambda: clock() + 86400 * days)

    backend = FakeBackend(lambda x: x, seconds=0.05)
    done = run(tmp_path, backend, set_clock, **{"max_seconds": 0.5, "workers": 1, **limits})
    assert done.stop.kind == kind


def test_max_seconds_counts_from_the_start_of_the_session_not_of_its_coordinator(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, FakeBackend(lambda x: x), elapsed=100.0, max_seconds=50.0)
    assert done.stop.kind == "max_seconds"


def test_points_of_the_user_are_evaluated_once_in_a_finite_space(tmp_path: Path) -> None:
    space = Space({"x": Int(0, 15)})
    backend = FakeBackend(lambda x: x, space)
    points = tuple({"x": x} for x in (3, 5, 5, 9, 12, 14, 0, 7, 3))
    done = run(tmp_path, backend, points=points, space=space, workers=2, max_trials=30)
    assert done.stop.kind == "exhausted"
    assert sorted(t.config["x"] for t in done.trials) == list(range(16))
    assert [t.config["x"] for t in recorded(tmp_path).trials][:7] == [3, 5, 9, 12, 14, 0, 7]
    again = run(tmp_path, backend, session="b", points=points, space=space, max_trials=30)
    assert len(again.trials) == 16


def test_max_seconds_drains(tmp_path: Path) -> None:
    done = run(tmp_path, FakeBackend(lambda x: x), max_seconds=0.05, max_trials=None)
    assert (done.stop.kind, done.stop.error) == ("max_seconds", None)


def test_a_new_proposer_in_place_of_a_lost_one_sees_every_trial(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x)

    def lose(news: News) -> None:
        if news.progress.done >= 4 and not backend.losses:
            backend.losses = 1 if len(backend.calls) < 20 else 0

    done = run(tmp_path, backend, lose, max_trials=30)
    assert done.stop.error is None
    trials = recorded(tmp_path).trials
    assert [trial.state for trial in trials] == [State.DONE] * 30
    assert trials[-1].memo["trials"] == 29


def test_a_proposer_that_always_dies_ends_the_study(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x)
    backend.losses = 1000
    done = run(tmp_path, backend)
    assert done.stop.error is StudyFailed
    assert "died 5 times in a row" in done.stop.text


def test_an_error_of_the_method_ends_the_study(tmp_path: Path) -> None:
    class Broken(FakeBackend):
        async def propose(self, lane: int, call: Call) -> Proposals:
            raise ProposerFailed("KeyError: 'z'")

    done = run(tmp_path, Broken(lambda x: x))
    assert done.stop.error is StudyFailed
    assert "the method failed at trial 0" in done.stop.text


def test_an_exhausted_space_ends_the_study_in_peace(tmp_path: Path) -> None:
    space = Space({"x": Int(1, 4)})
    done = run(tmp_path, FakeBackend(lambda x: x, space))
    assert (done.stop.kind, done.stop.error) == ("exhausted", None)
    assert sorted(t.config["x"] for t in recorded(tmp_path).trials) == [1, 2, 3, 4]


@pytest.mark.parametrize("error", [KeyError("big"), SystemExit("big")], ids=repr)
def test_resources_may_be_a_callable_of_the_config(tmp_path: Path, error: BaseException) -> None:
    seen: list[float] = []

    def resources(config: Any) -> dict[str, Any]:
        seen.append(config["x"])
        if config["x"] < 0.3:
            raise error
        return {"num_cpus": 1}

    run(tmp_path, FakeBackend(lambda x: x), resources=resources, max_trials=12)
    trials = recorded(tmp_path).trials
    assert sorted(seen) == sorted(t.config["x"] for t in trials)
    assert {t.state: t.reason for t in trials} == {
        State.DONE: None,
        State.FAILED: f"resources: {type(error).__name__}: {error}",
    }


def test_a_journal_taken_over_by_another_writer_ends_the_study(tmp_path: Path) -> None:
    def take_over(news: News) -> None:
        if news.progress.done >= 3:
            (tmp_path / "other").write_text('{"epoch": 99, "pid": 1, "since": 0}')
            (tmp_path / "other").replace(tmp_path / "journal.lock")  # at once, as a writer does

    done = run(tmp_path, FakeBackend(lambda x: x), take_over, max_trials=10_000)
    assert done.stop.error is JournalError
    assert "taken over by pid 1" in done.stop.text
    assert recorded(tmp_path).order == [trial.number for trial in done.trials]


def test_any_error_of_a_write_ends_the_study(tmp_path: Path) -> None:
    class NoThreads(Journal):
        def append(self, *events: Any) -> None:
            if self.next_seq + len(events) > 10:
                raise RuntimeError("can't start new thread")
            super().append(*events)

    done = run(tmp_path, FakeBackend(lambda x: x), make_journal=NoThreads)
    assert done.stop.error is JournalError
    assert "cannot write: RuntimeError: can't start new thread" in done.stop.text
    assert recorded(tmp_path).order == [trial.number for trial in done.trials]


def test_any_error_at_the_end_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    class NoEnd(FolderStore):
        def push(self, size: int, closing: bool = False) -> None:
            if closing:
                raise ValueError("no end")

    done = run(tmp_path, FakeBackend(lambda x: x), store=NoEnd(tmp_path))
    assert done.stop.error is StudyFailed
    assert "ValueError: no end" in done.stop.text
    assert numbers(recorded(tmp_path), State.DONE) == list(range(10))


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_one_worker_waits_for_every_result(tmp_path: Path, seconds: float) -> None:
    """Then the run is the sequential one: each trial is proposed when all before it are done."""
    run(tmp_path, FakeBackend(lambda x: x, seconds=seconds), workers=1, max_trials=8)
    assert [t.memo["results"] for t in recorded(tmp_path).trials] == list(range(8))


class OneAfterTheOther(FakeBackend):
    """Of two workers, none ends a trial before the other has its next one; 10 trials."""

    def submit(self, attempt: str, config: Any, resources: Any, begin: Any = None) -> Any:
        handle = super().submit(attempt, config, resources, begin)
        return *handle, len(self.begins)

    async def evaluation(self, handle: Any) -> Evaluation | Failure:
        *rest, submitted = handle
        ended = await super().evaluation(tuple(rest))
        while len(self.begins) < min(submitted + 1, 10):
            await asyncio.sleep(0.001)
        return ended


def test_two_workers_wait_for_proposals_that_saw_every_result_where_these_cost_little(
    tmp_path: Path,
) -> None:
    run(tmp_path, OneAfterTheOther(lambda x: x, seconds=0.2), workers=2, max_trials=10)
    n_done, seen = 0, []
    for event in read_journal(tmp_path).events:
        n_done += event["kind"] == "done"
        if event["kind"] == "asked" and n_done:
            seen.append((event["memo"]["results"], n_done))
    assert len(seen) >= 7
    assert all(known == n for known, n in seen)


class Reporting(FakeBackend):
    """Evaluations report `x + 1 / step` at 20 steps; one is lost at the step `lost_at`."""

    def __init__(
        self, lost_at: int | None = None, checkpoints: bool = True, **settings: Any
    ) -> None:
        super().__init__(lambda x: x, **settings)
        self.lost_at = lost_at
        self.checkpoints = checkpoints

    async def evaluation(self, handle: Any) -> Evaluation | Failure:
        attempt, config, begin = handle
        assert self.coordinator is not None
        self.coordinator.started(attempt, self.node, 1)
        steps: list[tuple[int, float]] = []
        for step in range(begin.step + 1 if begin else 1, 21):
            await asyncio.sleep(0)
            steps.append((step, config["x"] + 1 / step))
            if step in (3, 7, 9):
                saved = Checkpoint(step, f"at {step}") if self.checkpoints else None
                batch = Batch(tuple(steps), saved)
                if not await self.coordinator.report(attempt, batch):
                    return Evaluation(None, {}, None, 1.0, 0.5)
                steps = []
            if step == self.lost_at:
                self.lost_at = None
                return Failure("lost", "gone", "lost")
        return Evaluation(steps[-1][1], {}, None, 1.0, 0.5, Batch(tuple(steps)))


EARLY: dict[str, Any] = {"max_steps": 20, "stop_early": True, "max_trials": 30}


def test_trials_that_report_worse_values_are_stopped_early(tmp_path: Path) -> None:
    done = run(tmp_path, Reporting(), **EARLY)
    record = recorded(tmp_path)
    stopped, full = numbers(record, State.STOPPED), numbers(record, State.DONE)
    assert len(stopped) + len(full) == 30
    assert len(stopped) >= 10
    curves = {trial.number: trial.curve for trial in record.trials}
    assert {max(curves[n]) for n in stopped} <= {3, 7}
    assert all(list(curves[n]) == list(range(1, 21)) for n in full)
    best = min(record.trials, key=lambda t: t.config["x"])
    assert best.number in full
    assert done.progress.stopped == len(stopped)
    assert done.progress.steps == pytest.approx(sum(max(c) for c in curves.values()) / 600)
    assert sorted(record.order) == list(range(30))


def test_reports_without_early_stopping_stop_nothing(tmp_path: Path) -> None:
    run(tmp_path, Reporting(), max_steps=20)
    assert len(numbers(recorded(tmp_path), State.DONE)) == 10


def test_a_trial_that_is_lost_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    backend = Reporting(lost_at=12)
    run(tmp_path, backend, max_steps=20, max_trials=2, workers=1, resumes=True)
    assert backend.begins == [None, (9, "at 9"), None]
    assert [t.attempts for t in recorded(tmp_path).trials] == [2, 1]
    backend = Reporting(lost_at=12)
    run(tmp_path / "none", backend, max_steps=20, max_trials=2, workers=1)
    assert backend.begins == [None, None, None]
    folds = {"max_steps": 20, "over": "instances"}
    backend = Reporting(lost_at=12)
    run(tmp_path / "folds", backend, max_trials=2, workers=1, resumes=True, **folds)
    assert backend.begins == [None, None, None]


WORSE_AND_WORSE = tuple({"x": n / 30} for n in range(30))  # each trial is worse than the last


def ranks(record: Record, step: int) -> list[int]:
    """Trials that came to a rung, the best first."""
    came = [t for t in record.trials if t.curve and max(t.curve) >= step]
    return [t.number for t in sorted(came, key=lambda t: t.config["x"])]


def test_a_trial_that_is_better_than_most_after_all_goes_on(tmp_path: Path) -> None:
    points = tuple({"x": x} for x in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    options = {**EARLY, "max_trials": 6, "workers": 1, "points": points, "resumes": True}
    done = run(tmp_path, backend := Reporting(), **options)
    record = recorded(tmp_path)
    # At the first rung the second is the worse of two, and among the best third of six; at the
    # second rung it is the worse of two again.
    assert backend.begins == [None] * 6 + [(3, "at 3")]
    assert [max(t.curve) for t in record.trials] == [20, 7, 3, 3, 3, 3]
    assert list(record.trials[1].curve) == list(range(1, 8))
    assert record.trials[1].checkpoint == (7, "at 7")
    assert [t.attempts for t in record.trials] == [1, 2, 1, 1, 1, 1]
    assert numbers(record, State.STOPPED) == [1, 2, 3, 4, 5]
    assert [t.number for t in done.trials] == record.order == [0]
    assert [t.number for t in done.paused] == [2, 3, 4, 5, 1]
    assert (done.progress.stopped, done.progress.paused) == (5, 5)
    assert done.progress.steps == pytest.approx((20 + 7 + 4 * 3) / 120)
    assert done.stop.kind == "max_trials"


def test_every_trial_among_the_best_third_of_a_rung_has_gone_on(tmp_path: Path) -> None:
    run(tmp_path, Reporting(), resumes=True, points=WORSE_AND_WORSE, **EARLY)
    record = recorded(tmp_path)
    curves = {trial.number: max(trial.curve) for trial in record.trials}
    assert len(curves) == 30
    for step in (3, 7):
        came = ranks(record, step)
        assert all(curves[n] > step for n in came[: -(-len(came) // 3)])
    assert 3 in curves.values()
    kinds = [event["kind"] for event in read_journal(tmp_path).events]
    assert kinds.count("promoted") > 0
    assert kinds.count("paused") == kinds.count("promoted") + len(record.paused)
    assert "stopped_early" not in kinds


def test_an_objective_without_resume_or_checkpoint_is_stopped_for_good(tmp_path: Path) -> None:
    forgetful = Reporting(checkpoints=False)  # takes `resume`, and never gives a checkpoint
    for name, backend, resumes in (("a", Reporting(), False), ("b", forgetful, True)):
        run(tmp_path / name, backend, resumes=resumes, **EARLY)
        kinds = [event["kind"] for event in read_journal(tmp_path / name).events]
        assert kinds.count("stopped_early") >= 10
        assert {"paused", "promoted"}.isdisjoint(kinds)


def test_a_paused_trial_goes_on_in_a_later_session(tmp_path: Path) -> None:
    few = tuple({"x": x} for x in (0.1, 0.2, 0.3))
    options = {**EARLY, "workers": 1, "resumes": True}
    run(tmp_path, Reporting(), points=few, **{**options, "max_trials": 3})
    assert [max(t.curve) for t in recorded(tmp_path).trials] == [20, 3, 3]
    more = tuple({"x": x} for x in (0.4, 0.5, 0.6))
    backend = Reporting()
    done = run(tmp_path, backend, session="b", points=more, **{**options, "max_trials": 6})
    record = recorded(tmp_path)
    assert backend.begins == [None] * 3 + [(3, "at 3")]
    assert [max(t.curve) for t in record.trials] == [20, 7, 3, 3, 3, 3]
    assert [t.number for t in done.paused] == [3, 4, 5, 1]  # 2 was paused in the first session
    last = run(tmp_path, Reporting(), session="c", **{**options, "stop_early": False})
    assert len(last.trials) == 30 - 5  # without early stopping none is promoted
    assert sorted(recorded(tmp_path).paused) == [1, 2, 3, 4, 5]


def test_a_drained_session_leaves_promotions_to_the_next(tmp_path: Path) -> None:
    options = {**EARLY, "max_trials": 6, "workers": 1, "resumes": True}

    def during(news: News) -> Command | None:
        return Command.DRAIN if len(recorded(tmp_path).entries) == 6 else None

    backend = Reporting()
    backend.evaluation = slowed(backend.evaluation)  # type: ignore[method-assign]
    run(tmp_path, backend, during, points=WORSE_AND_WORSE[:6], **options)
    record = recorded(tmp_path)
    assert [max(t.curve) for t in record.trials] == [20, 3, 3, 3, 3, 3]
    assert (record.n_ended, record.may_promote) == (6, True)
    run(tmp_path, Reporting(), session="b", **options)
    record = recorded(tmp_path)
    assert [max(t.curve) for t in record.trials] == [20, 7, 3, 3, 3, 3]
    assert not record.may_promote


def test_a_coordinator_killed_between_pause_and_promotion_forgets_neither(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    options: dict[str, Any] = {"resumes": True, "points": WORSE_AND_WORSE, **EARLY}

    def run_until(kind: str) -> None:
        def during(news: News) -> None:
            kinds = [event["kind"] for event in read_journal(tmp_path).events]
            if kind in kinds and recorded(tmp_path).pending:
                raise Killed

        backend = Reporting()
        backend.evaluation = slowed(backend.evaluation)  # type: ignore[method-assign]
        with pytest.raises(Killed):
            run(tmp_path, backend, during, **options)

    run_until("paused")
    before = recorded(tmp_path)
    paused = {n: before.entries[n].trial.checkpoint for n in before.paused}
    assert paused
    run_until("promoted")
    done = run(tmp_path, Reporting(), **options)
    record = recorded(tmp_path)
    assert {t.number for t in record.trials} == set(range(30))
    assert not record.pending
    for number, checkpoint in paused.items():
        trial = record.entries[number].trial
        assert trial.checkpoint is not None
        assert checkpoint is not None
        assert trial.checkpoint.step >= checkpoint.step
    for step in (3, 7):
        came = ranks(record, step)
        best = came[: -(-len(came) // 3)]
        assert all(max(record.entries[n].trial.curve) > step for n in best)
    assert len(record.order) + len(record.paused) == 30
    assert {t.number for t in done.paused} == set(record.paused)


def slowed(evaluation: Any) -> Any:
    """An evaluation after which there is time to look."""

    async def slow(handle: Any) -> Any:
        found = await evaluation(handle)
        await asyncio.sleep(0.05)
        return found

    return slow


def test_the_rule_goes_on_where_it_stood(tmp_path: Path) -> None:
    run(tmp_path, Reporting(), **{**EARLY, "max_trials": 15})
    before = {t.number: (t.state, t.curve) for t in recorded(tmp_path).trials}
    bad = ({"x": 0.999},)  # the first of a session without memory would go on
    run(tmp_path, Reporting(), session="again", points=bad, **{**EARLY, "max_trials": 16})
    whole = recorded(tmp_path).trials
    assert {t.number: (t.state, t.curve) for t in whole[:15]} == before
    assert (whole[15].state, max(whole[15].curve)) == (State.STOPPED, 3)


def test_what_a_killed_coordinator_was_told_is_kept(tmp_path: Path) -> None:
    backend = Reporting()

    class Killed(Exception):
        pass

    def during(news: News) -> None:
        if len(news.trials) >= 1 and any(recorded(tmp_path).pending):
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path, backend, during, **EARLY)
    kept = {t.number: dict(t.curve) for t in recorded(tmp_path).trials}
    run(tmp_path, Reporting(), **EARLY)
    after = {t.number: t.curve for t in recorded(tmp_path).trials}
    assert all(after[n].items() >= curve.items() for n, curve in kept.items())
    assert sorted(recorded(tmp_path).order) == list(range(30))


def test_an_attempt_that_was_given_up_is_told_to_stop(tmp_path: Path) -> None:
    backend = FakeBackend(lambda x: x)
    run(tmp_path, backend)
    assert backend.coordinator is not None
    assert not asyncio.run(backend.coordinator.report("1.0.1", Batch(((1, 1.0),))))
