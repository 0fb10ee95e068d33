"""Names of studies that nobody named."""

from __future__ import annotations

import secrets

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
