"""How parameters are described: exactly in JSON, shortly in python."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def describe(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """JSON description of a (nested) dict of parameters."""
    return {
        name: describe(entry) if isinstance(entry, Mapping) else entry.definition()
        for name, entry in parameters.items()
    }


def describe_number(parameter: Any) -> dict[str, Any]:
    """JSON description of a Float or Int; the fields at their defaults are left out."""
    values = [(field, getattr(parameter, field.name)) for field in fields(parameter)]
    changed = {field.name: value for field, value in values if value != field.default}
    return {"type": parameter.kind, **changed}


def show_number(parameter: Any) -> str:
    """Constructor call of a Float or Int; the fields at their defaults are left out."""
    _, (_, low), (_, high), *options = parameter.definition().items()
    shown = [repr(low), repr(high), *(f"{name}={value!r}" for name, value in options)]
    return f"{type(parameter).__name__}({', '.join(shown)})"


def to_json(value: Any) -> Any:
    """Return the value itself if JSON gives exactly it back, else {"$object": its repr}."""
    if _is_json(value):
        return value
    # An address differs from run to run; without it the description can be compared.
    return {"$object": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))}


def is_scalar(value: Any) -> bool:
    """Whether the value is None, a bool, int, finite float or str, and of no subclass."""
    return value is None or (
        type(value) in (bool, int, float, str)
        and not (type(value) is float and not math.isfinite(value))
    )


def copy_tree(entry: Any) -> Any:
    """Copy of nested mappings as dicts; everything else is shared."""
    if not isinstance(entry, Mapping):
        return entry
    return {name: copy_tree(child) for name, child in entry.items()}


def _is_json(value: Any) -> bool:
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return "$object" not in value and all(
            type(key) is str and _is_json(entry) for key, entry in value.items()
        )
    return is_scalar(value)
