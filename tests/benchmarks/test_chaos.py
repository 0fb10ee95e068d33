"""The chaos benchmark: a small run on a real Ray, and that its examination can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ray

from raybo.benchmarks.faults.chaos import Attack, endure, kill_worker, make_kill_coordinator
from raybo.benchmarks.faults.audit import STUDY, Receipt, append_line, examine, write_result
from raybo.benchmarks.faults.damage import count_bad_cuts, count_unnoticed_flips
from raybo.study.journal.journal import JOURNAL_FILE, Journal
from raybo.study.trial import State, Trial

TRIALS = [Trial(n, {"x": n / 8}, value=n + 0.5, state=State.DONE) for n in range(4)]


def write_study(folder: Path, trials: list[Trial] = TRIALS, handed: list[Trial] = TRIALS) -> None:
    """Journal and evidence of a study without faults."""
    journal = Journal(folder / STUDY)
    for trial in trials:
        journal.append({"kind": "asked", "number": trial.number, "config": trial.config})
    for trial in trials:
        journal.append({"kind": "done", "number": trial.number, "value": trial.value})
    journal.close()
    for trial in TRIALS:
        note: dict[str, Any] = {"pid": 1, "x": trial.config["x"]}
        append_line(folder / "evaluations.log", {"what": "begin", **note})
        append_line(folder / "evaluations.log", {"what": "end", **note, "value": trial.value})
    for trial in handed:
        Receipt(folder).on_trial(trial)
    write_result(folder, trials)


def test_a_good_study_is_found_good(tmp_path: Path) -> None:
    write_study(tmp_path)
    found = examine(tmp_path, 4, {0: (0.0, 0.5)}, all_handed=True)
    assert (found.done, found.failed, found.evaluations) == (4, 0, 4)
    assert not found.lost | found.twice | found.stuck


def test_a_result_that_is_gone_from_the_journal_is_lost(tmp_path: Path) -> None:
    write_study(tmp_path, TRIALS[:3], TRIALS)
    found = examine(tmp_path, 4, {}, all_handed=False)
    assert (found.lost, found.stuck) == ({3}, {3})


def test_a_result_that_was_seen_and_evaluated_again_is_lost(tmp_path: Path) -> None:
    write_study(tmp_path)
    assert examine(tmp_path, 4, {2: (0.25, 99.0)}, all_handed=False).lost == {2}


def test_a_result_that_no_evaluation_gave_is_not_accepted(tmp_path: Path) -> None:
    invented = [*TRIALS[:3], Trial(3, {"x": 3 / 8}, value=7.0, state=State.DONE)]
    write_study(tmp_path, invented, invented)
    assert examine(tmp_path, 4, {}, all_handed=True).lost == {3}


def test_a_result_that_the_driver_was_not_told_of_is_lost_unless_it_was_killed(
    tmp_path: Path,
) -> None:
    write_study(tmp_path, handed=TRIALS[:3])
    assert examine(tmp_path, 4, {}, all_handed=True).lost == {3}
    assert not examine(tmp_path, 4, {}, all_handed=False).lost


def test_a_result_that_is_handed_over_twice_is_counted_twice(tmp_path: Path) -> None:
    write_study(tmp_path, handed=[*TRIALS, TRIALS[1]])
    assert examine(tmp_path, 4, {}, all_handed=True).twice == {1}


def test_two_trials_with_one_evaluation_are_counted_twice(tmp_path: Path) -> None:
    twin = [*TRIALS[:3], Trial(3, TRIALS[2].config, value=TRIALS[2].value, state=State.DONE)]
    write_study(tmp_path, twin, twin)
    assert examine(tmp_path, 4, {}, all_handed=True).twice == {2, 3}


def test_cuts_and_flips_of_a_journal_are_noticed_and_the_check_can_fail(tmp_path: Path) -> None:
    write_study(tmp_path)
    data = (tmp_path / STUDY / JOURNAL_FILE).read_bytes()
    cuts, bad = count_bad_cuts(data, records=2)
    assert cuts == sum(map(len, data.splitlines(keepends=True)[-2:])) + 1
    assert (bad, count_unnoticed_flips(data, flips=40)) == (0, 0)


def test_a_cut_that_loses_a_whole_record_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path)
    data = (tmp_path / STUDY / JOURNAL_FILE).read_bytes()
    monkeypatch.setattr("raybo.study.journal.journal._complete_record", lambda *_: None)
    assert count_bad_cuts(data, records=2)[1] == 2  # the two cuts before a newline


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_kills_of_workers_and_a_coordinator_lose_nothing_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    turns = [kill_worker, make_kill_coordinator(), kill_worker, kill_worker]

    def strike(attack: Attack) -> bool:
        fell = turns[0](attack)
        if fell:
            turns.pop(0)
        return fell

    verdict = endure("test", strike, tmp_path / "chaos", 12, len(turns), patience=120.0)
    assert verdict.good, vars(verdict)
    assert (verdict.done, verdict.blows, turns) == (12, 4, [])
