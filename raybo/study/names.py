"""Names of studies that nobody named, and of objectives."""

from __future__ import annotations

import importlib
import secrets
from typing import Any

_FIRST = (
    "amber",
    "calm",
    "crisp",
    "early",
    "fond",
    "golden",
    "jolly",
    "late",
    "mellow",
    "neat",
    "plain",
    "quiet",
    "rosy",
    "sharp",
    "silver",
    "snug",
    "spry",
    "stout",
    "tidy",
    "warm",
)
_SECOND = (
    "alder",
    "badger",
    "brook",
    "cloud",
    "crane",
    "dune",
    "fern",
    "fox",
    "grove",
    "hare",
    "heath",
    "iris",
    "jay",
    "lark",
    "lynx",
    "meadow",
    "orchid",
    "owl",
    "pond",
    "ridge",
    "rowan",
)


def fresh_name() -> str:
    """Return a readable name for a study; two calls give different names."""
    return f"{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}-{secrets.token_hex(3)}"


def import_path(function: Any) -> str | None:
    """`module:qualname` by which another process can import `function`; None if it cannot."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if found is function else None
