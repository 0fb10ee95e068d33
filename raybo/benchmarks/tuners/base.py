"""The ask/tell protocol of a tuner, and the specs that name one.

A spec is a name with options: `bo`, `rembo:d=2,k=4,preset=paper`, `botorch:n_init=20`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.errors import MethodError
from raybo.space.any_space import AnySpace

Config = Mapping[str, Any]


class Tuner(Protocol):
    """A search of one space for the smallest loss."""

    def ask(self) -> Config:
        """Return the next config to evaluate."""

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluated config, whether it was asked for or not."""


@dataclass
class CentreFirst:
    """A tuner whose first config is given."""

    tuner: Tuner
    first: Config
    _asked: bool = field(default=False, init=False)

    def ask(self) -> Config:
        """Return the given config, then what the tuner asks for."""
        if self._asked:
            return self.tuner.ask()
        self._asked = True
        return self.first

    def tell(self, config: Config, loss: float) -> None:
        """Pass on an evaluated config."""
        self.tuner.tell(config, loss)


def centre_config(space: AnySpace) -> Config:
    """Return the config at the centre of the unit cube."""
    if not space.dense:
        raise BenchmarkError(
            f"a box of {space.dim:,} dimensions has no centre config; start anywhere instead"
        )
    return space.decode(np.full(space.dim, 0.5))


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Return name and options of a spec; numbers, true, false and none are read as such."""
    name, _, rest = spec.partition(":")
    options: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise MethodError(f"{spec!r}: {item!r} is not option=value")
        options[key.strip()] = _value(text.strip())
    return name, options


def split_specs(text: str) -> list[str]:
    """Return the specs of a list: `rembo:d=2,k=4,bo` holds two, since `k=4` is no name."""
    specs: list[str] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        if "=" in item and ":" not in item and specs:
            specs[-1] += f",{item}"
        else:
            specs.append(item)
    return specs


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
