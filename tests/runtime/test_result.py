"""Result: its views, and reading studies without Ray."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybo.errors import StudyError
from raybo.result import Result, flat_config, list_studies, load_result
from raybo.space.box import Box
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.study.journal.journal import Journal
from raybo.runtime.code import import_path
from raybo.study.names import fresh_name
from raybo.study.trial import State, Trial

SPACE = Space(
    {
        "value": Float(0, 1),
        "net": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
        "opt": {"lr": Float(0, 1)},
    }
)


def make(trials: list[Trial], mode: str = "min", **changes: Any) -> Result:
    fields: dict[str, Any] = {
        "name": "<b>s</b>",
        "location": "runs/s",
        "mode": mode,
        "metric": None,
        "method": {"name": "random", "options": {}},
        "space": SPACE,
        "trials": trials,
        "elapsed": 1.0,
        "stop_reason": "max_trials reached: 3",
        "use": 0.5,
    }
    return Result(**{**fields, **changes})


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


def test_a_dataframe_has_a_column_per_path() -> None:
    pytest.importorskip("pandas")
    frame = make(TRIALS).to_dataframe()
    assert list(frame["number"]) == [0, 1, 2]
    assert list(frame["config/value"]) == [0.5, 0.25, 0.75]
    assert list(frame["net"]) == ["svd", "none", "none"]
    assert frame["net/svd/rank"][0] == 4
    assert frame["net/svd/rank"].isna().tolist() == [False, True, True]
    assert list(frame["opt/lr"]) == [0.1, 0.2, 0.3]
    assert frame["seconds"][0] == 2.5
    assert frame["extra/acc"][0] == 0.9


def test_the_vector_of_a_box_stays_lazy() -> None:
    box = Box(10**9)
    config = box.from_json(box.to_json(box.draw(np.random.default_rng(0))))
    assert flat_config(config, box) == {"x": config["x"]}


def test_views_are_readable_and_escaped() -> None:
    text = repr(make(TRIALS))
    assert "2 done, 1 failed" in text
    assert "best value 1 (min) at trial 1" in text
    page = make(TRIALS)._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;s&lt;/b&gt;" in page
    assert page.count("<tr>") == 3
    assert "no trials" in repr(make([]))


def test_a_study_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="it has no studies at all"):
        load_result("nosuch", tmp_path)
    Journal(tmp_path / "here").close()
    with pytest.raises(StudyError, match=r"no study 'nosuch' in .* it has here"):
        load_result("nosuch", tmp_path)


def test_an_empty_journal_is_listed_without_trials(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s")
    (summary,) = list_studies(tmp_path)
    assert (summary.name, summary.done, summary.state) == ("s", 0, "running")
    journal.close()
    assert list_studies(tmp_path)[0].state == "stopped"


def test_names_are_made_up_and_objectives_found() -> None:
    assert len({fresh_name() for _ in range(50)}) == 50
    assert import_path(fresh_name) == "raybo.study.names:fresh_name"
    assert import_path(Journal.close) == "raybo.study.journal.journal:Journal.close"
    assert import_path(lambda config: 0.0) is None
    assert import_path(object()) is None


def test_reading_a_study_needs_neither_ray_nor_torch() -> None:
    code = (
        "import sys, raybo.result; "
        "print([m for m in ('ray', 'torch', 'pandas', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_loads_no_torch() -> None:
    code = (
        "import sys, raybo.runtime.evaluations.evaluate, raybo.runtime.service; "
        "print([m for m in ('torch', 'pandas', 'plotly', 'ray.tune') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
