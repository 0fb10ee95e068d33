"""Coroutines in one process, without Ray."""

# ruff: noqa: T201  (printing is tested, too)

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import raybo
from raybo.runtime.evaluations import evaluator as module
from raybo.runtime.evaluations import reports
from raybo.runtime.evaluations.evaluate import Evaluation, Work, evaluate, is_async
from raybo.runtime.evaluations.evaluator import Evaluator, Order
from raybo.runtime.evaluations.output import share_streams
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.steps import Steps
from raybo.study.trial import Batch

SPACE = Space({"x": Float(0, 1)})


class Coordinator:
    """Takes batches, and stops trials at a step."""

    def __init__(self, stop_at: float = float("inf")) -> None:
        self.batches: list[tuple[str, Batch]] = []
        self.stop_at = stop_at

    async def report(self, attempt: str, batch: Batch) -> bool:
        await asyncio.sleep(0.01)  # the way there and back
        self.batches.append((attempt, batch))
        return batch.steps[-1][0] < self.stop_at


def run(
    function: Callable[..., Any],
    xs: list[float],
    coordinator: Coordinator | None = None,
    steps: Steps | None = None,
    folder: Path | None = None,
    **goal: Any,
) -> dict[float, Evaluation]:
    """Evaluate all `xs` at a time; return the evaluations by x."""
    work = Work(function, SPACE, Objective(**goal), folder and str(folder), steps or Steps())

    async def go() -> dict[float, Evaluation]:
        evaluator = Evaluator(work, (coordinator or Coordinator()).report)
        evaluator.start([Order(f"1.{i}.{i}", {"x": x}) for i, x in enumerate(xs)])
        found: dict[str, Evaluation] = {}
        while len(found) < len(xs):
            found.update(await evaluator.ended())
        return {x: found[f"1.{i}.{i}"] for i, x in enumerate(xs)}

    return asyncio.run(asyncio.wait_for(go(), 30))


def test_coroutines_wait_together() -> None:
    active: list[int] = [0, 0]  # now, at most

    async def job(config: Any) -> float:
        active[0] += 1
        active[1] = max(active)
        await asyncio.sleep(0.1)
        active[0] -= 1
        return float(config["x"])

    xs = [i / 300 for i in range(300)]
    assert {x: found.value for x, found in run(job, xs).items()} == {x: x for x in xs}
    assert active == [0, 300]


def test_what_a_coroutine_raises_or_returns_is_recorded() -> None:
    async def job(config: Any) -> Any:
        await asyncio.sleep(0)
        if config["x"] == 0.0:
            raise ValueError("low")
        if config["x"] == 1.0:
            raise SystemExit(3)
        return {0.25: None, 0.5: {"loss": 2, "size": 3}, 0.75: {"size": 3}}[config["x"]]

    found = run(job, [0.0, 0.25, 0.5, 0.75, 1.0], metric="loss", constraints={"size": (None, 4)})
    causes = {x: f.failure and f.failure.cause for x, f in found.items()}
    assert causes == {
        0.0: "exception",
        0.25: "metric",
        0.5: None,
        0.75: "metric",
        1.0: "exception",
    }
    assert (found[0.5].value, found[0.5].extra) == (2.0, {"size": 3.0})
    failure = found[0.0].failure
    assert failure is not None
    assert failure.reason.startswith("ValueError: low (test_evaluator.py:")


def counting(n: int) -> Callable[[Any], AsyncIterator[float]]:
    async def train(config: Any) -> AsyncIterator[float]:
        for step in range(1, n + 1):
            await asyncio.sleep(0)
            yield config["x"] + 1 / step

    return train


def asking(n: int) -> Callable[[Any], Coroutine[Any, Any, float]]:
    async def train(config: Any) -> float:
        for step in range(1, n + 1):
            if not raybo.report(config["x"] + 1 / step):
                return -1.0  # of a trial that is over: does not count
            await asyncio.sleep(0.02)
        return 7.0

    return train


def in_thread(n: int) -> Callable[[Any], Coroutine[Any, Any, float]]:
    def train(config: Any) -> float:
        for step in range(1, n + 1):
            if not raybo.report(config["x"] + 1 / step):
                return -1.0
        return 7.0

    async def job(config: Any) -> float:
        return await asyncio.to_thread(train, config)

    return job


@pytest.mark.parametrize("make", [counting, asking, in_thread])
def test_a_trial_is_stopped_at_a_rung(make: Any) -> None:
    coordinator = Coordinator(stop_at=7)
    found = run(make(20), [0.25, 0.5], coordinator, Steps(20, stop_early=True))
    assert [(f.value, f.failure) for f in found.values()] == [(None, None)] * 2
    sent = [s for a, batch in coordinator.batches if a == "1.0.0" for s, _ in batch.steps]
    last = [step for step, _ in found[0.25].reports.steps]
    rungs = [b.steps[-1][0] for a, b in coordinator.batches if a == "1.1.1"]
    assert rungs == [3, 7]
    assert [*sent, *last][:7] == list(range(1, 8))
    assert len([*sent, *last]) <= (9 if make is asking else 7)  # a report does not wait


def test_the_last_value_of_an_async_generator_counts() -> None:
    found = run(counting(4), [0.0, 0.5])
    assert [f.value for f in found.values()] == [0.25, 0.75]
    assert [step for step, _ in found[0.5].reports.steps] == [1, 2, 3, 4]


def test_an_attempt_ends_when_its_reports_have_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the coordinator, having done with it, would not take the last ones."""
    monkeypatch.setattr(reports, "BATCH_SECONDS", 0.0)  # each report is a message
    arrived: list[int] = []

    class Slow(Coordinator):
        async def report(self, attempt: str, batch: Batch) -> bool:
            await asyncio.sleep(0.2)
            arrived.extend(step for step, _ in batch.steps)
            return True

    async def train(config: Any) -> AsyncIterator[float]:
        for _ in range(4):
            yield config["x"]

    left = run(train, [1.0], Slow(), Steps(max_steps=4))[1.0].reports.steps
    assert [*arrived, *(step for step, _ in left)] == [1, 2, 3, 4]


def test_each_coroutine_prints_to_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def job(config: Any) -> float:
        for word in ("one", "two"):
            print(word, config["x"])
            await asyncio.sleep(0.01)
            await asyncio.to_thread(print, "in a thread", file=sys.stderr)
        return 0.0

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))  # restored at the end
    share_streams()
    run(job, [0.25, 0.5], folder=tmp_path)
    print("outside")
    shown = capsys.readouterr()
    assert sorted(shown.out.splitlines()) == [
        "outside",
        "trial 0 | one 0.25",
        "trial 0 | two 0.25",
        "trial 1 | one 0.5",
        "trial 1 | two 0.5",
    ]
    kept = (tmp_path / "output" / "1.txt").read_text()
    assert kept == "one 0.5\nin a thread\ntwo 0.5\nin a thread\n"


def test_a_stream_that_does_not_count_what_it_writes_is_shared_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[str] = []

    class Stream:  # as those of Ray's workers
        write = written.append

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Stream())
    share_streams()
    print("outside")
    print("in no coroutine", file=sys.stderr)
    assert "".join(written) == "outside\nin no coroutine\n"


def test_cancelled_coroutines_clean_up_and_stubborn_ones_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CANCEL_SECONDS", 0.1)
    cleaned: list[float] = []

    async def job(config: Any) -> float:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if config["x"] == 1.0:
                await asyncio.sleep(0.5)
            raise
        finally:
            cleaned.append(config["x"])
        return 0.0

    async def go() -> list[str]:
        evaluator = Evaluator(Work(job, SPACE, Objective()), Coordinator().report)
        evaluator.start([Order(f"1.{i}.1", {"x": float(i)}) for i in range(2)])
        await asyncio.sleep(0.01)
        return await evaluator.cancel(["1.0.1", "1.1.1", "1.7.1"])

    assert asyncio.run(go()) == ["1.1.1"]
    assert cleaned[0] == 0.0


def test_async_objectives_are_known_in_all_their_forms() -> None:
    async def job(config: Any, power: int = 1) -> float:
        return float(config["x"]) ** power

    class Job:
        async def __call__(self, config: Any) -> float:
            return float(config["x"])

    class Plain:
        def __call__(self, config: Any) -> float:
            return float(config["x"])

    assert all(map(is_async, (job, counting(3), functools.partial(job, power=2), Job())))
    assert not any(map(is_async, (evaluate, Plain(), lambda config: job(config), len)))


def test_a_function_that_returns_a_coroutine_is_told_what_to_give() -> None:
    async def job(config: Any) -> float:
        return float(config["x"])

    found = evaluate(Work(lambda config: job(config), SPACE, Objective()), {"x": 0.5})
    assert found.failure is not None
    assert "give the async function itself" in found.failure.reason
