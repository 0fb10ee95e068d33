"""Trials that go on from their checkpoints, on a real local Ray: after a pause, after a crash."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import raybo
from raybo import Float
from raybo.result import load_result
from raybo.study.journal.journal import JOURNAL_FILE, parse_journal
from raybo.study.outcome import load_record
from raybo.study.trial import State, Trial
from raybo.views.status import status_of

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]

EPOCHS = 20
FULL = list(range(1, EPOCHS + 1))
WORSE_AND_WORSE = [{"x": n / 12} for n in range(12)]  # each trial is worse than the last


def run(tmp_path: Path, objective: Any, **options: Any) -> raybo.Result:
    options = {"method": "random", "workers": 3, "progress": False, "name": "p", **options}
    steps = {"max_steps": EPOCHS, "stop_early": True, "points": WORSE_AND_WORSE}
    space = {"x": Float(0, 1)}
    return raybo.optimize(
        objective, space, storage=tmp_path, **{"max_trials": 12, **steps, **options}
    )


def kinds(tmp_path: Path) -> list[str]:
    """Kinds of the events of the journal so far."""
    path = tmp_path / "p" / JOURNAL_FILE
    return (
        [e["kind"] for e in parse_journal(path.read_bytes(), "").events] if path.exists() else []
    )


def make_training(folder: Path, seconds: float = 0.0) -> Any:
    """A training that keeps its epochs and their losses in a file for each epoch."""

    def train(config: dict[str, Any], resume: str | None = None) -> Iterator[Any]:
        losses = json.loads(Path(resume).read_text()) if resume else []
        print("begins after", len(losses))  # noqa: T201  (kept by trial)
        try:
            for epoch in range(len(losses) + 1, EPOCHS + 1):
                time.sleep(seconds)
                losses.append(config["x"] + 1 / epoch)
                path = folder / f"{config['x']}-{epoch}.json"
                path.write_text(json.dumps(losses))
                yield losses[-1], path
                (folder / f"{config['x']}-{epoch - 1}.json").unlink(missing_ok=True)
        finally:
            print("closed after", len(losses))  # noqa: T201  (kept by trial)

    return train


def make_function(folder: Path) -> Any:
    """The same as an ordinary function."""
    training = make_training(folder)

    def train(config: dict[str, Any], resume: str | None = None) -> float | None:
        for loss, path in training(config, resume):
            if not raybo.report(loss, checkpoint=path):
                return None
        return float(loss)

    return train


def make_coroutine(folder: Path) -> Any:
    """The same as an async generator."""
    training = make_training(folder)

    async def train(config: dict[str, Any], resume: str | None = None) -> AsyncIterator[Any]:
        for loss, path in training(config, resume):
            yield loss, path

    return train


def check(result: raybo.Result) -> None:
    """The best third of a rung has gone on, and every curve is whole."""
    trials = result.trials
    assert {t.state for t in trials} == {State.DONE, State.STOPPED}
    for trial in trials:
        assert list(trial.curve) == FULL[: max(trial.curve)]
        assert trial.curve == {s: trial.config["x"] + 1 / s for s in trial.curve}
        assert trial.checkpoint is not None
        assert trial.checkpoint.step == max(trial.curve)
        assert len(json.loads(Path(trial.checkpoint.path).read_text())) == max(trial.curve)
    for step in (3, 7):
        came = sorted((t for t in trials if max(t.curve) >= step), key=lambda t: t.config["x"])
        assert all(max(t.curve) > step for t in came[: -(-len(came) // 3)])
    assert {max(t.curve) for t in trials if t.state is State.STOPPED} <= {3, 7}


def test_a_training_is_paused_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    called: list[int] = []
    result = run(
        tmp_path, make_training(tmp_path), callbacks=[lambda trial: called.append(trial.number)]
    )
    check(result)
    promoted = [t for t in result.trials if t.attempts > 1]
    assert promoted
    for trial in promoted:
        printed = (tmp_path / "p" / "output" / f"{trial.number}.txt").read_text().splitlines()
        ends = [int(line.split()[-1]) for line in printed if line.startswith("closed")]
        begins = [int(line.split()[-1]) for line in printed if line.startswith("begins")]
        assert begins == [0, *ends[:-1]]
        assert ends[-1] == max(trial.curve)
        assert len(ends) == trial.attempts
    assert sorted(called) == list(range(12))  # once each, whatever happened
    stopped = [t.number for t in result.trials if t.state is State.STOPPED]
    assert result.paused == set(stopped)
    facts = status_of("p", str(tmp_path))
    assert (facts["stopped"], facts["paused"], facts["pending"]) == (len(stopped),) * 2 + (0,)
    paths = [t.checkpoint.path for t in result.trials if t.checkpoint]
    assert result.to_dataframe()["checkpoint"].tolist() == paths
    assert load_result("p", tmp_path).trials == result.trials


@pytest.mark.parametrize("make", [make_function, make_coroutine])
def test_functions_and_async_generators_go_on_too(make: Any, tmp_path: Path) -> None:
    result = run(tmp_path, make(tmp_path))
    check(result)
    assert "promoted" in kinds(tmp_path)


def test_a_killed_coordinator_forgets_no_pause_and_no_checkpoint(
    tmp_path: Path, pid_of_actor: Callable[[str], int | None]
) -> None:
    killed: list[str] = []

    def kill() -> None:
        for kind in ("paused", "promoted"):
            deadline = time.monotonic() + 60
            while kind not in kinds(tmp_path) or (pid := pid_of_actor("CoordinatorActor")) is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
            killed.append(kind)

    thread = threading.Thread(target=kill)
    thread.start()
    result = run(tmp_path, make_training(tmp_path, seconds=0.05))
    thread.join()
    assert killed == ["paused", "promoted"]
    assert len(result.trials) == 12
    check(result)


def test_a_study_that_was_interrupted_goes_on_with_its_paused_trials(tmp_path: Path) -> None:
    def stop(trial: Trial) -> None:
        raise StopIteration

    train = make_training(tmp_path)
    first = run(tmp_path, train, callbacks=[stop], workers=1)
    assert len(first.trials) < 12
    second = run(tmp_path, train)
    check(second)
    assert len(second.trials) == 12
    n = len(kinds(tmp_path))
    run(tmp_path, train, points=())  # has its trials already, and none to promote
    assert len(kinds(tmp_path)) == n


def test_a_killed_worker_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    def train(config: dict[str, Any], resume: str | None = None) -> Iterator[Any]:
        for epoch in range(int(resume or 0) + 1, EPOCHS + 1):
            print("epoch", epoch)  # noqa: T201  (kept by trial)
            if epoch == 6 and resume is None:
                os.kill(os.getpid(), signal.SIGKILL)
            yield config["x"] + 1 / epoch, str(epoch)

    result = run(tmp_path, train, max_trials=1, stop_early=False)
    (trial,) = result.trials
    assert (trial.state, trial.attempts) == (State.DONE, 2)
    assert trial.curve == {s: 1 / s for s in FULL}
    printed = (tmp_path / "p" / "output" / "0.txt").read_text().split()
    assert printed == [word for n in (1, 2, 3, 4, 5, 6, *FULL[5:]) for word in ("epoch", str(n))]


def test_a_checkpoint_that_is_gone_fails_the_trial_with_its_own_message(tmp_path: Path) -> None:
    def train(config: dict[str, Any], resume: str | None = None) -> Iterator[Any]:
        if resume:
            raise LookupError(f"there is no {resume}")
        for epoch in FULL:
            yield config["x"] + 1 / epoch, "gone.pt"

    result = run(tmp_path, train)
    failed = [t for t in result.trials if t.state is State.FAILED]
    assert failed
    assert all("LookupError: there is no gone.pt" in str(t.reason) for t in failed)
    assert all(max(t.curve) in (3, 7) for t in failed)
    assert load_record("p", tmp_path).n_ended == 12
