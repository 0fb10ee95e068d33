"""Checks of the arguments of optimize, before anything is started."""

from __future__ import annotations

import io
import math
import operator
import pickle
from collections.abc import Mapping
from typing import Any

import ray

from raybo.errors import StudyError
from raybo.methods.registry import is_same_method
from raybo.runtime.cluster import check_fit
from raybo.runtime.evaluations.evaluate import evaluate_remotely
from raybo.runtime.session import Resources
from raybo.space.definition import difference
from raybo.study.journal.record import Record


def check_limits(
    max_trials: int | None,
    max_seconds: float | None,
    target: float | None,
    workers: int | None,
    timeout: float | None,
    retries: int,
) -> None:
    """Raise StudyError when a limit makes no sense, or the study would never end."""
    if max_trials is None and max_seconds is None and target is None:
        raise StudyError("the study would never end; give max_trials, max_seconds or target")
    positive = {
        "max_trials": max_trials,
        "max_seconds": max_seconds,
        "workers": workers,
        "timeout": timeout,
    }
    for name, value in positive.items():
        if value is not None and not value > 0:
            raise StudyError(f"{name} must be positive, got {value!r}")
    if target is not None and math.isnan(target):
        raise StudyError("target must be a number, got nan")
    if retries < 0:
        raise StudyError(f"retries must be 0 or more, got {retries!r}")


def check_resources(resources: Resources) -> None:
    """Raise StudyError when Ray refuses the resources, or no node could ever have them."""
    if callable(resources):
        return
    try:
        evaluate_remotely.options(**resources)
    except (TypeError, ValueError) as error:
        raise StudyError(f"resources: Ray refuses {resources!r}: {error}") from error
    check_fit(resources)


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
    for key in ("method", "mode", "metric", "seed"):
        same = is_same_method if key == "method" else operator.eq
        if not same(old[key], header[key]):
            changes.append(f"{key}: was {old[key]!r}, now {header[key]!r}")
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
