from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import call, create_autospec

import pytest

from raybo.callbacks import MLflow, TensorBoard, WandB, flat
from raybo.errors import RayboError
from raybo.study.trial import State, Trial

TRIALS = [
    Trial(0, {"x": 1, "c": {"a": {"t": 2}}}, 3.0, State.DONE, extra={"acc": 0.5, "note": "n"}),
    Trial(1, {"x": 2, "c": {"b": {}}}, None, State.FAILED, "boom"),
    Trial(2, {"x": 3, "c": {"b": {}}}, 5.0, State.DONE),
]


def test_tensorboard_gets_values_best_and_extras(tmp_path: Path) -> None:
    callback = TensorBoard(tmp_path, mode="max")
    for trial in TRIALS:
        callback.on_trial(trial)
    (events,) = tmp_path.glob("events*")
    wanted = (b"value", b"best", b"extra/acc", b"boom")
    deadline = time.monotonic() + 60  # a thread of tensorboardX writes the file
    while not all(text in events.read_bytes() for text in wanted):
        assert time.monotonic() < deadline
        callback._writer.flush()
        time.sleep(0.1)


def test_nested_configs_are_flattened_by_path() -> None:
    assert dict(flat(TRIALS[0].config)) == {"x": 1, "c/a/t": 2}
    assert dict(flat(TRIALS[1].config)) == {"x": 2, "c/b": {}}


@pytest.mark.parametrize(("name", "callback"), [("mlflow", MLflow), ("wandb", WandB)])
def test_a_missing_package_is_named(
    name: str, callback: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(RayboError, match=f"pip install {name}"):
        callback()


def test_mlflow_gets_a_run_for_each_trial_below_that_of_the_study(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = create_autospec(MlflowClient, instance=True)
    client.get_experiment_by_name.return_value = None
    client.create_experiment.return_value = "7"
    client.create_run.side_effect = [run("study"), *(run(f"trial {i}") for i in range(3))]
    package = ModuleType("mlflow")
    package.tracking = SimpleNamespace(MlflowClient=lambda uri: client)
    monkeypatch.setitem(sys.modules, "mlflow", package)
    callback = MLflow("lab")
    for trial in TRIALS:
        callback.on_trial(trial)
    client.create_experiment.assert_called_once_with("lab")
    client.create_run.assert_called_with(
        "7", run_name="trial 2", tags={"mlflow.parentRunId": "study"}
    )
    assert call("trial 0", "c/a/t", "2") in client.log_param.mock_calls
    assert client.log_metric.mock_calls == [
        call("trial 0", "value", 3.0),
        call("study", "value", 3.0, step=0),
        call("trial 0", "acc", 0.5),
        call("trial 2", "value", 5.0),
        call("study", "value", 5.0, step=2),
    ]
    ends = [call("trial 0", "FINISHED"), call("trial 1", "FAILED"), call("trial 2", "FINISHED")]
    assert client.set_terminated.mock_calls == ends


def test_wandb_gets_a_row_for_each_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = []
    package = ModuleType("wandb")
    package.init = lambda project, mode: SimpleNamespace(log=rows.append)
    monkeypatch.setitem(sys.modules, "wandb", package)
    callback = WandB("lab", mode="offline")
    for trial in TRIALS:
        callback.on_trial(trial)
    assert rows[0] == {
        "trial": 0,
        "state": "done",
        "config/x": 1,
        "config/c/a/t": 2,
        "extra/acc": 0.5,
        "value": 3.0,
    }
    assert "value" not in rows[1]


class MlflowClient:
    """The methods of mlflow.tracking.MlflowClient that are called, as in MLflow 2 and 3."""

    def get_experiment_by_name(self, name): ...
    def create_experiment(self, name, artifact_location=None, tags=None): ...
    def create_run(self, experiment_id, start_time=None, tags=None, run_name=None): ...
    def log_param(self, run_id, key, value, synchronous=None): ...
    def log_metric(self, run_id, key, value, timestamp=None, step=None): ...
    def set_terminated(self, run_id, status=None, end_time=None): ...


def run(run_id: str) -> SimpleNamespace:
    return SimpleNamespace(info=SimpleNamespace(run_id=run_id))
