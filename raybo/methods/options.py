"""Checks of the options that methods share."""

from __future__ import annotations

import math
from typing import Any

from raybo.errors import MethodError, SpaceError
from raybo.space.any_space import AnySpace

PRESETS = ("default", "paper")


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse an option that is not one of the allowed."""
    if value not in allowed:
        names = ", ".join(repr(a) for a in allowed if a is not None)
        raise MethodError(f"{name} must be one of {names}, got {value!r}")


def check_count(name: str, value: int | None, least: int = 1) -> None:
    """Refuse an option that is neither None nor an integer of at least `least`."""
    if value is not None and (not isinstance(value, int) or value < least):
        raise MethodError(f"{name} must be an integer of at least {least}, got {value!r}")


def check_seconds(value: Any, preset: str = "default") -> None:
    """Refuse a time to search for each proposal that is none, or that a preset has no use for."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < math.inf):
        raise MethodError(
            f"seconds must be a positive number, the time to search for each proposal, "
            f"got {value!r}; leave it out to have a fixed number of starts"
        )
    if value is not None and preset != "default":
        raise MethodError(
            f"seconds, got {value!r}, is not an option of the {preset} preset, whose search is "
            "given; leave one of the two out"
        )


def require_columns(method: str, space: AnySpace) -> None:
    """Refuse a box too large to have a column per dimension."""
    if not space.dense:
        raise SpaceError(
            f"method {method!r} needs one column per dimension, this box has {space.dim:,}; "
            "use method 'rembo' or 'random'"
        )


def require_flat(method: str, space: AnySpace) -> None:
    """Refuse a conditional space, and a box too large to have a column per dimension."""
    require_columns(method, space)
    choice = next((c.name for c in space.columns if c.kind == "choice"), None)
    if choice is not None:
        raise SpaceError(
            f"method {method!r} takes no conditional space, and {choice!r} is a Choice; "
            "use method 'addtree'"
        )
