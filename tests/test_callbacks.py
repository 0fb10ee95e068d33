from __future__ import annotations

import importlib.util
import time
from pathlib import Path

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


if importlib.util.find_spec("mlflow") is None:

    def test_mlflow_says_what_to_install() -> None:
        with pytest.raises(RayboError, match="pip install mlflow"):
            MLflow()


if importlib.util.find_spec("wandb") is None:

    def test_wandb_says_what_to_install() -> None:
        with pytest.raises(RayboError, match="pip install wandb"):
            WandB()
