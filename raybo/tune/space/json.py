"""A param_space as JSON and back, so that a saved searcher needs no pickle.

A scalar stands for itself; anything else is a dict with one key that says what it is:

    {"dict": [[key, entry], ...]}   {"list": [...]}   {"tuple": [...]}
    {"tune": ["loguniform", 1e-05, 0.1]}   {"choice": [entry, ...]}   {"lost": repr}

An object that JSON cannot hold is lost: it comes back as `Lost`, with its repr.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from ray import tune
from ray.tune.search.sample import Domain

from raybo.errors import StudyError
from raybo.space.values import as_float, as_int, is_scalar
from raybo.tune.space.domains import holds, is_open, signature

_KINDS: dict[type[Any], str] = {dict: "dict", list: "list", tuple: "tuple"}
_DOMAINS = (
    "uniform", "quniform", "loguniform", "qloguniform", "randn", "qrandn",
    "randint", "qrandint", "lograndint", "qlograndint",
)  # fmt: skip


@dataclass(frozen=True)
class Lost:
    """An object that was in a param_space and cannot be read back from JSON."""

    text: str


def is_lost(entry: Any) -> bool:
    """Whether the entry stands for an object that JSON could not hold."""
    return isinstance(entry, Lost)


def describe(entry: Any) -> Any:
    """Return a param_space, or an entry of one, as JSON."""
    if isinstance(entry, Domain):
        name, arguments = signature(entry)
        if name == "choice":
            return {"choice": [describe(value) for value in arguments[0]]}
        return {"tune": [name, *map(_plain, arguments)]}
    kind = _kind(entry)
    if kind == "dict":
        return {"dict": [[describe(key), describe(value)] for key, value in entry.items()]}
    if kind is not None:
        return {kind: [describe(value) for value in entry]}
    if is_scalar(entry):
        return entry
    text = entry.text if isinstance(entry, Lost) else repr(entry)
    # An address differs from run to run; without it the descriptions can be compared.
    return {"lost": re.sub(r" at 0x[0-9a-fA-F]+", "", text)}


def rebuild(item: Any) -> Any:
    """Return the param_space that `describe` gave; calls only the functions of ray.tune above."""
    if not isinstance(item, dict):
        return item
    [(kind, body)] = item.items()
    if kind == "dict":
        return {rebuild(key): rebuild(value) for key, value in body}
    if kind in ("list", "tuple"):
        values = [rebuild(value) for value in body]
        return values if kind == "list" else tuple(values)
    if kind == "choice":
        return tune.choice([rebuild(value) for value in body])
    if kind == "tune" and body[0] in _DOMAINS:
        return getattr(tune, body[0])(*body[1:])
    if kind == "lost":
        return Lost(body)
    raise StudyError(f"the saved param_space holds {kind!r}, which this release does not know")


def _kind(entry: Any) -> str | None:
    """Return which container the entry is; a subclass only counts if it has domains in it."""
    kind = next((k for k in _KINDS if isinstance(entry, k)), None)
    return (
        None
        if kind is None or not (type(entry) is kind or holds(entry, is_open))
        else _KINDS[kind]
    )


def _plain(number: Any) -> Any:
    """Return a bound as a python number, whatever numpy made of it."""
    return as_int(number) if isinstance(number, Integral) else as_float(number)
