"""The condition that the configs of a space meet: a text, or a function of the config."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from raybo.arrays import Array, Bools
from raybo.bytecode import code_text
from raybo.errors import SpaceError
from raybo.space.columns import Column, Config, Group
from raybo.space.expression import Expression
from raybo.space.parameters import Choice, Float

FUNCTION = "$function"  # key of the definition of a function, which JSON cannot hold


class Where(Protocol):
    """Tells which configs are allowed."""

    @property
    def definition(self) -> Any:
        """JSON: the text, or what tells a function from another one."""

    @property
    def shown(self) -> str:
        """For messages."""

    def allows_rows(self, U: Array, active: Bools) -> Bools:
        """Return which snapped rows of U (n, d) are allowed, given which columns are active."""

    def allows(self, config: Config) -> bool:
        """Return whether a config of the space is allowed."""


def where_of(given: Any, columns: Sequence[Column], root: Group) -> Where:
    """Return the condition that a user gave for the space of `root`."""
    if isinstance(given, str):
        return TextWhere(given, columns, root)
    if callable(given):
        return FunctionWhere(given, columns, root)
    raise SpaceError(
        "where must be a text such as 'a <= b', a function of the config or a list of configs, "
        f"got {given!r}"
    )


class TextWhere:
    """A condition in the language of `raybo.space.expression`."""

    def __init__(self, text: str, columns: Sequence[Column], root: Group) -> None:
        self._expression = Expression(text, columns)
        self._root = root

    @property
    def definition(self) -> str:
        """The text."""
        return self._expression.text

    @property
    def shown(self) -> str:
        """The text, in quotes."""
        return repr(self._expression.text)

    def allows_rows(self, U: Array, active: Bools) -> Bools:
        """Return which snapped rows of U (n, d) are allowed, given which columns are active."""
        if not len(U):
            return np.ones(0, dtype=np.bool_)
        columns = self._expression.columns
        values = {c.name: _decoded(c, U[:, c.index]) for c in columns}
        return self._expression.allows(values, {c.name: active[:, c.index] for c in columns})

    def allows(self, config: Config) -> bool:
        """Return whether a config of the space is allowed."""
        found: dict[str, Any] = {}

        def note(column: Column, value: Any) -> None:
            found[column.name] = value

        self._root.convert(config, note)
        names = [column.name for column in self._expression.columns]
        values = {name: [found.get(name, 0)] for name in names}
        actives = {name: np.array([name in found]) for name in names}
        return bool(self._expression.allows(values, actives)[0])


class FunctionWhere:
    """A function of the config that returns True or False.

    Where it reads a branch that is not chosen (a KeyError of the name of a branch) it constrains
    nothing, as a text does.
    """

    def __init__(
        self, function: Callable[[Config], Any], columns: Sequence[Column], root: Group
    ) -> None:
        self._function = function
        self._root = root
        choices = [c.parameter for c in columns if isinstance(c.parameter, Choice)]
        self._branches = {name for choice in choices for name in choice.branches}

    @property
    def definition(self) -> dict[str, str]:
        """A name of the function and a hash of what it does, as far as it can be told."""
        return {FUNCTION: _description(self._function)}

    @property
    def shown(self) -> str:
        """Name of the function."""
        return f"the function {_name(self._function)}"

    def allows_rows(self, U: Array, active: Bools) -> Bools:  # noqa: ARG002  (as in TextWhere)
        """Return which snapped rows of U (n, d) are allowed."""
        configs = map(self._root.decode, U.tolist())
        return np.fromiter(map(self.allows, configs), dtype=np.bool_, count=len(U))

    def allows(self, config: Config) -> bool:
        """Return whether a config of the space is allowed."""
        try:
            answer = self._function(config)
        except Exception as error:
            if isinstance(error, KeyError) and error.args and error.args[0] in self._branches:
                return True
            raise SpaceError(
                f"where raised {type(error).__name__}: {error} for the config {config}"
            ) from error
        if isinstance(answer, bool | np.bool_):
            return bool(answer)
        raise SpaceError(
            f"where must return True or False, got {str(answer)[:100]!r} "
            f"({type(answer).__name__}) for the config {config}"
        )


def _decoded(column: Column, u: Array) -> Sequence[Any] | Array:
    parameter = column.parameter
    if isinstance(parameter, Float) and parameter.grid is None:
        return parameter.decode_all(u)
    positions, which = np.unique(u, return_inverse=True)
    values = [parameter.decode(x) for x in positions.tolist()]
    return [values[k] for k in which.tolist()]


def _description(function: Any) -> str:
    code = getattr(function, "__code__", None)
    name = _name(function)
    if code is None:
        return _without_addresses(f"{name} {function!r}")
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    values = (function.__defaults__, function.__kwdefaults__, closed)
    text = f"{code_text(code)} {_without_addresses(repr(values))}"
    return f"{name} {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
