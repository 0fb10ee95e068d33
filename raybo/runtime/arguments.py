"""Checks of the arguments of optimize, before anything is started."""

from __future__ import annotations

import difflib
import functools
import inspect
import io
import math
import numbers
import operator
import pickle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import ray

from raybo.errors import ObjectiveError, StudyError
from raybo.methods.registry import METHODS, is_same_method, method_class, option_names
from raybo.runtime.cluster import check_fit
from raybo.runtime.evaluations.evaluate import evaluate_remotely
from raybo.runtime.evaluations.evaluator import EvaluatorActor
from raybo.runtime.evaluations.plain_json import plain_extra
from raybo.runtime.session import Resources
from raybo.space.definition import difference
from raybo.study.journal.record import Record
from raybo.study.objective import Objective

P = ParamSpec("P")
R = TypeVar("R")

_COUNTS = ("max_trials", "workers", "retries", "max_failures", "patience")
_FROM_ZERO = ("retries",)  # the others are at least one, or more than zero
# Names that other tuners use, and that of raybo.
_ELSEWHERE = {
    "n_trials": "max_trials",
    "num_trials": "max_trials",
    "num_samples": "max_trials",
    "max_evals": "max_trials",
    "n_calls": "max_trials",
    "trials": "max_trials",
    "direction": "mode",
    "sampler": "method",
    "algo": "method",
    "search_alg": "method",
    "n_jobs": "workers",
    "max_concurrent_trials": "workers",
    "num_workers": "workers",
    "random_state": "seed",
    "study_name": "name",
    "param_space": "space",
    "search_space": "space",
    "show_progress_bar": "progress",
    "verbose": "progress=False for silence, or callbacks=[print] for a line per trial",
    "points_to_evaluate": "points",
    "time_budget_s": "max_seconds",
}
_RESOURCE_NAMES = (
    "num_cpus",
    "num_gpus",
    "memory",
    "resources",
    "runtime_env",
    "accelerator_type",
    "scheduling_strategy",
    "label_selector",
)
_SHORT_NAMES = {"cpus": "num_cpus", "cpu": "num_cpus", "gpus": "num_gpus", "gpu": "num_gpus"}


class ArgumentError(StudyError, TypeError):
    """A function was called with an argument that it does not have."""


def explain_unknown(function: Callable[P, R]) -> Callable[P, R]:
    """Have `function` say which argument was meant when it is given one that it does not have."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **arguments: P.kwargs) -> R:
        for name in arguments:
            if name not in known:
                hint = _meant(name, arguments, known)
                raise ArgumentError(f"{function.__name__} has no argument {name!r}; {hint}")
        return function(*args, **arguments)

    return checked


def _meant(name: str, arguments: Mapping[str, Any], known: list[str]) -> str:
    method = arguments.get("method", "auto")
    options = option_names(method_class(method)) if method in METHODS else []
    if name in ("preset", *options):
        return f"it is an option of the method: method_options={{{name!r}: {arguments[name]!r}}}"
    near = difflib.get_close_matches(name, known, 1)
    meant = _ELSEWHERE.get(name) or (near[0] if near else None)
    return f"did you mean {meant}?" if meant else f"it has {', '.join(known)}"


def check_objective(objective: Any) -> None:
    """Raise StudyError unless `objective` can be called with one config."""
    if not callable(objective):
        raise StudyError(
            "the objective must be a function of a config, got "
            f"{objective!r} ({type(objective).__name__}); pass the function itself, without "
            "calling it: optimize(f, space), not optimize(f(config), space)"
        )
    try:
        signature = inspect.signature(objective)
    except (TypeError, ValueError):  # some functions in C have none
        return
    try:
        signature.bind({})
    except TypeError as error:
        name = getattr(objective, "__name__", type(objective).__name__)
        raise StudyError(
            f"the objective is called with one argument, the config, but {name}{signature} does "
            f"not take that ({error}); set the others with functools.partial or a lambda"
        ) from None


def check_limits(**limits: Any) -> None:
    """Raise StudyError when a limit makes no sense, or the study would never end."""
    for name, value in limits.items():
        if value is not None:
            _check_limit(name, value)
    if all(limits.get(name) is None for name in ("max_trials", "max_seconds", "target")):
        raise StudyError("the study would never end; give max_trials, max_seconds or target")


def _check_limit(name: str, value: Any) -> None:
    kind: Any = numbers.Integral if name in _COUNTS else numbers.Real
    words = "a whole number" if name in _COUNTS else "a number"
    if isinstance(value, bool) or not isinstance(value, kind):
        unit = " of seconds" if name in ("timeout", "max_seconds") else ""
        raise StudyError(f"{name} must be {words}{unit}, got {value!r} ({type(value).__name__})")
    if math.isnan(value):
        raise StudyError(f"{name} must be {words}, got nan")
    if name in _FROM_ZERO and value < 0:
        raise StudyError(f"{name} must be 0 or more, got {value!r}")
    if name not in (*_FROM_ZERO, "target") and not value > 0:
        raise StudyError(f"{name} must be positive, got {value!r}")


def check_name(name: Any) -> None:
    """Raise StudyError unless `name` can be the name of a study."""
    if not isinstance(name, str):
        raise StudyError(
            f"name must be a text, got {name!r} ({type(name).__name__}); write name={str(name)!r}"
        )


def check_folder(storage: str) -> None:
    """Raise StudyError when `storage` is, or lies in, a file."""
    if "://" not in storage:
        for path in (Path(storage), *Path(storage).parents):
            if path.is_file():
                raise StudyError(f"storage={storage!r}: {path} is a file; name a folder")


def checked_points(points: Any) -> list[Mapping[str, Any]]:
    """Return the configs to evaluate first as a list."""
    if isinstance(points, Mapping) or not isinstance(points, Iterable):
        raise StudyError(
            f"points must be a list of configs, got {points!r}; write points=[{{...}}]"
        )
    return list(points)


def checked_values(
    evaluated: Any, objective: Objective
) -> list[tuple[Mapping[str, Any], float, dict[str, Any]]]:
    """Return config, value and extra entries of the points whose results are known."""
    found = [] if isinstance(evaluated, Mapping | str) else evaluated
    known = []
    for item in found if isinstance(found, Iterable) else ():
        if not isinstance(item, tuple | list) or len(item) != 2:
            break
        config, result = item
        try:
            value, extra = objective.parse(result)
        except ObjectiveError as error:
            raise StudyError(f"evaluated: {config!r}: {error}") from None
        known.append((config, value, plain_extra(extra)))
    else:
        if found is evaluated:
            return known
    raise StudyError(
        "evaluated must be a list of pairs of a config and its value, such as "
        f'[({{"x": 0.5}}, 1.25)], got {evaluated!r}'
    )


def check_resources(resources: Resources, coroutines: bool = False) -> None:
    """Raise StudyError when Ray refuses the resources, or no node could ever have them.

    Those of `coroutines` are for a process that runs many of them.
    """
    if callable(resources):
        if coroutines:
            raise StudyError(
                "resources is a function of the config, but an async objective shares a process "
                "with others; give a dict, which is what Ray reserves for such a process"
            )
        return
    if not isinstance(resources, Mapping):
        raise StudyError(
            "resources must be a dict such as {'num_cpus': 2, 'num_gpus': 0.5}, or a function of "
            f"the config that returns one, got {resources!r}"
        )
    try:
        taker: Any = EvaluatorActor if coroutines else evaluate_remotely
        taker.options(**resources)
    except (TypeError, ValueError) as error:
        raise StudyError(f"resources: {_refusal(resources, error)}") from error
    check_fit(resources)


def _refusal(resources: Mapping[str, Any], error: Exception) -> str:
    for name in resources:
        near = difflib.get_close_matches(str(name), _RESOURCE_NAMES, 1)
        meant = _SHORT_NAMES.get(str(name).lower()) or (near[0] if near else None)
        if f"keyword {name} " in str(error):
            hint = f"did you mean {meant!r}?" if meant else f"use {', '.join(_RESOURCE_NAMES)}"
            return (
                f"Ray knows no {name!r}; {hint} (a custom resource goes into "
                f"{{'resources': {{{name!r}: {resources[name]!r}}}}})"
            )
    return f"Ray refuses {dict(resources)!r}: {str(error).strip()}"


def check_same_study(
    record: Record, header: Mapping[str, Any], location: str, resume: bool
) -> None:
    """Raise StudyError unless the study is new, or is continued with the same arguments."""
    old = record.header
    if not old:
        return
    name = header["name"]
    if old["name"] != name:
        raise StudyError(
            f"the folder of study {name!r} holds the study {old['name']!r}: choose another name"
        )
    if not resume:
        raise StudyError(
            f"study {name!r} exists in {location} and resume is False; choose another "
            "name, remove the folder, or continue it with resume=True"
        )
    changes = difference(old["space"], header["space"])
    # What a journal without an entry means.
    earlier: dict[str, Any] = {"constraints": {}, "method": {}, "over": "steps"}
    for key in ("method", "mode", "metric", "constraints", "max_steps", "over", "seed"):
        same = is_same_method if key == "method" else operator.eq
        before: Any = old.get(key, earlier.get(key))
        if not same(before, header[key]):
            changes.append(f"{key}: was {old.get(key)!r}, now {header[key]!r}")
    if changes:
        raise StudyError(
            f"study {name!r} in {location} was started with other arguments ("
            + "; ".join(changes)
            + "); call it with the old ones to continue it, or choose another name and pass its "
            "results as evaluated="
        )


def put(value: Any, what: str, culprit: Any) -> Any:
    """Return a reference to `value` in the object store; raise when it cannot be pickled."""
    try:
        return ray.put(value)
    except (TypeError, pickle.PicklingError, AttributeError, RecursionError) as error:
        found: Any = ray.util.inspect_serializability(culprit, print_file=io.StringIO())[1]
        names = sorted({_name_of(failure) for failure in found}) or [repr(culprit)]
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise StudyError(
            f"{what} cannot be sent to the workers: {', '.join(names[:3])} cannot be pickled "
            f"({reason}); create it inside the function, or load it from a file there"
        ) from error


def _name_of(failure: Any) -> str:
    """Return the name of what cannot be pickled; Ray's report has had two shapes."""
    path = getattr(failure, "path", None) or (getattr(failure, "name", "?"),)
    return f"{path[-1]} (a {type(failure.obj).__name__})"
