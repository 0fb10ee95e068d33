"""Configs as users write them: nested, or flat with keys joined by slashes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

MISSING = object()  # a value that a config does not give


def nested(config: Mapping[Any, Any], known: Collection[Any]) -> dict[Any, Any]:
    """Return one level of a config with the known keys, flat entries gathered below them.

    >>> nested({"net/lr": 0.1, "net": {"wd": 0}, "seed": 1}, ["net", "seed"])
    {'net': {'wd': 0, 'lr': 0.1}, 'seed': 1}
    """
    names = {str(key): key for key in known}
    level = {names.get(str(key), key): value for key, value in config.items()}
    for key in [key for key in level if key not in known and "/" in str(key)]:
        owner = max((n for n in names if str(key).startswith(n + "/")), key=len, default=None)
        if owner is None:
            continue
        inside = level.get(names[owner], {})
        rest = str(key)[len(owner) + 1 :]
        if not isinstance(inside, Mapping):
            inside = index_keys(inside, len(inside) if isinstance(inside, list | tuple) else 0)
        level[names[owner]] = {**inside, rest: level.pop(key)}
    return level


def index_keys(value: Any, length: int) -> Any:
    """Return a sequence of the right length as a dict by index, anything else unchanged."""
    if isinstance(value, list | tuple) and len(value) == length:
        return dict(enumerate(value))
    return value
