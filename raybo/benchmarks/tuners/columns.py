"""A space as flat variables with conditions, which is what other tools' tuners take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.errors import MethodError
from raybo.space.any_space import AnySpace
from raybo.space.columns import Column
from raybo.space.parameters import Float, Int

Values = dict[str, float | int]


@dataclass(frozen=True)
class Dimension:
    """One variable of a flattened space.

    Attributes
    ----------
    name : str
        Path of the column.
    kind : str
        "float" and "int" are numbers in [low, high]; so is a "category", an index without order.
    indexed : bool
        Whether values are indices: of categories, or of the values of a number with a step, which
        is an "int" to the tools.
    parent : (str, int), optional
        The choice, and the index of its branch, under which the variable exists.
    """

    name: str
    kind: str
    column: Column
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    indexed: bool = False
    parent: tuple[str, int] | None = None

    @property
    def size(self) -> int:
        """Number of values of a category."""
        return int(self.high) + 1

    def value(self, u: float) -> float | int:
        """Return the value at position u of the column."""
        if self.indexed:
            return self.column.parameter.grid.index(u)  # type: ignore[union-attr]  # has a grid
        return float(self.column.parameter.decode(u)) if self.kind == "float" else self._int(u)

    def _int(self, u: float) -> int:
        return int(self.column.parameter.decode(u))

    def positions(self, most: int) -> list[float]:
        """Return the positions of all values of the column; none where it has more than `most`."""
        grid = self.column.parameter.grid
        return [] if grid is None or grid.size > most else grid.positions().tolist()

    def position(self, value: float | int) -> float:
        """Return the position of a value in the column; numbers are clipped to the bounds."""
        number = min(max(value, self.low), self.high)
        if self.indexed:
            return self.column.parameter.grid.position(round(number))  # type: ignore[union-attr]
        return self.column.parameter.encode(round(number) if self.kind == "int" else float(number))


class Flat:
    """A space as a tuple of dimensions, and the conversion of its configs.

    Constants have no dimension. A choice comes before the dimensions that depend on it.
    """

    def __init__(self, space: AnySpace) -> None:
        self.space = space
        self.dimensions = tuple(
            _dimension(column, space.columns)
            for column in space.columns
            if column.parameter.cardinality != 1 or column.kind == "choice"
        )

    def values(self, config: Mapping[str, Any]) -> Values:
        """Return the values, by name, of the dimensions that exist in a config."""
        row = self.space.encode(config)
        active = self.space.active(row[None])[0]
        return {
            d.name: d.value(float(row[d.column.index]))
            for d in self.dimensions
            if active[d.column.index]
        }

    def config(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config of these values; those of branches not chosen are ignored."""
        row = np.full(self.space.dim, 0.5)
        for d in self.dimensions:
            if d.name in values:
                row[d.column.index] = d.position(values[d.name])
        return self.space.decode(row)

    def key(self, config: Mapping[str, Any]) -> bytes:
        """Return a key that is equal for equal configs only."""
        return self.space.encode(config).tobytes()

    def need_unconditional(self, tuner: str) -> None:
        """Raise MethodError where the space has conditional parameters."""
        for d in self.dimensions:
            if d.parent is not None:
                raise MethodError(
                    f"{tuner} cannot search {d.name!r}, which exists only for some values of "
                    f"{d.parent[0]!r}; use random, optuna-tpe, hyperopt or smac on such a space"
                )


def _dimension(column: Column, columns: tuple[Column, ...]) -> Dimension:
    parent = None
    if column.condition:
        choice, branch = column.condition[-1]
        parent = (columns[choice].name, branch)
    parameter, name = column.parameter, column.name
    last = (parameter.cardinality or 0) - 1
    if not isinstance(parameter, Float | Int):
        return Dimension(name, "category", column, high=last, indexed=True, parent=parent)
    stepped = parameter.step is not None and (isinstance(parameter, Float) or parameter.step != 1)
    if stepped:  # on a log scale too: no tool takes both
        return Dimension(name, "int", column, high=last, indexed=True, parent=parent)
    low, high, log = parameter.low, parameter.high, parameter.log
    return Dimension(name, column.kind, column, low, high, log, parent=parent)
