"""Checks of the options and spaces of methods."""

from __future__ import annotations

import math
from typing import Any

from raybo.errors import MethodError, SpaceError
from raybo.lazy import torch
from raybo.space.any_space import AnySpace


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse an option that is not one of the allowed."""
    if value not in allowed:
        names = ", ".join(repr(a) for a in allowed if a is not None)
        raise MethodError(f"{name} must be one of {names}, got {value!r}")


def check_count(name: str, value: int | None, least: int = 1) -> None:
    """Refuse an option that is neither None nor an integer of at least `least`."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if value is not None and not is_count:
        raise MethodError(f"{name} must be an integer of at least {least}, got {value!r}")


def check_number(name: str, value: Any, low: float, high: float, hint: str) -> None:
    """Refuse an option that is neither None nor a number from low to high."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and low <= value <= high):
        raise MethodError(
            f"{name} must be a number from {low:g} to {high:g}, got {value!r}; {hint}"
        )


def check_seconds(value: Any) -> None:
    """Refuse a time to search for each proposal that is not positive and finite."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < math.inf):
        raise MethodError(
            f"seconds must be a positive number, the time to search for each proposal, "
            f"got {value!r}; leave it out to have a fixed number of starts"
        )


def check_device(device: Any) -> None:
    """Refuse a device on which torch cannot compute."""
    if device == "cpu":
        return
    try:
        torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        if reason.startswith("Expected one of"):  # all devices that any torch knows
            reason = "torch knows none of that name"
        raise MethodError(
            f"device {device!r} cannot be used ({reason}); use 'cpu', or 'cuda' where torch "
            "has CUDA and sees a GPU"
        ) from error


def require_columns(method: str, space: AnySpace) -> None:
    """Refuse a box too large to have a column per dimension."""
    if not space.dense:
        raise SpaceError(
            f"method {method!r} needs one column per dimension, this box has {space.dim:,}; "
            "use method 'bins', 'rembo' or 'random'"
        )


def require_unconditional(method: str, space: AnySpace) -> None:
    """Refuse a conditional space."""
    columns = space.columns if space.dense else ()
    choice = next((c.name for c in columns if c.kind == "choice"), None)
    if choice is not None:
        raise SpaceError(
            f"method {method!r} takes no conditional space, and {choice!r} is a Choice; "
            "use method 'addtree'"
        )


def require_flat(method: str, space: AnySpace) -> None:
    """Refuse a conditional space, and a box too large to have a column per dimension."""
    require_columns(method, space)
    require_unconditional(method, space)


def require_ordered(method: str, space: AnySpace, why: str) -> None:
    """Refuse a space with categories; `why` says what the method needs instead."""
    require_flat(method, space)
    name = next((c.name for c in space.columns if c.kind == "categorical"), None)
    if name is not None:
        raise SpaceError(
            f"method {method!r} {why}, and {name!r} is Categorical: its values have no order; "
            "use method 'bo'"
        )
