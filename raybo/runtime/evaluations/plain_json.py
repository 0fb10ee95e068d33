"""Extra entries of a result, made fit for a journal: plain JSON of a bounded size."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_MAX_BYTES = 64 * 1024  # of all extra entries of a trial
_MAX_DEPTH = 8
_MAX_ITEMS = 10_000
_MAX_REPR = 200


def plain_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` as JSON: arrays as lists, other objects as their repr, too large ones left out."""
    plain = {str(key): _plain(value, _MAX_DEPTH) for key, value in extra.items()}
    sizes = {key: len(json.dumps(value)) for key, value in plain.items()}
    while sum(sizes.values()) > _MAX_BYTES:
        largest = max(sizes, key=lambda key: sizes[key])
        plain[largest] = f"<left out: {sizes[largest]} bytes>"
        sizes[largest] = 0
    return plain


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 1024 else _repr(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if depth == 0:
        return _repr(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, depth - 1) for k, v in list(value.items())[:_MAX_ITEMS]}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v, depth - 1) for v in list(value)[:_MAX_ITEMS]]
    return _plain_array(value, depth)


def _plain_array(value: Any, depth: int) -> Any:
    """Arrays, tensors and their scalars by duck typing: none of their packages is imported."""
    shape, to_list = getattr(value, "shape", None), getattr(value, "tolist", None)
    if callable(to_list) and isinstance(shape, tuple) and math.prod(shape) <= _MAX_ITEMS:
        return _plain(to_list(), depth - 1)
    return _repr(value)


def _repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (the user's own __repr__ may raise anything)
        text = f"<{type(value).__name__}: repr failed with {type(error).__name__}>"
    return text if len(text) <= _MAX_REPR else text[: _MAX_REPR - 3] + "..."
