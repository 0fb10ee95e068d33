"""Callbacks that send every finished trial to a tracker: `optimize(callbacks=[TensorBoard()])`.

They run in the driver. A callback that raises is logged and not called again.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from raybo.errors import RayboError
from raybo.study.objective import Objective
from raybo.study.trial import State, Trial


class TensorBoard:
    """Writes the value and best value of each trial as scalars and its config as text.

    Parameters
    ----------
    folder
        Where the event files go: `tensorboard --logdir FOLDER`.
    mode
        "min" or "max", as the study's.
    """

    def __init__(self, folder: str | os.PathLike[str] = "tensorboard", mode: str = "min") -> None:
        module = importlib.import_module("tensorboardX")  # comes with ray[tune]
        self._writer = module.SummaryWriter(str(folder))
        self._objective = Objective(mode)
        self._best: float | None = None

    def on_trial(self, trial: Trial) -> None:
        """Write a finished trial."""
        if trial.value is None:
            self._writer.add_text("failed", f"trial {trial.number}: {trial.reason}", trial.number)
        else:
            if self._best is None or self._objective.better(trial.value, self._best):
                self._best = trial.value
            self._writer.add_scalar("value", trial.value, trial.number)
            self._writer.add_scalar("best", self._best, trial.number)
            for key, number in numbers(trial.extra):
                self._writer.add_scalar(f"extra/{key}", number, trial.number)
        self._writer.add_text("config", repr(dict(trial.config)), trial.number)
        self._writer.flush()


class MLflow:
    """Records each trial as a run of MLflow below one run of the study; needs mlflow.

    Parameters
    ----------
    experiment
        Name of the experiment.
    tracking_uri
        Where MLflow keeps its runs; by default, where MLflow decides.
    """

    def __init__(self, experiment: str = "raybo", tracking_uri: str | None = None) -> None:
        try:
            self._mlflow = importlib.import_module("mlflow")
        except ImportError:
            raise RayboError("the MLflow callback needs mlflow: pip install mlflow") from None
        client = self._mlflow.tracking.MlflowClient(tracking_uri)
        found = client.get_experiment_by_name(experiment)
        where = found.experiment_id if found else client.create_experiment(experiment)
        self._client, self._experiment = client, where
        self._parent = client.create_run(where, run_name="study").info.run_id

    def on_trial(self, trial: Trial) -> None:
        """Record a finished trial."""
        tags = {"mlflow.parentRunId": self._parent}
        run = self._client.create_run(
            self._experiment, run_name=f"trial {trial.number}", tags=tags
        ).info.run_id
        for key, value in flat(trial.config):
            self._client.log_param(run, key, str(value)[:500])
        if trial.value is not None:
            self._client.log_metric(run, "value", trial.value)
            self._client.log_metric(self._parent, "value", trial.value, step=trial.number)
        for key, number in numbers(trial.extra):
            self._client.log_metric(run, key, number)
        for step, value in trial.curve.items():
            self._client.log_metric(run, "step value", value, step=step)
        ends = {State.DONE: "FINISHED", State.STOPPED: "KILLED"}
        self._client.set_terminated(run, ends.get(trial.state, "FAILED"))


class WandB:
    """Logs each trial as a step of one Weights & Biases run; needs wandb.

    Parameters
    ----------
    project
        Name of the project.
    **settings
        Further arguments of `wandb.init`, such as `name` or `mode="offline"`.
    """

    def __init__(self, project: str = "raybo", **settings: Any) -> None:
        try:
            wandb = importlib.import_module("wandb")
        except ImportError:
            raise RayboError("the WandB callback needs wandb: pip install wandb") from None
        self._run = wandb.init(project=project, **settings)

    def on_trial(self, trial: Trial) -> None:
        """Log a finished trial."""
        row: dict[str, Any] = {"trial": trial.number, "state": trial.state.value}
        row |= {f"config/{key}": value for key, value in flat(trial.config)}
        row |= {f"extra/{key}": number for key, number in numbers(trial.extra)}
        if trial.value is not None:
            row["value"] = trial.value
        self._run.log(row)


def flat(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths and values of a nested config."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{path}{key}/")
        else:
            yield f"{path}{key}", value


def numbers(extra: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the entries of a result that are numbers."""
    for key, value in extra.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield key, float(value)
