"""Outcome: a study as data, and reading studies without Ray."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybo.errors import StudyError
from raybo.space.box import Box
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.study.journal.journal import Journal
from raybo.study.outcome import Outcome, Stop, flat_config, list_studies
from raybo.study.trial import State, Trial

SPACE = Space(
    {
        "value": Float(0, 1),
        "net": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
        "opt": {"lr": Float(0, 1)},
    }
)


def make(trials: list[Trial], mode: str = "min", **changes: Any) -> Outcome:
    fields: dict[str, Any] = {
        "name": "<b>s</b>",
        "location": "runs/s",
        "mode": mode,
        "metric": None,
        "method": {"name": "random", "options": {}},
        "space": SPACE,
        "trials": trials,
        "elapsed": 1.0,
        "stop": Stop("max_trials", "max_trials reached: 3"),
        "use": 0.5,
    }
    return Outcome(**{**fields, **changes})


TRIALS = [
    Trial(0, {"value": 0.5, "net": {"svd": {"rank": 4}}, "opt": {"lr": 0.1}}, 3.0, State.DONE,
          started=1.0, finished=3.5, extra={"acc": 0.9}),
    Trial(1, {"value": 0.25, "net": {"none": {}}, "opt": {"lr": 0.2}}, 1.0, State.DONE),
    Trial(2, {"value": 0.75, "net": {"none": {}}, "opt": {"lr": 0.3}}, None, State.FAILED, "<no>"),
]  # fmt: skip


def test_the_best_depends_on_the_mode() -> None:
    assert make(TRIALS).best_trial is TRIALS[1]
    assert make(TRIALS, "max").best_value == 3.0
    assert make(TRIALS).best_config == TRIALS[1].config
    nothing = make([])
    assert (nothing.best_trial, nothing.best_value, nothing.best_config) == (None, None, None)


def test_the_vector_of_a_box_stays_lazy() -> None:
    box = Box(10**9)
    config = box.from_json(box.to_json(box.draw(np.random.default_rng(0))))
    assert flat_config(config, box) == {"x": config["x"]}


def test_a_study_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="it has no studies at all"):
        Outcome.load("nosuch", tmp_path)
    Journal(tmp_path / "here").close()
    with pytest.raises(StudyError, match=r"no study 'nosuch' in .* it has here"):
        Outcome.load("nosuch", tmp_path)


def test_an_empty_journal_is_listed_without_trials(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s")
    (summary,) = list_studies(tmp_path)
    assert (summary.name, summary.done, summary.state) == ("s", 0, "running")
    journal.close()
    assert list_studies(tmp_path)[0].state == "stopped"


def test_reading_a_study_needs_neither_ray_nor_torch() -> None:
    code = (
        "import sys, raybo.study.outcome; "
        "print([m for m in ('ray', 'torch', 'pandas', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def write(folder: Path, *events: dict[str, Any]) -> None:
    journal = Journal(folder)
    journal.append(*events)
    journal.close()


HEADER = {
    "kind": "header",
    "name": "s",
    "space": SPACE.definition(),
    "method": {"name": "rembo", "options": {"k": None, "preset": "paper"}},
    "mode": "min",
    "metric": None,
}


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    config = SPACE.to_json(TRIALS[0].config)
    write(
        tmp_path / "s",
        {**HEADER, "lanes": 4},
        {"kind": "asked", "number": 0, "config": config, "memo": {"z": [1.0]}},
        {"kind": "done", "number": 0, "value": 3.0, "extra": {"acc": 0.9}},
        {"kind": "stopped", "reason": "interrupted: drained", "outcome": "interrupted",
         "seconds": 2.0, "use": 0.75},
    )  # fmt: skip
    outcome = Outcome.load("s", tmp_path)
    assert outcome.best_config == TRIALS[0].config
    assert outcome.stop == Stop("interrupted", "interrupted: drained")
    assert (outcome.elapsed, outcome.use, outcome.lanes) == (2.0, 0.75, 4)
    assert [row["net/svd/rank"] for row in outcome.rows()] == [4]


@pytest.mark.parametrize(("options", "lanes"), [({"k": 3}, 3), ({"k": None}, 1), ({}, 1)])
def test_a_journal_without_lanes_has_those_of_its_method(
    tmp_path: Path, options: dict[str, Any], lanes: int
) -> None:
    write(tmp_path / "s", {**HEADER, "method": {"name": "rembo", "options": options}})
    outcome = Outcome.load("s", tmp_path)
    assert (outcome.lanes, outcome.stop, outcome.stop_reason) == (lanes, None, "not ended")
