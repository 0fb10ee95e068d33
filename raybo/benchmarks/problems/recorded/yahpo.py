"""YAHPO Gym's surrogates of recorded trainings (Pfisterer et al. 2022).

`yahpo-lcbench-ID` tunes 7 parameters of a network on the OpenML task ID for the validation
accuracy after 52 epochs; its objective also gives the curve over the epochs and the times.
`yahpo-xgboost-ID` tunes XGBoost on the OpenML data set ID for the accuracy with all training data:
14 parameters, of which 8 exist under some boosters only, so that the booster is a Choice. Its
curve is over shares of the training data, 1/27 of it per step.

A surrogate is a network in a file of ONNX. No package holds these files: they are in the
repository slds-lmu/yahpo_data, and raybo looks for them in the folder `yahpo` of `$RAYBO_DATA`.
Inputs and outputs have the order of YAHPO Gym's definitions; numbers that a config lacks are 0.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem, one_of
from raybo.benchmarks.problems.datasets import DatasetError, cached
from raybo.space.parameters import Categorical, Choice, Float, Int, Parameter
from raybo.space.space import Space

EPOCHS = 52
_SHARES = 27  # steps of a training by its data; the smallest share that was recorded is 0.03
_DRAWS, _KEPT, _ROUNDS = 20_000, 200, 20  # of the search for the best value
_STEP = 0.1  # of that search, in the unit cube


@dataclass(frozen=True)
class Scenario:
    """What a surrogate models.

    Attributes
    ----------
    folder : str
        Folder of its files.
    instance : str
        Input that names the data.
    numbers, categories, outputs : tuple of str
        Inputs and outputs of the network, in their order.
    target : str
        Output to maximise.
    full : dict
        Inputs that are no parameters: how much is trained.
    steps, per_step, seconds : int, str, str
        Steps of a full training, the input of `full` that grows with them, and the output that is
        the time.
    about : str
        What is tuned.
    """

    folder: str
    instance: str
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    outputs: tuple[str, ...]
    target: str
    full: Mapping[str, float]
    steps: int
    per_step: str
    seconds: str
    about: str


SCENARIOS = {  # first part of the problems' names
    "yahpo-lcbench": Scenario(
        "lcbench",
        "OpenML_task_id",
        (
            "epoch",
            "batch_size",
            "learning_rate",
            "momentum",
            "weight_decay",
            "num_layers",
            "max_units",
            "max_dropout",
        ),
        ("OpenML_task_id",),
        (
            "time",
            "val_accuracy",
            "val_cross_entropy",
            "val_balanced_accuracy",
            "test_cross_entropy",
            "test_balanced_accuracy",
        ),
        "val_accuracy",
        {"epoch": EPOCHS},
        EPOCHS,
        "epoch",
        "time",
        "a network on OpenML's task {}: validation accuracy in percent after 52 epochs",
    ),
    "yahpo-xgboost": Scenario(
        "rbv2_xgboost",
        "task_id",
        (
            "nrounds",
            "eta",
            "gamma",
            "lambda",
            "alpha",
            "subsample",
            "max_depth",
            "min_child_weight",
            "colsample_bytree",
            "colsample_bylevel",
            "rate_drop",
            "skip_drop",
            "trainsize",
            "repl",
        ),
        ("task_id", "booster", "num.impute.selected.cpo"),
        (
            "acc",
            "bac",
            "auc",
            "brier",
            "f1",
            "logloss",
            "timetrain",
            "timepredict",
            "memory",
        ),
        "acc",
        {"trainsize": 1.0, "repl": 10},
        _SHARES,
        "trainsize",
        "timetrain",
        "XGBoost with a choice of boosters on OpenML's data set {}: accuracy",
    ),
}


def folder_of(scenario: Scenario, data: str | None = None) -> str:
    """Return the folder of a scenario's files in the folder `data`, `$RAYBO_DATA` unless given."""
    home = data or os.environ.get("RAYBO_DATA")
    folder = Path(home or "$RAYBO_DATA") / "yahpo" / scenario.folder
    needed = ("model.onnx", "encoding.json", "config_space.json")
    missing = [name for name in needed if not (folder / name).is_file()]
    if home is None or missing:
        raise DatasetError(
            f"{folder}: {', '.join(missing)} not found; copy the folder {scenario.folder!r} of "
            f"the repository slds-lmu/yahpo_data to DATA/yahpo/{scenario.folder} and set "
            "RAYBO_DATA=DATA"
        )
    return str(folder)


@lru_cache(maxsize=4)
def _session(folder: str) -> Any:
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError:
        raise DatasetError(
            "problems 'yahpo-...' need a runtime of ONNX; pip install onnxruntime"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        Path(folder) / "model.onnx", options, providers=["CPUExecutionProvider"]
    )


@lru_cache(maxsize=8)
def _json(folder: str, name: str) -> Any:
    return json.loads((Path(folder) / name).read_text())


@lru_cache(maxsize=8)
def parameters(name: str, folder: str) -> Space:
    """Return the space of a scenario; a category that others depend on is a Choice."""
    scenario, definition = SCENARIOS[name], _json(folder, "config_space.json")
    children: dict[str, dict[str, list[str]]] = {}  # category: parameter: values that it needs
    for condition in definition["conditions"]:
        needed = condition["values"] if condition["type"] == "IN" else [condition["value"]]
        children.setdefault(condition["parent"], {})[condition["child"]] = needed
    entries = {entry["name"]: entry for entry in definition["hyperparameters"]}

    def branches(key: str) -> dict[str, dict[str, Parameter]]:
        return {
            value: {
                child: _parameter(entries[child])
                for child, needed in children[key].items()
                if value in needed
            }
            for value in entries[key]["choices"]
        }

    inside = {child for under in children.values() for child in under}
    return Space(
        {
            key: Choice(branches(key)) if key in children else _parameter(entry)
            for key, entry in entries.items()
            if key not in inside and key != scenario.instance and key not in scenario.full
        }
    )


def _parameter(entry: Mapping[str, Any]) -> Parameter:
    if entry["type"] == "categorical":
        return Categorical(entry["choices"])
    kind = Int if entry["type"] == "uniform_int" else Float
    return kind(entry["lower"], entry["upper"], entry["log"])


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with {choice: {branch: {...}}} as choice: branch, and what is in the branch."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            [(branch, inside)] = value.items()
            flat |= {key: branch, **inside}
        else:
            flat[key] = value
    return flat


@dataclass(frozen=True)
class Surrogate:
    """The prediction of a surrogate for one data set.

    Attributes
    ----------
    name, instance : str
        Scenario and data set.
    folder : str
        Where its files are.
    """

    name: str
    instance: str
    folder: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the target of a config, trained in full."""
        scenario = SCENARIOS[self.name]
        return float(self.outputs([config])[0, scenario.outputs.index(scenario.target)])

    def outputs(self, configs: Sequence[Mapping[str, Any]], **trained: float) -> Array:
        """Return all outputs (configs, outputs); `trained` replaces entries of Scenario.full."""
        return self._predict([{**_flat(config), **trained} for config in configs])

    def _predict(self, given: Sequence[Mapping[str, Any]]) -> Array:
        """Return all outputs; what is not given of Scenario.full is as there."""
        scenario, encoding = SCENARIOS[self.name], _json(self.folder, "encoding.json")
        rows = [{**scenario.full, **row, scenario.instance: self.instance} for row in given]
        numbers = [[row.get(key, 0) for key in scenario.numbers] for row in rows]
        categories = [[encoding[key][row[key]] for key in scenario.categories] for row in rows]
        return self._run(np.array(numbers, np.float32), np.array(categories, np.int32))

    def curve(self, config: Mapping[str, Any]) -> tuple[Array, Array]:
        """Return the target and the seconds since the start after each step, shapes (steps,).

        The predicted seconds are made non-decreasing.
        """
        scenario = SCENARIOS[self.name]
        whole, flat = scenario.full[scenario.per_step], _flat(config)
        amounts = (whole * step / scenario.steps for step in range(1, scenario.steps + 1))
        found = self._predict([{**flat, scenario.per_step: amount} for amount in amounts])
        target, seconds = (
            found[:, scenario.outputs.index(name)] for name in (scenario.target, scenario.seconds)
        )
        return target, np.maximum.accumulate(np.maximum(seconds, 0.0))

    def _run(self, numbers: Any, categories: Any) -> Array:
        [found] = _session(self.folder).run(None, {"x_cat": categories, "x_cont": numbers})
        return np.asarray(found, dtype=np.float64)


def best_known(surrogate: Surrogate) -> float:
    """Return the best target that a long search of the surrogate finds; kept in the cache.

    Notes
    -----
    Of 20,000 random configs the best 200 are kept; 20 times each is changed in a tenth to all of
    its columns ten times, and the best 200 of all are kept.
    """
    scenario = SCENARIOS[surrogate.name]
    column = scenario.outputs.index(scenario.target)
    space = parameters(surrogate.name, surrogate.folder)

    def targets(rows: Array) -> Array:
        return surrogate.outputs([space.decode(row) for row in rows])[:, column]

    def make(path: Path) -> None:
        rng = np.random.default_rng(0)
        rows = space.sample(_DRAWS, rng)
        found = targets(rows)
        for _ in range(_ROUNDS):
            kept = np.argsort(-found)[:_KEPT]
            rows, found = rows[kept], found[kept]
            tried = np.repeat(rows, 10, axis=0)
            moved = rng.random(tried.shape) < rng.uniform(0.1, 1.0, (len(tried), 1))
            scale = _STEP * 10.0 ** -rng.uniform(0.0, 2.0, (len(tried), 1))
            steps = np.where(moved, scale * rng.standard_normal(tried.shape), 0.0)
            tried = space.snap(np.clip(tried + steps, 0.0, 1.0))
            rows, found = np.concatenate([rows, tried]), np.concatenate([found, targets(tried)])
        path.write_text(json.dumps(float(found.max())))

    name = f"{surrogate.name}-{surrogate.instance}.json"
    return float(json.loads(cached(f"yahpo-best/{name}", make).read_text()))


def instances(name: str, data: str | None = None) -> list[str]:
    """Return the data sets of a scenario."""
    scenario = SCENARIOS[name]
    entries = _json(folder_of(scenario, data), "config_space.json")["hyperparameters"]
    return list(next(e["choices"] for e in entries if e["name"] == scenario.instance))


def yahpo(name: str, data: str | None = None) -> Problem:
    """Return the problem "yahpo-lcbench-ID" or "yahpo-xgboost-ID".

    `data` is the folder that holds the folder "yahpo"; `$RAYBO_DATA` unless given.
    """
    family, _, instance = name.rpartition("-")
    scenario = SCENARIOS[family]
    folder = folder_of(scenario, data)
    one_of(name, (f"{family}-{key}" for key in instances(family, data)))
    surrogate = Surrogate(family, instance, folder)
    return Problem(
        name,
        partial(parameters, family, folder),
        surrogate,
        optimum=best_known(surrogate),
        mode="max",
        description=scenario.about.format(instance),
        cost="0.5 ms",
    )
