"""Checks of what users give: numbers, bounds, steps, equal values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from raybo.errors import SpaceError


def as_float(value: Any) -> Any:
    """Real numbers other than bool as float; anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    try:
        return float(value)
    except OverflowError:
        return value


def as_int(value: Any) -> Any:
    """Whole numbers, 3.0 included, as int; anything else unchanged."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer()):
        return int(value)  # type: ignore[call-overload]  # Real has no __int__ in its stub
    return value


def check_bounds(parameter: Any, expected: type[Any], largest: float, words: str) -> None:
    """Raise SpaceError unless low and high bound a range, on the wanted scale."""
    low, high = parameter.low, parameter.high
    for field, bound in (("low", low), ("high", high)):
        if type(bound) is not expected or not -largest <= bound <= largest:
            raise SpaceError(f"{field} must be {words}, got {bound!r} ({type(bound).__name__})")
    if low > high:
        raise SpaceError(f"needs low <= high, got low={low}, high={high}; swap them")
    if not isinstance(parameter.log, bool):
        raise SpaceError(f"log must be True or False, got {parameter.log!r}")
    if parameter.log and low <= 0:
        raise SpaceError(
            f"log=True needs 0 < low < high, got low={low}, high={high}; raise low or drop log"
        )


def check_step(parameter: Any, expected: type[Any]) -> None:
    """Raise SpaceError unless the step is positive and fits into the range."""
    low, high, step = parameter.low, parameter.high, parameter.step
    if type(step) is not expected or not 0 < step < math.inf:
        raise SpaceError(f"step must be a positive {expected.__name__}, got {step!r}")
    if low < high and step > high - low:
        raise SpaceError(f"step={step} exceeds high - low = {high - low}; lower or drop step")


def same(a: Any, b: Any) -> bool:
    """Identity, or equality of two objects of one type (in lists and tuples, entry by entry)."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # arrays and the like: only identity tells
        return False


def listed(values: Iterable[Any], most: int = 12) -> str:
    """Return the first values, joined by commas."""
    shown = [repr(value) for value in values]
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} values)" if len(shown) > most else "")
