"""Turns the extra entries of a result into plain JSON of a bounded size, for the journal."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

MAX_BYTES = 64 * 1024  # of all extra entries of a trial
MAX_VALUES = MAX_BYTES // 2  # in one entry: more cannot fit, as each takes two bytes
MAX_DEPTH = 8
MAX_REPR = 200  # characters of an object that JSON cannot hold


class _TooManyValues(Exception):  # noqa: N818  (ends a conversion)
    pass


def plain_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return `extra` as JSON: arrays as lists, other objects by their repr, without huge ones."""
    plain = {str(key): _plain_entry(value) for key, value in extra.items()}
    sizes = {key: len(json.dumps(value)) for key, value in plain.items()}
    while sum(sizes.values()) > MAX_BYTES:
        largest = max(sizes, key=lambda key: sizes[key])
        plain[largest] = f"<left out: {sizes[largest]} bytes>"
        sizes[largest] = 0
    return plain


def _plain_entry(value: Any) -> Any:
    try:
        return _plain(value, MAX_DEPTH, itertools.count())
    except _TooManyValues:
        return f"<left out: more than {MAX_VALUES} values>"


def _plain(value: Any, depth: int, counter: Iterator[int]) -> Any:
    if next(counter) > MAX_VALUES:
        raise _TooManyValues
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 1024 else _repr(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if depth == 0:
        return _repr(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, depth - 1, counter) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v, depth - 1, counter) for v in value]
    return _plain_array(value, depth, counter)


def _plain_array(value: Any, depth: int, counter: Iterator[int]) -> Any:
    """Convert arrays, tensors and their scalars without importing any of their packages."""
    shape, to_list = getattr(value, "shape", None), getattr(value, "tolist", None)
    if callable(to_list) and isinstance(shape, tuple) and math.prod(shape) <= MAX_VALUES:
        return _plain(to_list(), depth - 1, counter)
    return _repr(value)


def _repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (the user's own __repr__ may raise anything)
        text = f"<{type(value).__name__}: repr failed with {type(error).__name__}>"
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 3] + "..."
