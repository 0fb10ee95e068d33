"""What a searcher checks and reads: its metric, refusals of a method, its saved state."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from raybo import errors
from raybo.errors import RayboError, StudyError
from raybo.tune.space.domains import holds
from raybo.tune.space.json import is_lost, rebuild
from raybo.tune.suggester import Answer

logger = logging.getLogger(__name__)

STATE_VERSION = 1


def check_objective(metric: Any, mode: Any) -> None:
    """Refuse several metrics, and modes other than min and max."""
    for name, value in (("metric", metric), ("mode", mode)):
        if isinstance(value, list | tuple):
            raise StudyError(
                f"{name} is {value!r}, but RayBOSearch optimises one metric; give one"
            )
    if mode not in (None, "min", "max"):
        raise StudyError(f"mode must be 'min' or 'max', got {mode!r}")


def raise_refusal(answer: Answer) -> None:
    """Raise the error with which a method refused its settings, if it did."""
    if answer.refused is not None:
        name, message = answer.refused
        kind: type[RayboError] = getattr(errors, name, RayboError)
        raise kind(message)


def read_state(path: Path) -> dict[str, Any]:
    """State that `RayBOSearch.save` wrote."""
    try:
        state = json.loads(path.read_bytes())
    except ValueError:
        state = None
    if not isinstance(state, dict) or state.get("raybo") != "RayBOSearch":
        raise StudyError(f"{path} is not a saved state of RayBOSearch; was it another searcher's?")
    if state["version"] != STATE_VERSION:
        raise StudyError(
            f"{path} has version {state['version']!r}, this release reads {STATE_VERSION}"
        )
    return state


def restored_points(items: list[Any]) -> list[Any]:
    """Saved points, but for those with an object that JSON could not hold."""
    points = [rebuild(item) for item in items]
    kept = [point for point in points if not holds(point, is_lost)]
    if len(kept) < len(points):
        logger.warning("%d points hold objects and could not be restored", len(points) - len(kept))
    return kept
