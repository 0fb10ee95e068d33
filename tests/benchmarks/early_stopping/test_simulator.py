"""Trainings in simulated time."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybo.arrays import Array
from raybo.benchmarks.early_stopping.program import Run, append, read, table_of
from raybo.benchmarks.early_stopping.simulator import Trace, simulate
from raybo.benchmarks.early_stopping.tuners import build
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.terminal import wide_console
from raybo.errors import MethodError
from raybo.space.parameters import Float
from raybo.space.space import Space

SPACE = Space({"x": Float(0, 1)})
STORED = sorted((Path(__file__).parents[3] / "examples/results/early_stopping").glob("*.jsonl"))


class Networks:
    """Ten epochs of a second each; the accuracy grows to 100 x."""

    def curve(self, config: Any) -> tuple[Array, Array]:
        epochs = np.arange(1, 11)
        return 100 * config["x"] * (1 - 0.5**epochs), epochs.astype(float)


class Same:
    """Proposes the same config again and again; stops every training at an epoch."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.seen: list[tuple[int, int]] = []

    def ask(self, trial: int) -> Any:
        return {"x": 0.5}

    def report(self, trial: int, step: int, value: float) -> bool:
        self.seen.append((trial, step))
        return step != self.stop_at


def test_the_time_of_full_trainings_is_shared_by_the_workers() -> None:
    tuner = Same()
    trace = simulate(tuner, Networks(), SPACE, workers=4, trainings=8)
    assert trace.complete == 8
    assert trace.trials == 12  # eight complete, four that have just begun
    assert trace.at(100) == pytest.approx(50 * (1 - 0.5**10))
    assert tuner.seen[:5] == [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2)]


def test_a_training_that_is_stopped_makes_room_for_another() -> None:
    trace = simulate(Same(stop_at=2), Networks(), SPACE, workers=4, trainings=8)
    assert trace.complete == 0
    assert trace.trials == 4 * (20 // 2) + 4


def test_a_trace_says_how_good_and_how_soon() -> None:
    trace = Trace([(1.0, 10.0), (4.0, 30.0)], 5, 2, 0.0)
    assert np.isnan(trace.at(0.5))
    assert (trace.at(1.0), trace.at(3.9), trace.at(9.0)) == (10.0, 10.0, 30.0)
    assert (trace.reaches(5.0), trace.reaches(30.0)) == (1.0, 4.0)
    assert trace.reaches(31.0) == np.inf


@pytest.mark.parametrize("name", ["random+stop", "random+asha", "random+asha3", "bo+stop"])
def test_early_stopping_sees_more_configs_in_the_same_time(name: str) -> None:
    plain, early = (
        simulate(build(tuner, SPACE, 0, 10), Networks(), SPACE, 3, 8)
        for tuner in (name.partition("+")[0], name)
    )
    assert early.trials > plain.trials
    assert early.complete < plain.complete
    assert early.at(8) > 50.0


def test_asha_keeps_the_best_third_of_a_rung() -> None:
    tuner = build("random+asha3", SPACE, 0, 10)
    for trial in range(9):
        tuner.ask(trial)
    kept = [tuner.report(trial, 3, value) for trial, value in enumerate(range(9, 0, -1))]
    assert kept == [True] + [False] * 8  # each is worse than all before it
    assert tuner.report(0, 4, 1.0)


@pytest.mark.parametrize("name", ["bo+halving", "nothing+asha"])
def test_an_unknown_tuner_is_refused(name: str) -> None:
    with pytest.raises((BenchmarkError, MethodError), match="not known"):
        build(name, SPACE, 0, 10)


@pytest.mark.parametrize("name", ["syne-mobster", "syne-hypertune"])
def test_schedulers_of_syne_tune(name: str) -> None:
    if find_spec("syne_tune") is None:
        with pytest.raises(BenchmarkError, match=r"pip install --no-deps syne-tune==0\.13\.0"):
            build(name, SPACE, 0, 10)
        return
    trace = simulate(build(name, SPACE, 0, 10), Networks(), SPACE, 3, 8)
    assert trace.complete < trace.trials > 11
    assert trace.at(8) > 50.0


def test_results_are_continued_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    assert read(path) == []
    runs = [
        Run("bo", "a", 0, 10.0, 8, Trace([(5.0, 80.0), (10.0, 90.0)], 12, 9, 1.2)),
        Run("bo+stop", "a", 0, 10.0, 8, Trace([(2.5, 90.0)], 40, 9, 4.0)),
    ]
    for run in runs:
        append(path, run)
    assert read(path) == runs
    console = wide_console()
    with console.capture() as shown:
        console.print(table_of(runs, ["bo", "bo+stop"]))
    row = next(line for line in shown.get().splitlines() if "bo+stop" in line)
    assert [cell.strip() for cell in row.split("│")[2:7]] == [
        "nan",
        "90.00",
        "90.00",
        "0.25",
        "0 : 0",
    ]


def test_stored_runs_are_read_and_written_as_they_are(tmp_path):
    assert STORED
    for path in STORED:
        again = tmp_path / path.name
        for run in read(path):
            append(again, run)
        assert again.read_text() == path.read_text(), path.name
