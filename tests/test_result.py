"""Result: its views, and reading studies without Ray."""

from __future__ import annotations

import ast
import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raybo.result import Result
from raybo.space.box import Box
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.study.outcome import Stop
from raybo.study.trial import State, Trial
from raybo.views.export import write_table

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
        "stop": Stop("max_trials", "max_trials reached: 3"),
        "use": 0.5,
    }
    return Result(**{**fields, **changes})


TRIALS = [
    Trial(0, {"value": 0.5, "net": {"svd": {"rank": 4}}, "opt": {"lr": 0.1}}, 3.0, State.DONE,
          started=1.0, finished=3.5, extra={"acc": 0.9}),
    Trial(1, {"value": 0.25, "net": {"none": {}}, "opt": {"lr": 0.2}}, 1.0, State.DONE),
    Trial(2, {"value": 0.75, "net": {"none": {}}, "opt": {"lr": 0.3}}, None, State.FAILED, "<no>"),
]  # fmt: skip


def write_csv(trials: list[Trial], folder: Path) -> list[dict[str, str]]:
    write_table(make(trials), "csv", folder / "trials.csv")
    with (folder / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_time_beyond_all_dates_is_none_in_a_dataframe() -> None:
    pytest.importorskip("pandas")
    config = {"value": 0.5, "net": {"none": {}}, "opt": {"lr": 0.1}}
    trials = [
        Trial(0, config, 3.0, State.DONE, started=1.0, finished=3.5),
        Trial(1, config, 3.0, State.DONE, started=1e14, finished=1e300),
    ]
    frame = make(trials).to_dataframe()
    assert frame["started"].isna().tolist() == [False, True]
    assert frame["finished"].isna().tolist() == [False, True]


def test_a_dataframe_has_a_column_per_path(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = make(TRIALS[::-1]).to_dataframe()[::-1].reset_index()  # the first has no rank
    assert list(frame["number"]) == [0, 1, 2]
    assert list(frame["config/value"]) == [0.5, 0.25, 0.75]
    assert list(frame["net"]) == ["svd", "none", "none"]
    assert frame["net/svd/rank"][0] == 4
    assert frame["net/svd/rank"].isna().tolist() == [False, True, True]
    assert list(frame["opt/lr"]) == [0.1, 0.2, 0.3]
    assert frame["seconds"][0] == 2.5
    assert frame["extra/acc"][0] == 0.9
    own = ["config/value", "net", "net/svd/rank", "opt/lr", "extra/acc"]
    assert list(frame.columns)[-5:] == own
    assert frame["started"][0].timestamp() == TRIALS[0].started
    assert str(frame["started"].dt.tz) == "UTC"
    first, *_ = write_csv(TRIALS, tmp_path)
    assert first["finished"] == "1970-01-01 00:00:03.500+00:00"


def test_views_are_readable_and_escaped() -> None:
    text = repr(make(TRIALS))
    assert "2 done, 1 failed" in text
    assert "best value 1 (min) at trial 1" in text
    page = make(TRIALS)._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;s&lt;/b&gt;" in page
    assert page.count("<tr>") == 3
    assert "no trials" in repr(make([]))


def test_the_best_config_can_be_copied_as_python_and_as_json() -> None:
    result = make(TRIALS)
    best = result.best_config
    assert ast.literal_eval(repr(result).split("\n\n")[1].strip()) == best
    assert json.loads(result.best_json() or "") == best
    assert make([]).best_json() is None


def test_a_long_vector_is_shown_by_what_rebuilds_it() -> None:
    space = Box(10**9)
    opt = Optimizer(space, "rembo", d=2, k=1)
    opt.tell(opt.ask(), 1.0)
    result = replace(make([]), space=space, trials=opt.trials)
    again = eval(repr(result).split("\n\n")[1], {"Box": Box})
    assert again["x"].same_as(opt.trials[0].config["x"])
    text = result.best_json()
    assert text is not None
    assert space.from_json(json.loads(text))["x"].same_as(opt.trials[0].config["x"])


def test_reading_a_study_needs_neither_ray_nor_torch() -> None:
    code = (
        "import sys, raybo.result; "
        "print([m for m in ('ray', 'torch', 'pandas', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_loads_no_torch() -> None:
    code = (
        "import sys, raybo.runtime.evaluations.evaluate, raybo.runtime.actor; "
        "print([m for m in ('torch', 'pandas', 'plotly', 'ray.tune') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
