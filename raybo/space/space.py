"""Space: a dict of parameters; converts configs to rows of the unit cube and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from raybo.arrays import Array, Bools
from raybo.errors import SpaceError
from raybo.space import allowed
from raybo.space.columns import Column, Config, build
from raybo.space.listed import Listed
from raybo.space.parameters import Categorical, copy_tree, describe
from raybo.space.values import is_scalar
from raybo.space.where import Where, where_of

LISTED = 10_000  # configs, at most, of a space whose allowed ones are counted


class Space:
    """An immutable search space.

    Parameters
    ----------
    parameters : dict
        Name to Float, Int, Categorical or Choice, or to a nested dict of them.
    where : str, callable or sequence, optional
        The configs that are allowed: a text such as "a <= b" (`raybo.space.expression` has the
        language), a function of the config that returns True or False, or a list of configs. No
        other is proposed.

    Raises
    ------
    SpaceError
        With the path of the first parameter that makes no sense; when `where` cannot be read,
        fails, or allows nothing that can be found.

    Examples
    --------
    >>> from raybo.space.parameters import Choice, Float, Int
    >>> space = Space({
    ...     "lr": Float(1e-5, 1e-1, log=True),
    ...     "compress": Choice({"svd": {"rank": Int(10, 500)}, "none": {}}),
    ... })
    >>> space.decode([1.0, 0.25, 0.0])
    {'lr': 0.1, 'compress': {'svd': {'rank': 10}}}
    """

    dense = True

    def __init__(
        self,
        parameters: Mapping[str, Any],
        *,
        where: str | Callable[[Config], bool] | Sequence[Config] | None = None,
    ) -> None:
        if not isinstance(parameters, Mapping):
            raise SpaceError(f"a space is a dict of parameters, got {parameters!r}")
        if not parameters:
            raise SpaceError("the space is empty; give it at least one parameter")
        columns: list[Column] = []
        self._parameters = copy_tree(parameters)
        self._root = build(self._parameters, columns)
        self._columns = tuple(columns)
        _check_distinct(columns)
        self._snapped = [c for c in columns if c.parameter.grid is not None]
        self._branches = _branch_columns(self._columns)
        self._where: Where | None = None
        self._list: Listed | None = None
        if isinstance(where, Sequence) and not isinstance(where, str):
            self._where = self._list = Listed(where, self)
            self._known = self._list.rows
        elif where is not None:
            self._where = where_of(where, self._columns, self._root)
            self._known = self._find()

    @property
    def constrained(self) -> bool:
        """Whether only some configs are allowed."""
        return self._where is not None

    @cached_property
    def whole(self) -> Space:
        """The space of the same parameters, with nothing left out by `where`."""
        return self if self._where is None else Space(self._parameters)

    @property
    def listed(self) -> Array | None:
        """The only rows (k, d) that are allowed, where `where` is a list; None elsewhere."""
        return None if self._list is None else self._list.rows

    @property
    def columns(self) -> tuple[Column, ...]:
        """The coordinates of the unit cube, a choice before the parameters of its branches."""
        return self._columns

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self._columns)

    @property
    def cardinality(self) -> int | None:
        """Number of distinct configs; None when infinite.

        Where only some are allowed, the number of these if there are at most `LISTED` in all.
        """
        return len(self._known) if self._is_listed else self._root.count

    def encode(self, config: Config) -> Array:
        """Return the row of a config.

        Parameters
        ----------
        config : dict
            A full config: every active parameter and nothing else.

        Returns
        -------
        ndarray, shape (d,)
            In [0, 1]; 1/2 in the inactive columns.

        Raises
        ------
        SpaceError
            With the path of a key that is missing or unknown, or of a value out of range.
        """
        row = np.full(self.dim, 0.5)

        def place(column: Column, value: Any) -> None:
            row[column.index] = column.parameter.encode(value)

        self._root.convert(config, place)
        return row

    def decode(self, u: Any) -> dict[str, Any]:
        """Return the config of a row, shape (d,): python values, defined for every row.

        Entries outside [0, 1] are clipped, NaN reads as 1/2.
        """
        row = np.asarray(u, dtype=np.float64)
        if row.shape != (self.dim,):
            raise SpaceError(f"expected a row of {self.dim} columns, got shape {row.shape}")
        if self._list is not None:
            return self._list.config(self.snap(row[None])[0])
        return self._root.decode([min(max(x, 0.0), 1.0) if x == x else 0.5 for x in row.tolist()])

    def snap(self, U: Array) -> Array:
        """Return rows (n, d) moved to the points they decode to; inactive columns become 1/2."""
        S = self._inside(U)
        for column in self._snapped:
            S[:, column.index] = column.snap(S[:, column.index])
        if self._branches:
            S[~self._active(S)] = 0.5
        return S if self._list is None else self._list.nearest(S)

    def active(self, U: Array) -> Bools:
        """Return which columns matter in which row of U (n, d)."""
        return self._active(self._inside(U))

    def allows(self, config: Config) -> bool:
        """Return whether a config is allowed."""
        return self._where is None or self._where.allows(config)

    def check_allowed(self, config: Config) -> None:
        """Raise SpaceError unless a config is one of the space, and allowed."""
        if self._where is not None and not self.allows(self.from_json(self.to_json(config))):
            raise SpaceError(
                f"the config {config} is not allowed by where ({self._where.shown}); "
                "change it, or the space"
            )

    def allowed(self, U: Array) -> Bools:
        """Return which rows of U (n, d) decode to configs that are allowed."""
        if self._where is None:
            return np.ones(len(U), dtype=np.bool_)
        S = self.snap(U)
        return self._where.allows_rows(S, self._active(S))

    def nearest(self, row: Array) -> Array:
        """Return an allowed row (d,) near a row."""
        if self.allowed(row[None])[0]:
            return row if self._list is None else self.snap(row[None])[0]
        return allowed.nearest(self, row, self._known)

    def sample(self, n: int, rng: Generator) -> Array:
        """Return rows (n, d) drawn uniformly from what is allowed of the cube, snapped."""
        if self._list is not None:  # each once, as far as they go
            k = len(self._known)
            return np.asarray(self._known[rng.permutation(np.arange(max(n, k)) % k)[:n]])
        if self._where is not None:
            return allowed.sample(self, n, rng, self._known)
        return self.snap(rng.random((n, self.dim)))

    def draw(self, rng: Generator) -> dict[str, Any]:
        """Return a random config."""
        return self.decode(rng.random(self.dim) if self._where is None else self.sample(1, rng)[0])

    def points(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over all configs; the first parameter varies fastest."""
        if self._list is not None:
            return self._list.configs()
        if self._root.count is None:
            name = next(c.name for c in self.columns if c.parameter.grid is None)
            raise SpaceError(
                f"{name!r} is continuous: the configs cannot be listed; give it a step"
            )
        points = map(self._root.point, range(self._root.count or 0))
        return points if self._where is None else filter(self._where.allows, points)

    def grid(self, column: int, limit: int = 1000) -> Array | None:
        """Return the positions of a column's values; None if continuous or more than `limit`."""
        grid = self.columns[column].parameter.grid
        return None if grid is None or grid.size > limit else grid.positions()

    def to_json(self, config: Config) -> dict[str, Any]:
        """Return the checked config as JSON; a value JSON cannot hold is {"$index": i}."""
        return self._root.convert(config, _to_json)

    def from_json(self, obj: Any) -> dict[str, Any]:
        """Return the config that `to_json` wrote, checked."""
        return self._root.convert(obj, _from_json)

    def definition(self) -> dict[str, Any]:
        """Return the JSON description that `space_from_definition` and YAML files use."""
        described = describe(self._parameters)
        return described if self._where is None else {**described, "where": self._where.definition}

    def __eq__(self, other: object) -> bool:
        # As text: in JSON, unlike in python, 1, 1.0 and true differ, and so does the order.
        return isinstance(other, Space) and self._text() == other._text()

    def __hash__(self) -> int:
        return hash(self._text())

    def __repr__(self) -> str:
        where = "" if self._where is None else f", where={self._where.shown}"
        return f"Space({self._parameters!r}{where})"

    def _text(self) -> str:
        return json.dumps(self.definition())

    @property
    def _is_listed(self) -> bool:
        if self._list is not None:
            return True
        count = self._root.count
        return self._where is not None and count is not None and count <= LISTED

    def _find(self) -> Array:
        """Allowed rows (k, d): all of them in a small space, else some."""
        if not self._is_listed:
            return allowed.find(self)
        rows = [self.encode(config) for config in self.points()]
        if not rows:
            raise SpaceError(f"0 of the {self._root.count:,} configs are allowed; widen where")
        return np.array(rows)

    def _inside(self, U: Any) -> Array:
        """Rows clipped to the cube, NaN as 1/2."""
        U = np.asarray(U, dtype=np.float64)
        if U.ndim != 2 or U.shape[1] != self.dim:
            raise SpaceError(f"expected rows of {self.dim} columns, got shape {U.shape}")
        inside: Array = np.clip(U, 0.0, 1.0)
        inside[np.isnan(inside)] = 0.5
        return inside

    def _active(self, U: Array) -> Bools:
        active = np.ones(U.shape, dtype=np.bool_)
        for choice, groups in self._branches:
            chosen = choice.indices(U[:, choice.index])
            for branch, inside in groups:
                active[:, inside] = (active[:, choice.index] & (chosen == branch))[:, None]
        return active


def _check_distinct(columns: list[Column]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SpaceError(f"{column.name!r}: two parameters have this path; rename one")
        seen.add(column.name)


def _branch_columns(
    columns: tuple[Column, ...],
) -> list[tuple[Column, list[tuple[int, list[int]]]]]:
    """Each choice, outer ones first, with (branch, columns directly in it)."""
    inside: dict[tuple[int, int], list[int]] = {}
    for column in columns:
        if column.condition:
            inside.setdefault(column.condition[-1], []).append(column.index)
    choices = [column for column in columns if column.kind == "choice"]
    return [
        (choice, [(branch, own) for (c, branch), own in inside.items() if c == choice.index])
        for choice in choices
    ]


def _to_json(column: Column, value: Any) -> Any:
    parameter = column.parameter
    if isinstance(parameter, Categorical) and not is_scalar(value):
        return {"$index": parameter.rank(value)}
    return parameter.plain(value)


def _from_json(column: Column, value: Any) -> Any:
    parameter = column.parameter
    if isinstance(parameter, Categorical) and isinstance(value, Mapping):
        k = value.get("$index")
        if set(value) != {"$index"} or type(k) is not int or not 0 <= k < parameter.cardinality:
            last = parameter.cardinality - 1
            raise SpaceError(f"expected {{'$index': 0..{last}}}, got {value!r}")
        return parameter.value(k)
    return parameter.plain(value)
