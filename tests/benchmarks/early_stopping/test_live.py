"""Trainings that are run: what the processes and the tuner tell each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from raybo.benchmarks.early_stopping import live
from raybo.benchmarks.early_stopping.tuners import build
from raybo.benchmarks.problems.networks.small_cnn import EPOCHS, SPACE

SECONDS = 0.01  # of an epoch


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Connection]]:
    """Two that train, as threads: 27 epochs of a hundredth of a second, ever better."""

    def accuracies(config: Any, device: str) -> Iterator[float]:
        assert device == "nowhere"
        for epoch in range(1, EPOCHS + 1):
            time.sleep(SECONDS)
            yield 100 * config["momentum"] * (1 - 0.5**epoch)

    monkeypatch.setattr(live, "accuracies", accuracies)
    pipes = [Pipe() for _ in range(2)]
    threads = [
        threading.Thread(target=live.train_forever, args=(theirs, "nowhere"), daemon=True)
        for _, theirs in pipes
    ]
    for thread in threads:
        thread.start()
    yield [ours for ours, _ in pipes]
    for ours, _ in pipes:
        ours.close()
    for thread in threads:  # before `accuracies` is the real one again
        thread.join()


def test_all_trainings_run_to_their_end_without_a_rule(ends: list[Connection]) -> None:
    trace = live.tune(build("random", SPACE, 0, EPOCHS), ends, SECONDS * 27, 6)
    assert trace.complete >= 2
    assert trace.trials - trace.complete == 2  # that have just begun
    assert trace.best == sorted(trace.best)
    assert trace.at(6) > 50.0


def test_stopped_trainings_make_room(ends: list[Connection]) -> None:
    trace = live.tune(build("random+asha3", SPACE, 0, EPOCHS), ends, SECONDS * 27, 6)
    assert trace.trials > 2 * trace.complete + 2


def test_a_run_does_not_hear_of_the_one_before(ends: list[Connection]) -> None:
    for seed in range(2):  # a report of a trial that is not known would be an error
        tuner = build("random+stop", SPACE, seed, EPOCHS)
        assert live.tune(tuner, ends, SECONDS * 27, 3).trials > 2
