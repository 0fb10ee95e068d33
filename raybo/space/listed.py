"""A list of configs: the only ones that a space allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from raybo.arrays import Array, Bools, Indices
from raybo.errors import SpaceError
from raybo.space.columns import Column, Config


class Encodes(Protocol):
    """What a list knows of its space."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The coordinates of the unit cube."""

    def encode(self, config: Config) -> Array:
        """Return the row of a config."""

    def to_json(self, config: Config) -> dict[str, Any]:
        """Return a config as JSON."""

    def from_json(self, obj: Any) -> dict[str, Any]:
        """Return the config that `to_json` wrote."""


class Listed:
    """The condition that a config is one of a list; of equal ones the first counts.

    Attributes
    ----------
    definition : list of dict
        The configs, as JSON.
    rows : ndarray, shape (k, d)
        The configs as rows of the unit cube.
    """

    def __init__(self, configs: Sequence[Any], space: Encodes) -> None:
        if not configs:
            raise SpaceError("where is an empty list: no config is allowed; list some")
        found: dict[bytes, tuple[Array, Any]] = {}
        for i, config in enumerate(configs):
            try:
                known = space.to_json(config)
                row = space.encode(space.from_json(known))
            except SpaceError as error:
                raise SpaceError(
                    f"entry {i} of where is no config of the space: {error}"
                ) from None
            found.setdefault(row.tobytes(), (row, known))
        self._space = space
        self._place = {key: i for i, key in enumerate(found)}
        self.definition = [known for _, known in found.values()]
        self.rows = np.array([row for row, _ in found.values()])
        self._values = [
            None if c.ordered else np.unique(self.rows[:, c.index]) for c in space.columns
        ]

    @property
    def shown(self) -> str:
        """For messages."""
        return f"a list of {len(self.definition):,} configs"

    def allows_rows(self, U: Array, active: Bools) -> Bools:  # noqa: ARG002  (as in TextWhere)
        """Return which snapped rows of U (n, d) are allowed: all: they were moved there."""
        return np.ones(len(U), dtype=np.bool_)

    def allows(self, config: Config) -> bool:
        """Return whether a config of the space is in the list."""
        return self._space.encode(config).tobytes() in self._place

    def config(self, row: Array) -> dict[str, Any]:
        """Return the config nearest to a row (d,), with the very numbers that were given."""
        return self._space.from_json(self.definition[self._nearest(row[None])[0]])

    def configs(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over all configs."""
        return map(self._space.from_json, self.definition)

    def nearest(self, U: Array) -> Array:
        """Return rows (n, d) moved to the nearest of the list."""
        return np.asarray(self.rows[self._nearest(U)])

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # noqa: PLC0415  (not all who read a space need it)

        return cKDTree(self._features_of(self.rows))

    def _nearest(self, U: Array) -> Indices:
        """Places in the list; a row of the list has its own."""
        places = np.array([self._place.get(row.tobytes(), -1) for row in U], dtype=np.intp)
        others = np.flatnonzero(places < 0)
        if len(others):
            places[others] = self._tree.query(self._features_of(U[others]))[1]
        return places

    def _features_of(self, U: Array) -> Array:
        """Rows whose squared distances count 1 for every category that differs."""
        parts = [
            U[:, i : i + 1]
            if values is None
            else (np.abs(U[:, i : i + 1] - values) < 1e-9) * np.sqrt(0.5)
            for i, values in enumerate(self._values)
        ]
        return np.concatenate(parts, axis=1)
