"""Objectives that report: generators, and functions that call raybo.report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import raybo
from raybo.runtime.evaluations import reports as module
from raybo.runtime.evaluations.evaluate import Evaluation, Work, evaluate
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.steps import Steps
from raybo.study.trial import Batch, Checkpoint

SPACE = Space({"x": Float(0, 1)})


class Coordinator:
    """Takes batches, and stops a trial at a step."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.batches: list[Batch] = []
        self.stop_at = stop_at

    def __call__(self, batch: Batch, waits: bool) -> bool:
        self.batches.append(batch)
        return not waits or self.stop_at is None or batch.steps[-1][0] < self.stop_at


def run(
    function: Callable[..., Any],
    coordinator: Coordinator | None = None,
    steps: Steps | None = None,
    begin: Checkpoint | None = None,
    **goal: Any,
) -> Evaluation:
    work = Work(function, SPACE, Objective(**goal), None, steps or Steps())
    return evaluate(work, {"x": 0.5}, coordinator or Coordinator(), begin)


def steps(coordinator: Coordinator, evaluation: Evaluation) -> list[int]:
    batches = [*coordinator.batches, evaluation.reports]
    return [step for batch in batches for step, _ in batch.steps]


def counting(n: float, closed: list[str] | None = None) -> Callable[[Any], Iterator[float]]:
    def train(config: Any) -> Iterator[float]:
        step = 0
        try:
            while step < n:
                step += 1
                yield config["x"] + 1 / step
        finally:
            if closed is not None:
                closed.append("closed")

    return train


def asking(n: int) -> Callable[[Any], float]:
    def train(config: Any) -> float:
        for step in range(1, n + 1):
            if not raybo.report(config["x"] + 1 / step):
                return math.nan  # of a trial that is over: does not count
        return 7.0

    return train


def test_the_last_value_of_a_generator_counts() -> None:
    coordinator = Coordinator()
    found = run(counting(4), coordinator)
    assert found.value == 0.75
    assert found.failure is None
    assert steps(coordinator, found) == [1, 2, 3, 4]


def test_a_function_that_reports_returns_its_value() -> None:
    coordinator = Coordinator()
    found = run(asking(3), coordinator)
    assert found.value == 7.0
    assert steps(coordinator, found) == [1, 2, 3]


@pytest.mark.parametrize("train", [counting(math.inf), asking(99)])
def test_max_steps_complete_a_trial(train: Any) -> None:
    found = run(train, steps=Steps(10))
    assert found.value == 0.6
    assert found.failure is None


@pytest.mark.parametrize("make", [counting, asking])
def test_a_trial_is_stopped_at_a_rung_and_has_no_value(make: Any) -> None:
    coordinator = Coordinator(stop_at=7)
    found = run(make(20), coordinator, Steps(20, stop_early=True))
    assert (found.value, found.failure) == (None, None)
    assert steps(coordinator, found) == list(range(1, 8))
    assert [batch.steps[-1][0] for batch in coordinator.batches] == [3, 7]


@pytest.mark.parametrize("stop_at", [3, None])
def test_a_generator_is_closed_however_it_ends(stop_at: int | None) -> None:
    closed: list[str] = []
    run(counting(math.inf, closed), Coordinator(stop_at), Steps(10, stop_early=True))
    assert closed == ["closed"]


def test_reports_between_rungs_travel_together(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator()
    found = run(counting(5000), coordinator)
    assert len(coordinator.batches) <= 1 + found.seconds / module.BATCH_SECONDS
    monkeypatch.setattr(module, "BATCH_SECONDS", -1.0)
    run(counting(5), coordinator := Coordinator())
    assert [batch.steps[-1][0] for batch in coordinator.batches] == [1, 2, 3, 4, 5]


def nothing(config: Any) -> Iterator[float]:
    yield from ()


def breaks(config: Any) -> Iterator[float]:
    yield from (1.0,) * 16
    raise ValueError("a bug")


def diverges(config: Any) -> Iterator[float]:
    yield from (1.0, math.nan, 2.0)


def diverges_inside(config: Any) -> float:
    raybo.report(1.0)
    raybo.report(math.nan)
    return 2.0


def goes_back(config: Any) -> float:
    raybo.report(1.0, step=5)
    raybo.report(1.0, step=5)
    return 2.0


@pytest.mark.parametrize(
    ("train", "cause", "words", "reported"),
    [
        (nothing, "result", "ended without yielding a value", []),
        (breaks, "exception", "a bug", list(range(1, 17))),
        (diverges, "result", "at step 2: the objective returned nan", [1]),
        (diverges_inside, "result", "at step 2", [1]),
        (goes_back, "result", "step 5 was reported after step 5", [5]),
    ],
)
def test_what_goes_wrong_on_the_way_is_a_failure_with_its_step(
    train: Any, cause: str, words: str, reported: list[int]
) -> None:
    coordinator = Coordinator()
    found = run(train, coordinator)
    assert found.failure is not None
    assert found.failure.cause == cause
    assert words in found.failure.reason
    assert steps(coordinator, found) == reported


def test_results_with_entries_keep_the_last_ones() -> None:
    def train(config: Any) -> Iterator[dict[str, float]]:
        for step in (1, 2):
            yield {"loss": 1 / step, "accuracy": 0.1 * step}

    found = run(train, metric="loss")
    assert (found.value, found.extra) == (0.5, {"accuracy": 0.2})


def test_entries_may_be_given_to_report_by_name() -> None:
    def train(config: Any) -> None:
        raybo.report(0.5, step=3, accuracy=0.9)

    found = run(train, steps=Steps(3))
    assert (found.value, found.extra) == (0.5, {"accuracy": 0.9})
    found = run(train, steps=Steps(3), metric="loss")
    assert (found.value, found.extra) == (0.5, {"accuracy": 0.9})


def test_entries_that_are_bounded_travel_with_the_reports() -> None:
    def train(config: Any) -> Iterator[dict[str, float]]:
        for step in range(1, 9):
            yield {"loss": 1 / step, "latency": float(step), "other": 1.0}

    coordinator = Coordinator()
    bounds = {"latency": (None, 9.0)}
    run(train, coordinator, Steps(8, stop_early=True), metric="loss", constraints=bounds)
    assert coordinator.batches[0].bounded == {"latency": 3.0}


def test_an_objective_that_can_resume_starts_from_its_checkpoint() -> None:
    seen: list[str | None] = []

    def train(config: Any, resume: str | None = None) -> Iterator[Any]:
        seen.append(resume)
        for step in range(1, 4):
            yield 1.0, f"checkpoint {step}"

    coordinator = Coordinator()
    run(train, coordinator)
    assert [batch.checkpoint for batch in coordinator.batches] == [
        (1, "checkpoint 1"),
        (2, "checkpoint 2"),
        (3, "checkpoint 3"),
    ]
    found = run(train, coordinator, Steps(6), begin=Checkpoint(3, "checkpoint 3"))
    assert seen == [None, "checkpoint 3"]
    assert [step for batch in coordinator.batches[3:] for step, _ in batch.steps] == [4, 5]
    assert found.reports == Batch(((6, 1.0),), Checkpoint(6, "checkpoint 3"))


def test_a_checkpoint_is_in_the_journal_before_the_generator_goes_on() -> None:
    waited: list[bool] = []

    def send(batch: Batch, waits: bool) -> bool:
        waited.append(waits)
        return True

    def train(config: Any) -> Iterator[Any]:
        yield 1.0
        yield 1.0, "a.pt"
        assert waited == [True]
        yield {"loss": 1.0}, Path("b.pt")
        assert waited == [True, True]
        yield 1.0, None
        assert waited == [True, True]

    found = evaluate(Work(train, SPACE, Objective()), {"x": 0.5}, send)
    assert found.failure is None
    assert len(waited) == 2


def test_a_function_reports_checkpoints_and_resumes() -> None:
    def train(config: Any, resume: str | None = None) -> float:
        for epoch in range(int(resume or 0) + 1, 6):
            assert raybo.report(1 / epoch, checkpoint=str(epoch), epoch=epoch)
        return 0.5

    coordinator = Coordinator()
    found = run(train, coordinator, begin=Checkpoint(3, "3"))
    assert [batch.checkpoint for batch in coordinator.batches] == [(4, "4"), (5, "5")]
    assert found.value == 0.5


def of_checkpoint(checkpoint: Any) -> Callable[[Any], Iterator[Any]]:
    def train(config: Any) -> Iterator[Any]:
        yield 1.0
        yield 1.0, checkpoint

    return train


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [
        (7, "at step 2: the checkpoint is of the type int, not a path"),
        ({"loss": 1.0}, "of the type dict"),
        (b"a.pt", "of the type bytes"),
        ("", "a path of 0 characters"),
        ("a" * 5000, "a path of 5000 characters; it has 1 to 4096"),
    ],
)
def test_what_is_no_path_of_a_checkpoint_is_a_failure(checkpoint: Any, words: str) -> None:
    found = run(of_checkpoint(checkpoint), coordinator := Coordinator())
    assert found.failure is not None
    assert (found.failure.cause, steps(coordinator, found)) == ("result", [1])
    assert words in found.failure.reason


@pytest.mark.parametrize("path", ["s3://bucket/a.pt", "a b", "\udcff.pt", "x" * 4096])
def test_any_text_may_be_a_path(path: str) -> None:
    run(of_checkpoint(path), coordinator := Coordinator())
    assert coordinator.batches[-1].checkpoint == (2, path)


def starts_anew(config: Any, resume: str | None = None) -> float:
    raybo.report(1.0, step=1)
    return 2.0


def has_nothing_left(config: Any, resume: str | None = None) -> Iterator[float]:
    yield from ()


def has_lost_it(config: Any, resume: str | None = None) -> Iterator[float]:
    with open(str(resume)):
        yield 1.0


@pytest.mark.parametrize(
    ("train", "words"),
    [
        (starts_anew, "step 1 was reported after step 3; steps increase, and this trial was res"),
        (has_nothing_left, "the generator, resumed after step 3, ended without yielding a value"),
        (has_lost_it, "FileNotFoundError: [Errno 2] No such file or directory: 'gone.pt'"),
    ],
)
def test_what_goes_wrong_after_a_resumption_is_said(train: Any, words: str) -> None:
    found = run(train, begin=Checkpoint(3, "gone.pt"))
    assert found.failure is not None
    assert words in found.failure.reason


def test_the_value_over_instances_is_their_mean() -> None:
    coordinator = Coordinator()
    found = run(counting(4), coordinator, Steps(4, over="instances"))
    values = [0.5 + 1 / n for n in (1, 2, 3, 4)]
    assert found.value == pytest.approx(sum(values) / 4)
    assert [value for _, value in found.reports.steps][1] == pytest.approx(sum(values[:2]) / 2)


def test_outside_of_a_study_nothing_is_reported() -> None:
    assert raybo.report(math.nan, step=-1)
