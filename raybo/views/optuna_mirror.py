"""Copy a study to Optuna: to a database, or to memory for optuna-dashboard."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from raybo.errors import StudyError
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.study.outcome import Outcome, flat_config
from raybo.study.trial import State, Trial

_WIDE = 1000  # coordinates of a box that get one column each
_MARK = "raybo"  # attribute of the studies that raybo wrote, and may replace


class Mirror:
    """A copy of a study in a storage of Optuna, to which trials are added as they finish."""

    def __init__(self, optuna: Any, storage: Any, outcome: Outcome, live: bool = False) -> None:
        direction = {"min": "minimize", "max": "maximize"}[outcome.mode]
        self._study = optuna.create_study(
            study_name=outcome.name, storage=storage, direction=direction
        )
        self._study.set_user_attr(_MARK, outcome.location)
        self._study.set_user_attr("method", json.dumps(dict(outcome.method)))
        self._study.set_user_attr("metric", outcome.metric)
        self._optuna, self._space = optuna, outcome.space
        self._distributions = _distributions(optuna, outcome.space)
        self._live = live
        self._added: set[int] = set()
        self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Add the trials that have finished and are not there yet.

        Optuna's trials end once: a live mirror leaves out those that may go on.
        """
        left_out = outcome.paused if self._live and outcome.stop is None else frozenset()
        for trial in outcome.trials:
            done = trial.state is not State.PENDING and trial.number not in left_out
            if done and trial.number not in self._added:
                made = _optuna_trial(self._optuna, trial, self._space, self._distributions)
                self._study.add_trial(made)
                self._added.add(trial.number)


def import_extra(module: str, purpose: str) -> Any:
    """Return a module of the dashboard extra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise StudyError(
            f"{purpose} needs the package {module.replace('_', '-')}; install it with "
            "pip install 'raybo[dashboard]'"
        ) from None


def write_optuna(outcome: Outcome, path: Path) -> None:
    """Write a study to an SQLite file of Optuna; an earlier export of it is replaced."""
    optuna = import_extra("optuna", "exporting to optuna")
    database_error = import_extra("sqlalchemy.exc", "exporting to optuna").SQLAlchemyError
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
        _make_room(optuna, storage, outcome, path)
        Mirror(optuna, storage, outcome)
    except database_error as error:
        raise StudyError(f"cannot write {path}: {error}") from error


def _make_room(optuna: Any, storage: Any, outcome: Outcome, path: Path) -> None:
    old = {study.study_name: study for study in optuna.get_all_study_summaries(storage)}
    if outcome.name in old:
        if _MARK not in old[outcome.name].user_attrs:
            raise StudyError(
                f"{path} has a study {outcome.name!r} that raybo did not write; "
                "choose another file with -o"
            )
        optuna.delete_study(study_name=outcome.name, storage=storage)


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
    """`value` where Optuna can store and distinguish all values; else as text."""
    if not isinstance(parameter, Categorical):
        return value
    plain = all(v is None or isinstance(v, bool | int | float | str) for v in parameter.values)
    return value if plain and len(set(parameter.values)) == len(parameter.values) else text(value)


def _optuna_trial(
    optuna: Any, trial: Trial, space: AnySpace, distributions: Mapping[str, Any]
) -> Any:
    if isinstance(space, Box):
        flat = box_cells(trial, space)
    else:
        parameters = {column.name: column.parameter for column in space.columns}
        values = flat_config(trial.config, space)
        flat = {name: _as_choice(v, parameters.get(name)) for name, v in values.items()}
    params = {name: value for name, value in flat.items() if name in distributions}
    others = {name: value for name, value in flat.items() if name not in distributions}
    reason = {"reason": trial.reason} if trial.reason else {}
    states = optuna.trial.TrialState
    made = optuna.trial.create_trial(
        state={State.DONE: states.COMPLETE, State.STOPPED: states.PRUNED}.get(
            trial.state, states.FAIL
        ),
        value=trial.value,
        intermediate_values=trial.curve,
        params=params,
        distributions={name: distributions[name] for name in params},
        user_attrs={**others, **trial.extra, **reason, "number": trial.number},
    )
    if trial.started is not None and trial.finished is not None:
        with contextlib.suppress(ValueError, OverflowError, OSError):  # beyond all dates
            span = [datetime.fromtimestamp(time) for time in (trial.started, trial.finished)]
            made.datetime_start, made.datetime_complete = span
    return made


def box_cells(trial: Trial, space: Box) -> dict[str, Any]:
    """Return the coordinates of a box by name; those of a wide one as the JSON of their source."""
    if space.dim <= _WIDE:
        return {f"x[{i}]": float(v) for i, v in enumerate(trial.config["x"])}
    return {"x": json.dumps(space.to_json(trial.config)["x"])}


def text(value: Any) -> str:
    """Return `value` as text: JSON where that is possible."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
