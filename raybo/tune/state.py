"""The saved state of a searcher: a JSON file, read without executing anything."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray.tune.result import DEFAULT_METRIC

from raybo.errors import StudyError
from raybo.methods.base import Method
from raybo.methods.registry import METHODS, describe_method
from raybo.study.objective import Constraints, Objective
from raybo.tune.space.domains import holds
from raybo.tune.space.json import describe, is_lost, rebuild

logger = logging.getLogger(__name__)

STATE_VERSION = 1


def check_objective(metric: Any, mode: Any) -> None:
    """Refuse modes other than min and max, and lists that do not belong together."""
    several = isinstance(metric, list | tuple), isinstance(mode, list | tuple)
    if any(several) and (not all(several) or len(metric) != len(mode) or not metric):
        raise StudyError(
            f"metric is {metric!r} and mode is {mode!r}; of several metrics each has its mode: "
            'metric=["loss", "latency"], mode=["min", "min"]'
        )
    for each in mode if any(several) else [mode]:
        if each not in (None, "min", "max"):
            raise StudyError(f"mode must be 'min' or 'max', got {each!r}")


def objective_of(
    metric: str | Sequence[str] | None,
    mode: str | Sequence[str] | None,
    constraints: Constraints,
) -> Objective:
    """Return what a search for one metric, or for several, optimises."""
    if metric is None:
        metric = DEFAULT_METRIC  # what a trainable that returns a number reports
    if isinstance(metric, str):
        return Objective(str(mode or "min"), metric, constraints)
    modes = mode or ()
    others = dict(zip(metric[1:], modes[1:], strict=True))
    return Objective(modes[0], metric[0], constraints, others)


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write the state of a searcher."""
    head = {"raybo": "RayBOSearch", "version": STATE_VERSION}
    path.write_text(json.dumps({**head, **state}))


def read_state(path: Path) -> dict[str, Any]:
    """Return the state that `write_state` wrote."""
    try:
        state = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or state.get("raybo") != "RayBOSearch":
        raise StudyError(f"{path} is not a saved state of RayBOSearch; was it another searcher's?")
    if state.get("version") != STATE_VERSION:
        raise StudyError(
            f"{path} has version {state.get('version')!r}, this release reads {STATE_VERSION}"
        )
    return state


def method_to_json(method: str | Method, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method, by its name, as JSON; of a method object only its class is kept."""
    if isinstance(method, str):
        return {"name": method, "options": describe(dict(options))}
    return {"name": describe_method(method)["name"], "options": None}


def restored_method(
    saved: Mapping[str, Any], method: str | Method, options: Mapping[str, Any]
) -> tuple[str | Method, dict[str, Any]]:
    """Return the saved method and its options, or those given where JSON could not hold them."""
    name, saved_options = saved["name"], rebuild(saved["options"])
    if isinstance(method, str) and name in METHODS and not holds(saved_options, is_lost):
        return name, dict(saved_options)
    return method, dict(options)


def restored_points(items: list[Any]) -> list[Any]:
    """Return the saved points, without those that hold an object JSON could not hold."""
    points = [rebuild(item) for item in items]
    kept = [point for point in points if not holds(point, is_lost)]
    if len(kept) < len(points):
        logger.warning("%d points hold objects and could not be restored", len(points) - len(kept))
    return kept
