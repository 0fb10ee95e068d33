"""The audit of a study whose processes are killed finds every kind of fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.benchmarks.faults.audit import STUDY, LogCallback, append_line, examine, write_result
from raybo.study.journal.journal import Journal
from raybo.study.trial import State, Trial

TRIALS = [Trial(n, {"x": n / 8}, value=n + 0.5, state=State.DONE) for n in range(4)]


def write_study(
    folder: Path, trials: list[Trial] = TRIALS, received: list[Trial] = TRIALS
) -> None:
    """Write the journal and the logs of a study without faults."""
    journal = Journal(folder / STUDY)
    for trial in trials:
        journal.append({"kind": "asked", "number": trial.number, "config": trial.config})
    for trial in trials:
        journal.append({"kind": "done", "number": trial.number, "value": trial.value})
    journal.close()
    for trial in TRIALS:
        note: dict[str, Any] = {"pid": 1, "x": trial.config["x"]}
        append_line(folder / "evaluations.log", {"what": "start", **note})
        append_line(folder / "evaluations.log", {"what": "end", **note, "value": trial.value})
    for trial in received:
        LogCallback(folder).on_trial(trial)
    write_result(folder, trials)


def test_a_good_study_is_found_good(tmp_path: Path) -> None:
    write_study(tmp_path)
    found = examine(tmp_path, 4, {0: (0.0, 0.5)}, all_received=True)
    assert (found.done, found.failed, found.evaluations) == (4, 0, 4)
    assert not found.lost | found.twice | found.stuck


def test_a_result_that_is_gone_from_the_journal_is_lost(tmp_path: Path) -> None:
    write_study(tmp_path, TRIALS[:3], TRIALS)
    found = examine(tmp_path, 4, {}, all_received=False)
    assert (found.lost, found.stuck) == ({3}, {3})


def test_a_result_that_was_seen_and_evaluated_again_is_lost(tmp_path: Path) -> None:
    write_study(tmp_path)
    assert examine(tmp_path, 4, {2: (0.25, 99.0)}, all_received=False).lost == {2}


def test_a_result_that_no_evaluation_returned_is_not_accepted(tmp_path: Path) -> None:
    invented = [*TRIALS[:3], Trial(3, {"x": 3 / 8}, value=7.0, state=State.DONE)]
    write_study(tmp_path, invented, invented)
    assert examine(tmp_path, 4, {}, all_received=True).lost == {3}


def test_a_result_that_the_driver_did_not_receive_is_lost_unless_it_was_killed(
    tmp_path: Path,
) -> None:
    write_study(tmp_path, received=TRIALS[:3])
    assert examine(tmp_path, 4, {}, all_received=True).lost == {3}
    assert not examine(tmp_path, 4, {}, all_received=False).lost


def test_a_result_that_is_received_twice_is_counted_twice(tmp_path: Path) -> None:
    write_study(tmp_path, received=[*TRIALS, TRIALS[1]])
    assert examine(tmp_path, 4, {}, all_received=True).twice == {1}


def test_a_checkpoint_from_which_a_trial_did_not_go_on_is_lost(tmp_path: Path) -> None:
    write_study(tmp_path)
    log = tmp_path / "evaluations.log"
    journal = Journal(tmp_path / STUDY)
    journal.append({"kind": "asked", "number": 4, "config": {"x": 0.9}})
    journal.append({"kind": "report", "number": 4, "steps": [[3, 1.0]], "checkpoint": [3, "3"]})
    journal.append({"kind": "paused", "number": 4})
    journal.close()
    LogCallback(tmp_path).on_trial(paused := Trial(4, {"x": 0.9}, state=State.STOPPED))
    write_result(tmp_path, [*TRIALS, paused])
    append_line(log, {"what": "start", "pid": 1, "x": 0.9, "begin": 0})
    append_line(log, {"what": "start", "pid": 1, "x": 0.9, "step": 3})
    append_line(log, {"what": "start", "pid": 1, "x": 0.9, "begin": 3})
    found = examine(tmp_path, 5, {}, all_received=True)
    assert not found.lost | found.twice | found.stuck
    append_line(log, {"what": "start", "pid": 1, "x": 0.9, "begin": 2})
    assert examine(tmp_path, 5, {}, all_received=True).lost == {4}


def test_two_trials_with_one_evaluation_are_counted_twice(tmp_path: Path) -> None:
    twin = [*TRIALS[:3], Trial(3, TRIALS[2].config, value=TRIALS[2].value, state=State.DONE)]
    write_study(tmp_path, twin, twin)
    assert examine(tmp_path, 4, {}, all_received=True).twice == {2, 3}
