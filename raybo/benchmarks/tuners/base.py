"""The ask/tell protocol of a tuner, and the specs that name one.

A spec is a name with options: `bo`, `rembo:d=2,k=4,preset=paper`, `botorch:n_init=20`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.errors import MethodError
from raybo.space.any_space import AnySpace

Config = Mapping[str, Any]


class AskTell(Protocol):
    """A search of one space for the smallest loss, as each tool or method offers it."""

    def ask(self) -> Config:
        """Return the next config to evaluate."""

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluated config, whether it was asked for or not."""


@runtime_checkable
class Recommends(Protocol):
    """A search with a rule of its own for the config to deploy."""

    def recommend(self) -> Config:
        """Return the config that it would deploy."""


@dataclass
class Tuner:
    """A search whose first config may be given, and which recommends a config to deploy.

    Parameters
    ----------
    search
        What proposes the configs.
    first
        Config to begin with; None to leave the first one to the search.
    """

    search: AskTell
    first: Config | None = None
    _best: tuple[float, Config] | None = field(default=None, init=False)

    def ask(self) -> Config:
        """Return the next config to evaluate."""
        if self.first is None:
            return self.search.ask()
        first, self.first = self.first, None
        return first

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluated config, whether it was asked for or not."""
        self.search.tell(config, loss)
        if self._best is None or loss < self._best[0]:
            self._best = loss, config

    @property
    def luckiest(self) -> Config:
        """Config of the smallest loss told."""
        if self._best is None:
            raise MethodError("no loss has been told yet: there is no config to recommend")
        return self._best[1]

    def recommend(self) -> Config:
        """Return the config to deploy: the luckiest, unless the search has a rule of its own."""
        return self.search.recommend() if isinstance(self.search, Recommends) else self.luckiest


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
