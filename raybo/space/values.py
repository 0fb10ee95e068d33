"""Convert, compare and show the values that users give."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def as_float(value: Any) -> Any:
    """Return a real number other than a bool as float; anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    try:
        return float(value)
    except OverflowError:
        return value


def as_int(value: Any) -> Any:
    """Return a whole number, 3.0 included, as int; anything else unchanged."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer()):
        return int(value)  # type: ignore[call-overload]  # Real has no __int__ in its stub
    return value


def same(a: Any, b: Any) -> bool:
    """Return whether a and b are one object, or equal and of one type, entries included."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # arrays and such: only identity is sure
        return False


def listed(values: Iterable[Any], most: int = 12) -> str:
    """Return the first values, joined by commas."""
    shown = [repr(value) for value in values]
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} values)" if len(shown) > most else "")


def is_scalar(value: Any) -> bool:
    """Return whether the value is None, a bool, int, finite float or str, not of a subclass."""
    return value is None or (
        type(value) in (bool, int, float, str)
        and not (type(value) is float and not math.isfinite(value))
    )


def to_json(value: Any) -> Any:
    """Return the value itself if JSON gives exactly it back, else {"$object": its repr}."""
    if _is_json(value):
        return value
    # An address differs from run to run; without it the description can be compared.
    return {"$object": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))}


def _is_json(value: Any) -> bool:
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return "$object" not in value and all(
            type(key) is str and _is_json(entry) for key, entry in value.items()
        )
    return is_scalar(value)
