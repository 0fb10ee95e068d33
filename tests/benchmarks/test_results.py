from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.results import Deployed, Finished, append_finished, read_finished
from raybo.benchmarks.tables.base import Cell

RUNS = [
    Finished(
        Cell("branin", "bo", seed, 2, True), "min", 0.4, [3.0, 1.0 / 3.0], [0.1, 0.2], "raybo 1"
    )
    for seed in range(3)
]
STORED = sorted((Path(__file__).parents[2] / "examples" / "results").glob("*.jsonl"))


def test_runs_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    for run in RUNS:
        append_finished(path, run)
    assert read_finished(path) == RUNS
    assert read_finished(tmp_path / "absent.jsonl") == []


def test_a_noisy_problem_s_run_is_read_as_it_was_written(tmp_path):
    run = replace(RUNS[0], deployed=[Deployed(1, 3.0, 2.0), Deployed(2, 1.0, 0.5)])
    append_finished(tmp_path / "r", run)
    assert read_finished(tmp_path / "r") == [run]
    assert read_finished(tmp_path / "r")[0].deployed[1].recommended == 0.5
    assert "deployed" not in RUNS[0].to_json()


def test_stored_results_are_read_and_written_as_they_are():
    assert STORED
    for path in STORED:
        with path.open(encoding="utf-8") as file:
            line = file.readline().rstrip()
        assert json.dumps(Finished.from_json(json.loads(line)).to_json()) == line, path.name


def test_an_unfinished_last_line_is_left_out_and_cut_off(tmp_path):
    path = tmp_path / "results.jsonl"
    for run in RUNS[:2]:
        append_finished(path, run)
    path.write_bytes(path.read_bytes()[:-30])
    assert read_finished(path) == RUNS[:1]
    append_finished(path, RUNS[2])
    assert read_finished(path) == [RUNS[0], RUNS[2]]


@pytest.mark.parametrize("line", ['{"problem": "branin"}', "[]", "branin", '{"rival": 1}'])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "results.jsonl"
    append_finished(path, RUNS[0])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BenchmarkError, match=r"results\.jsonl:2: not a benchmark record"):
        read_finished(path)
