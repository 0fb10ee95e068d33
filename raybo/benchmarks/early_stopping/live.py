"""Trainings that are run rather than looked up: a network on one GPU, several at a time.

    raybo bench early-stopping --tasks cifar10-cnn --tuners bo,bo+stop,random+asha3 --seeds 3

`small_cnn.py` has the network, which is trained for 27 epochs. Time is real, in full trainings:
the time in which the workers complete one of a random config.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait

from raybo.benchmarks.early_stopping.simulator import Trace
from raybo.benchmarks.early_stopping.tuners import Tuner, build
from raybo.benchmarks.problems.networks.small_cnn import EPOCHS, SPACE, accuracies

_CALIBRATION = 40.0  # seconds of random trainings, in which an H200 completes about 14


def train_forever(connection: Connection, device: str) -> None:
    """Say that the process is ready, then train the configs that are sent.

    After each epoch it sends the accuracy and waits for a word: True to go on, or another config
    to train instead. It ends when nobody listens.
    """
    with suppress(EOFError, ConnectionError):
        connection.send(None)
        word = connection.recv()
        while True:
            config = word
            for accuracy in accuracies(config, device):
                connection.send(accuracy)
                word = connection.recv()
                if word is not True:
                    break


@contextmanager
def trainers(n: int, device: str) -> Iterator[Sequence[Connection]]:
    """Return connections to n processes that train."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(n)]
    processes = [
        context.Process(target=train_forever, args=(theirs, device), daemon=True)
        for _, theirs in pipes
    ]
    for process in processes:
        process.start()
    try:
        yield [ours for ours, _ in pipes]
    finally:
        for process in processes:
            process.terminate()


def tune(tuner: Tuner, ends: Sequence[Connection], unit: float, trainings: float) -> Trace:
    """Run a tuner for the time of so many full trainings, each of `unit` seconds.

    What the processes still train from before is not looked at.
    """
    best: list[tuple[float, float]] = []
    running: dict[Connection, tuple[int, int]] = {}  # trial and epochs so far
    trials = complete = 0
    begun, clock = time.perf_counter(), time.process_time()
    while (now := (time.perf_counter() - begun) / unit) <= trainings:
        ready = wait(ends, timeout=unit)
        for end in (end for end in ends if end in ready):
            value = end.recv()
            if end in running:
                trial, epoch = running[end]
                if not best or value > best[-1][1]:
                    best.append((now, value))
                goes_on = tuner.report(trial, epoch + 1, value)
                complete += epoch + 1 == EPOCHS
                if goes_on and epoch + 1 < EPOCHS:
                    running[end] = trial, epoch + 1
                    end.send(True)
                    continue
            running[end] = trials, 0
            end.send(tuner.ask(trials))
            trials += 1
    return Trace(best, trials, complete, time.process_time() - clock)


def full_training(ends: Sequence[Connection]) -> float:
    """Return the seconds in which the processes complete one training of a random config."""
    warm, measured = (build("random", SPACE, seed, EPOCHS) for seed in (0, 1))
    tune(warm, ends, 1.0, _CALIBRATION / 4)  # the first epochs load the data
    return _CALIBRATION / max(1, tune(measured, ends, 1.0, _CALIBRATION).complete)
