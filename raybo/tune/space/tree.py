"""Nodes of the tree that mirrors a param_space: constants, domains, and what contains them.

In every node

    inner   is what raybo sees: the value of a parameter, or a dict of them
    shown   is what the trainable sees
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from raybo.errors import SpaceError
from raybo.space.parameters import Choice, Parameter
from raybo.space.values import listed, same
from raybo.tune.space.domains import Scalar, holds
from raybo.tune.space.json import is_lost
from raybo.tune.space.points import MISSING, index_keys, nested

Pair = tuple[Any, Any]  # inner, shown


@dataclass(frozen=True)
class Reading:
    """How strictly configs are read."""

    fill: np.random.Generator | None = None  # completes what is missing; None: an error
    strict: bool = True  # unknown keys are an error; else they are ignored
    chosen: bool = False  # inside a branch: constants tell branches apart

    def draw(self, path: str) -> float:
        """Return a random position in [0, 1) for what is missing at `path`."""
        if self.fill is None:
            raise SpaceError(f"{path!r}: missing from the config; add it")
        return float(self.fill.random())


@dataclass(frozen=True)
class Constant:
    """A value without domains in it."""

    path: str
    value: Any
    parameters = None

    def show(self, inner: Any) -> Any:  # noqa: ARG002  (as in the other nodes)
        """Return the value itself."""
        return self.value

    def read(self, value: Any, how: Reading) -> Pair:
        """Return what is given in its place; in a branch that must be the constant itself."""
        if value is MISSING:
            return None, self.value
        if how.chosen and not same(value, self.value):
            raise SpaceError(f"{self.path!r}: {value!r} is not {self.value!r}")
        return None, value


@dataclass(frozen=True)
class Leaf:
    """A domain with one parameter."""

    path: str
    scalar: Scalar

    @property
    def parameters(self) -> Parameter:
        """The parameter."""
        return self.scalar.parameter

    def show(self, inner: Any) -> Any:
        """Return the value that the trainable gets."""
        return self.scalar.show(inner)

    def read(self, value: Any, how: Reading) -> Pair:
        """Return the value of the parameter for `value`; a random one if it is missing."""
        if value is MISSING:
            inner = self.parameters.decode(how.draw(self.path))
            return inner, self.show(inner)
        try:
            return self.scalar.read(value), value
        except SpaceError as error:
            raise SpaceError(f"{self.path!r}: {error}") from None


@dataclass(frozen=True)
class Group:
    """A dict, list or tuple with domains somewhere inside."""

    path: str
    kind: type[Any]
    nodes: Mapping[Any, Node]

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Parameters by key as text."""
        inside = {str(key): node.parameters for key, node in self.nodes.items()}
        return {key: value for key, value in inside.items() if value is not None}

    def show(self, inner: Any) -> Any:
        """Return the container with its values."""
        return self._filled({k: node.show(inner.get(str(k))) for k, node in self.nodes.items()})

    def read(self, value: Any, how: Reading) -> Pair:
        """Read entry by entry; keys may be joined by slashes."""
        given = self._given(value, how)
        pairs = {k: node.read(given.get(k, MISSING), how) for k, node in self.nodes.items()}
        inner = {str(k): pairs[k][0] for k in pairs if str(k) in self.parameters}
        return inner, self._filled({k: shown for k, (_, shown) in pairs.items()})

    def _given(self, value: Any, how: Reading) -> Mapping[Any, Any]:
        if value is MISSING:
            return {}
        if self.kind is not dict:
            value = index_keys(value, len(self.nodes))
        if not isinstance(value, Mapping):
            length = "" if self.kind is dict else f" of {len(self.nodes)}"
            raise SpaceError(
                f"{self.path!r}: expected a {self.kind.__name__}{length}, got {value!r}"
            )
        given = nested(value, self.nodes)
        unknown = [key for key in given if key not in self.nodes]
        if unknown and (how.strict or how.chosen):
            where = "/".join(filter(None, (self.path, str(unknown[0]))))
            raise SpaceError(f"{where!r}: no such key; known here: {listed(self.nodes)}")
        return given

    def _filled(self, values: dict[Any, Any]) -> Any:
        if self.kind is dict:
            return {key: value for key, value in values.items() if key not in self._lost}
        return self.kind(values.values())

    @cached_property
    def _lost(self) -> set[Any]:
        """Keys to leave out: Tune lays a suggestion over its own copy of the constants."""
        constants = {k: n.value for k, n in self.nodes.items() if isinstance(n, Constant)}
        return {key for key, value in constants.items() if holds(value, is_lost)}


@dataclass(frozen=True)
class Branches:
    """A tune.choice with domains in at least one of its values."""

    path: str
    nodes: tuple[Node, ...]

    @cached_property
    def parameters(self) -> Parameter:
        """The conditional choice, its branches named by their index."""
        nodes = enumerate(self.nodes)
        return Choice({str(k): _branch(node, node.parameters) for k, node in nodes})

    def show(self, inner: Any) -> Any:
        """Return the chosen value, its domains resolved."""
        [(name, inside)] = inner.items()
        node = self.nodes[int(name)]
        return node.show(inside if isinstance(node, Group) else inside.get("value"))

    def read(self, value: Any, how: Reading) -> Pair:
        """Return the first branch that the value fits, if need be after completing it."""
        if value is MISSING:
            return self._pair(int(how.draw(self.path) * len(self.nodes)), value, how)
        problems: list[str] = []
        for fill in (None,) if how.fill is None else (None, how.fill):
            problems = []
            for k in range(len(self.nodes)):
                try:
                    return self._pair(k, value, replace(how, fill=fill, chosen=True))
                except SpaceError as error:
                    problems.append(str(error))
        raise SpaceError(f"{self.path!r}: {value!r} fits no branch ({'; '.join(problems)})")

    def _pair(self, k: int, value: Any, how: Reading) -> Pair:
        inner, shown = self.nodes[k].read(value, how)
        return {str(k): _branch(self.nodes[k], inner)}, shown


Node = Constant | Leaf | Group | Branches


def _branch(node: Node, inside: Any) -> dict[str, Any]:
    """Return the content of a branch: a group's entries, nothing, or a single "value"."""
    if isinstance(node, Group):
        return dict(inside)
    return {} if isinstance(node, Constant) else {"value": inside}


def walk(node: Node, needed: bool = False) -> Iterator[tuple[Node, bool]]:
    """Yield `node` and all nodes below it, and whether a suggestion must hold their constants.

    Tune keeps the constants of a dict itself, but not those of lists, tuples and branches.
    """
    yield node, needed
    if isinstance(node, Group):
        for child in node.nodes.values():
            yield from walk(child, needed or node.kind is not dict)
    if isinstance(node, Branches):
        for child in node.nodes:
            yield from walk(child, True)
