from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from raybo.benchmarks.terminal import THREAD_VARIABLES
from raybo.benchmarks.timing.scale import command, waits, write_study
from raybo.result import load_result
from raybo.study.trial import Trial


def test_a_slot_waits_from_the_end_of_a_trial_to_the_next_start() -> None:
    spans = [(0.0, 4.0), (0.0, 2.0), (2.5, 7.0), (4.25, 5.0)]
    trials = [Trial(n, {}, started=a, finished=b) for n, (a, b) in enumerate(spans)]
    assert waits(trials, 2) == pytest.approx([0.5, 0.25])


def test_the_study_that_is_written_can_be_read(tmp_path: Path) -> None:
    write_study(tmp_path, "big", 230)
    result = load_result("big", tmp_path)
    assert len(result.trials) == 230
    assert result.best_value == min(trial.value or 0.0 for trial in result.trials)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("proposals", "bo, 30 results, 5 pending: CPU seconds of a proposal after a result"),
        ("growth", "60 trials: size of the report"),
    ],
)
def test_a_part_prints_its_rows(part: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    options = f"--only {part} --workers 5 --results 30 --journal 60"
    done = CliRunner().invoke(command, options.split(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert shown in done.output
