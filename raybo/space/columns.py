"""Columns of a space, and the tree of groups and choices above them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from raybo.arrays import Array
from raybo.errors import SpaceError
from raybo.space.grid import Grid
from raybo.space.parameters import Choice, Parameter

Config = Mapping[str, Any]
Condition = tuple[tuple[int, int], ...]
Visit = Callable[["Column", Any], Any]


@dataclass(frozen=True)
class Column:
    """One coordinate of the unit cube.

    Attributes
    ----------
    index : int
        Position in a row.
    path : tuple of str
        Keys that lead to it in a config, branch names included.
    parameter : Float, Int, Categorical or Choice
        Parameter that the coordinate encodes.
    condition : tuple of (choice column, branch)
        Branches that must be chosen for the column to matter; outermost choice first.
    """

    index: int
    path: tuple[str, ...]
    parameter: Parameter
    condition: Condition = ()

    @property
    def name(self) -> str:
        """The path, joined by slashes."""
        return "/".join(self.path)

    @property
    def kind(self) -> str:
        """One of "float", "int", "categorical", "choice"."""
        return self.parameter.kind

    @property
    def ordered(self) -> bool:
        """Whether a value between two others means something."""
        return self.kind in ("float", "int")

    def snap(self, u: Array) -> Array:
        """Return positions (any shape, in [0, 1]) moved to the values they decode to."""
        grid = self.parameter.grid
        return u if grid is None else grid.snap(u)

    def indices(self, u: Array) -> Array:
        """Return the numbers, as floats, of the values that positions in [0, 1] decode to."""
        grid = self.parameter.grid
        if grid is None:
            raise SpaceError(f"{self.name!r} is continuous: its values are not numbered")
        return grid.indices(u)


@dataclass(frozen=True)
class Leaf:
    """A parameter other than a choice."""

    column: Column

    @property
    def count(self) -> int | None:
        """Number of values; None when continuous."""
        return self.column.parameter.cardinality

    def decode(self, row: Sequence[float]) -> Any:
        """Return the value at a point of the cube."""
        return self.column.parameter.decode(row[self.column.index])

    def point(self, k: int) -> Any:
        """Return value number k."""
        return self.column.parameter.value(k)

    def convert(self, value: Any, visit: Visit) -> Any:
        """Replace the value by what `visit` makes of it."""
        return _visited(self.column, value, visit)


@dataclass(frozen=True)
class Fork:
    """A choice and its branches."""

    column: Column
    grid: Grid
    branches: tuple[tuple[str, Group], ...]

    @cached_property
    def count(self) -> int | None:
        """Number of configs of all branches; None when infinite."""
        counts = [group.count for _, group in self.branches]
        return None if None in counts else sum(filter(None, counts))

    def decode(self, row: Sequence[float]) -> dict[str, Any]:
        """Return {branch: its parameters} at a point of the cube."""
        name, group = self.branches[self.grid.index(row[self.column.index])]
        return {name: group.decode(row)}

    def point(self, k: int) -> dict[str, Any]:
        """Return {branch: its parameters} number k; the first branch comes first."""
        for name, group in self.branches:
            size = group.count or 0
            if k < size:
                return {name: group.point(k)}
            k -= size
        raise IndexError(k)

    def convert(self, value: Any, visit: Visit) -> dict[str, Any]:
        """Check the branch and replace the values of its parameters."""
        if not isinstance(value, Mapping) or len(value) != 1:
            names = ", ".join(repr(name) for name, _ in self.branches)
            raise SpaceError(
                f"{self.column.name!r}: expected {{branch: {{its parameters}}}} with one of the "
                f"branches {names}, got {value!r}"
            )
        [(name, inside)] = value.items()
        _visited(self.column, name, visit)
        return {name: dict(self.branches)[name].convert(inside, visit)}


@dataclass(frozen=True)
class Group:
    """Named nodes, all of them present: a space, a nested dict or a branch."""

    path: tuple[str, ...]
    nodes: dict[str, Node]

    @cached_property
    def count(self) -> int | None:
        """Number of configs; None when infinite."""
        counts = [node.count for node in self.nodes.values()]
        return None if None in counts else math.prod(filter(None, counts))

    def decode(self, row: Sequence[float]) -> dict[str, Any]:
        """Return the config at a point of the cube."""
        return {name: node.decode(row) for name, node in self.nodes.items()}

    def point(self, k: int) -> dict[str, Any]:
        """Return config number k; the first parameter changes fastest."""
        config = {}
        for name, node in self.nodes.items():
            k, digit = divmod(k, node.count or 1)
            config[name] = node.point(digit)
        return config

    def convert(self, config: Any, visit: Visit) -> dict[str, Any]:
        """Check the keys and replace every value by what `visit` makes of it."""
        if not isinstance(config, Mapping):
            raise SpaceError(f"{self._at()}: expected a dict, got {config!r}")
        for name in config:
            if name not in self.nodes:
                known = ", ".join(map(repr, self.nodes)) or "none"
                raise SpaceError(f"{self._at(name)}: no such parameter; known here: {known}")
        for name in self.nodes:
            if name not in config:
                raise SpaceError(f"{self._at(name)}: missing from the config; add it")
        return {name: node.convert(config[name], visit) for name, node in self.nodes.items()}

    def _at(self, *more: Any) -> str:
        return repr("/".join(map(str, (*self.path, *more)))) if self.path or more else "config"


Node = Leaf | Fork | Group


def build(
    parameters: Any, columns: list[Column], path: tuple[str, ...] = (), condition: Condition = ()
) -> Group:
    """Return the tree of a dict of parameters; append its columns to `columns`, parents first.

    Raises
    ------
    SpaceError
        With the path of the first definition that makes no sense.
    """
    nodes: dict[str, Node] = {}
    for name, entry in parameters.items():
        where = (*path, _checked_name(name, path))
        if isinstance(entry, Mapping):
            if not entry:
                raise SpaceError(f"{'/'.join(where)!r}: an empty group; give it a parameter")
            nodes[name] = build(entry, columns, where, condition)
        else:
            nodes[name] = _build_parameter(entry, columns, where, condition)
    return Group(path, nodes)


def _build_parameter(
    entry: Any, columns: list[Column], path: tuple[str, ...], condition: Condition
) -> Leaf | Fork:
    if not isinstance(entry, Parameter):
        raise SpaceError(
            f"{'/'.join(path)!r}: expected a Float, Int, Categorical, Choice or a dict of them, "
            f"got {entry!r}; write for instance raybo.Float(0, 1), raybo.Int(1, 9) or "
            'raybo.Categorical(["a", "b"])'
        )
    column = Column(len(columns), path, entry, condition)
    try:
        entry.check()
    except SpaceError as error:
        raise SpaceError(f"{column.name!r}: {error}") from None
    columns.append(column)
    if not isinstance(entry, Choice):
        return Leaf(column)
    branches = []
    for k, (name, branch) in enumerate(entry.branches.items()):
        where = (*path, _checked_name(name, path))
        if not isinstance(branch, Mapping):
            raise SpaceError(
                f"{'/'.join(where)!r}: a branch is a dict of parameters, {{}} for none, "
                f"got {branch!r}"
            )
        group = build(branch, columns, where, (*condition, (column.index, k)))
        branches.append((name, group))
    return Fork(column, entry.grid, tuple(branches))


def _checked_name(name: Any, path: tuple[str, ...]) -> str:
    if not isinstance(name, str) or not name:
        where = f"{'/'.join(path)!r}: " if path else ""
        raise SpaceError(f"{where}names must be non-empty strings, got {name!r}; quote it")
    return name


def _visited(column: Column, value: Any, visit: Visit) -> Any:
    try:
        return visit(column, value)
    except SpaceError as error:
        raise SpaceError(f"{column.name!r}: {error}") from None
