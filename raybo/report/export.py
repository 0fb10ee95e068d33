"""Trials of a study as a table for other programs: CSV, Parquet, or a database of Optuna."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybo.errors import StudyError
from raybo.runtime.result import Result, flat_config
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.study.trial import State, Trial

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = {"csv": ".csv", "parquet": ".parquet", "optuna": ".db"}

_WIDE = 1000  # coordinates of a box that get columns of their own
_MARK = "raybo"  # attribute of the studies in an Optuna database that are ours to replace


def write_table(result: Result, to: str, path: Path) -> None:
    """Write the trials of `result` to a file.

    Parameters
    ----------
    result
        From `optimize` or `load_result`.
    to
        "csv", "parquet" or "optuna"; the last is an SQLite file for optuna and
        optuna-dashboard, to which studies of other names are added.
    path
        File to write; an existing table is replaced.

    Raises
    ------
    StudyError
        When the file cannot be written, or Optuna is not installed.
    """
    if to not in SUFFIXES:
        raise StudyError(f"cannot export to {to!r}; choose one of {', '.join(SUFFIXES)}")
    if to == "optuna":
        return _write_optuna(result, path)
    frame = table(result)
    try:
        if to == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror or error}") from error


def table(result: Result) -> pd.DataFrame:
    """`result.to_dataframe()` with plain values only, one column per coordinate of a box.

    A cell that is neither a number nor a text is JSON; so is a box of over 1000 dimensions,
    written as the source of its coordinates.
    """
    pandas = importlib.import_module("pandas")
    frame = result.to_dataframe()
    if isinstance(result.space, Box) and "x" in frame:
        boxes = [_box_cells(trial, result.space) for trial in result.trials]
        place = list(frame.columns).index("x")
        parts = [frame.iloc[:, :place], pandas.DataFrame(boxes), frame.iloc[:, place + 1 :]]
        frame = pandas.concat(parts, axis=1)
    for name in frame.columns:
        values = frame[name].tolist()
        kinds = {type(v) for v in values if v is not None and v == v}
        if not kinds <= {bool, int, float} and kinds != {str}:
            frame[name] = [None if v is None or v != v else _text(v) for v in values]
    return frame


def _box_cells(trial: Trial, space: Box) -> dict[str, Any]:
    if space.dim <= _WIDE:
        return {f"x[{i}]": float(v) for i, v in enumerate(trial.config["x"])}
    return {"x": json.dumps(space.to_json(trial.config)["x"])}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)


# -- Optuna --------------------------------------------------------------------------------------


def _write_optuna(result: Result, path: Path) -> None:
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        raise StudyError(
            "exporting to optuna needs the package optuna; install it with "
            "pip install 'raybo[dashboard]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
        study = _empty_study(optuna, storage, result, path)
    except Exception as error:
        if isinstance(error, StudyError) or not type(error).__module__.startswith("sqlalchemy"):
            raise
        raise StudyError(f"cannot write {path}: {error}") from error
    distributions = _distributions(optuna, result.space)
    for trial in result.trials:
        if trial.state is not State.PENDING:
            study.add_trial(_optuna_trial(optuna, trial, result.space, distributions))


def _empty_study(optuna: Any, storage: Any, result: Result, path: Path) -> Any:
    """Study in the database; an earlier export of the same study is replaced."""
    old = {study.study_name: study for study in optuna.get_all_study_summaries(storage)}
    if result.name in old:
        if _MARK not in old[result.name].user_attrs:
            raise StudyError(
                f"{path} has a study {result.name!r} that raybo did not write; "
                "choose another file with -o"
            )
        optuna.delete_study(study_name=result.name, storage=storage)
    direction = {"min": "minimize", "max": "maximize"}[result.mode]
    study = optuna.create_study(study_name=result.name, storage=storage, direction=direction)
    study.set_user_attr(_MARK, result.location)
    study.set_user_attr("method", json.dumps(dict(result.method)))
    study.set_user_attr("metric", result.metric)
    return study


def _distributions(optuna: Any, space: AnySpace) -> dict[str, Any]:
    """Distribution of each parameter, by its path."""
    if not space.dense or (isinstance(space, Box) and space.dim > _WIDE):
        return {}
    return {c.name: _distribution(optuna.distributions, c.parameter) for c in space.columns}


def _distribution(kinds: Any, parameter: Any) -> Any:
    match parameter:
        case Float(low=low, high=high, log=log, step=None):
            return kinds.FloatDistribution(low, high, log=log)
        case Float(low=low, step=step):  # Optuna takes no step on a log scale, and an exact end
            high = parameter.value((parameter.cardinality or 1) - 1)
            return kinds.FloatDistribution(low, high, step=step)
        case Int(low=low, step=step, log=log):
            high = parameter.value(parameter.cardinality - 1)
            return kinds.IntDistribution(low, high, log=log and step == 1, step=step)
        case Choice(branches=branches):
            return kinds.CategoricalDistribution(list(branches))
        case Categorical(values=values):
            return kinds.CategoricalDistribution([_as_choice(v, parameter) for v in values])
    raise StudyError(f"{type(parameter).__name__} has no counterpart in optuna; export to csv")


def _as_choice(value: Any, parameter: Any) -> Any:
    """`value` where Optuna can store it, and tell it from the others; else as text."""
    if not isinstance(parameter, Categorical):
        return value
    plain = all(v is None or isinstance(v, bool | int | float | str) for v in parameter.values)
    return value if plain and len(set(parameter.values)) == len(parameter.values) else _text(value)


def _optuna_trial(
    optuna: Any, trial: Trial, space: AnySpace, distributions: Mapping[str, Any]
) -> Any:
    if isinstance(space, Box):
        flat = _box_cells(trial, space)
    else:
        parameters = {column.name: column.parameter for column in space.columns}
        values = flat_config(trial.config, space)
        flat = {name: _as_choice(v, parameters.get(name)) for name, v in values.items()}
    params = {name: value for name, value in flat.items() if name in distributions}
    others = {name: value for name, value in flat.items() if name not in distributions}
    reason = {"reason": trial.reason} if trial.reason else {}
    states = optuna.trial.TrialState
    made = optuna.trial.create_trial(
        state=states.COMPLETE if trial.state is State.DONE else states.FAIL,
        value=trial.value,
        params=params,
        distributions={name: distributions[name] for name in params},
        user_attrs={**others, **trial.extra, **reason, "number": trial.number},
    )
    if trial.started is not None and trial.finished is not None:
        made.datetime_start = datetime.fromtimestamp(trial.started)
        made.datetime_complete = datetime.fromtimestamp(trial.finished)
    return made
