"""Search spaces as users of Tune give them, and the conversion of their configs to raybo's.

`ParamSpace` is a param_space with Tune's domains. Its constants are left out of the Space; a
tune.choice with domains inside one of its values becomes a conditional Choice with the branches
"0", "1", ...; lists and tuples become groups of "0", "1", ...

`OwnSpace` is a space of raybo, whose configs the trainable gets as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from ray.tune.search.sample import Domain

from raybo.errors import SpaceError
from raybo.space.any_space import AnySpace, as_space
from raybo.space.box import Box
from raybo.space.definition import space_from_definition
from raybo.space.space import Space
from raybo.tune.space.domains import (
    Normal,
    Pick,
    holds,
    is_open,
    is_tune,
    refusal,
    scalar,
    signature,
)
from raybo.tune.space.json import describe, is_lost, rebuild
from raybo.tune.space.points import nested
from raybo.tune.space.tree import Branches, Constant, Group, Leaf, Node, Pair, Reading, walk


class ParamSpace:
    """A param_space of Tune; `space` is its counterpart of raybo.

    Raises
    ------
    SpaceError
        With the path of what cannot be searched: grid_search, sample_from, parameters of raybo,
        domains without values.
    """

    def __init__(self, param_space: Mapping[str, Any]) -> None:
        root = _node(dict(param_space), ())
        if not isinstance(root, Group):
            raise SpaceError("the param_space holds only constants; give it a domain to search")
        self._root = root
        self.space: AnySpace = Space(root.parameters)
        self.description = {"param_space": describe(dict(param_space))}

    @cached_property
    def lost(self) -> list[str]:
        """Paths of objects that suggestions need and that a saved state could not hold."""
        return [node.path for node, needed in walk(self._root) if _is_lost(node, needed)]

    @cached_property
    def rounds(self) -> bool:
        """Whether `snapped` can change a config: qrandn is continuous for raybo."""
        leaves = [node.scalar for node, _ in walk(self._root) if isinstance(node, Leaf)]
        return any(isinstance(s, Normal) and s.q is not None for s in leaves)

    def show(self, inner: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config for the trainable."""
        shown: dict[str, Any] = self._root.show(inner)
        return shown

    def read(
        self,
        config: Mapping[str, Any],
        fill: np.random.Generator | None = None,
        strict: bool = True,
    ) -> Pair:
        """Return raybo's config for one of Tune, and the latter with nothing left open.

        Parameters
        ----------
        config : dict
            Nested, or with keys joined by slashes ("net/lr", "layers/0").
        fill : Generator, optional
            Draws what the config leaves open; without it that is an error.
        strict : bool
            Whether an unknown key is an error; else it is ignored.

        Raises
        ------
        SpaceError
            With the path of a value outside its domain, or of a key missing or unknown.
        """
        return self._root.read(config, Reading(fill, strict))

    def snapped(self, inner: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return raybo's config for the values that the trainable really gets."""
        return self.read(self.show(inner))[0] if self.rounds else inner


class OwnSpace:
    """A Space or Box of raybo: suggestions are its own configs."""

    lost: tuple[str, ...] = ()
    rounds = False

    def __init__(self, space: AnySpace | Mapping[str, Any]) -> None:
        self.space = as_space(space)
        self.description = {"space": self.space.definition()}

    def show(self, inner: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config itself."""
        return dict(inner)

    def read(
        self,
        config: Mapping[str, Any],
        fill: np.random.Generator | None = None,  # noqa: ARG002  (as in ParamSpace)
        strict: bool = True,
    ) -> Pair:
        """Return the checked config, twice; it must be complete. See ParamSpace.read."""
        names = (
            ["x"]
            if isinstance(self.space, Box)
            else list(dict.fromkeys(c.path[0] for c in self.space.columns))
        )
        given = _nested_all(config, names)
        if not strict:
            given = {name: given[name] for name in names if name in given}
        inner = self.space.from_json(self.space.to_json(given))
        self.space.check_allowed(inner)
        return inner, inner

    def snapped(self, inner: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the config itself."""
        return inner


SearchSpace = ParamSpace | OwnSpace


def search_space(space: Any) -> SearchSpace:
    """Return the search space of a Space of raybo, or of a dict with Tune's domains."""
    if callable(space):
        raise SpaceError(
            "space is a function; RayBOSearch takes a dict of ray.tune's domains, or a Space of "
            "raybo; conditional parameters are a tune.choice over dicts"
        )
    if isinstance(space, Mapping) and holds(space, is_tune):
        return ParamSpace(space)
    return OwnSpace(space)


def saved_search_space(description: Mapping[str, Any]) -> SearchSpace:
    """Return the search space with this `description`."""
    if "param_space" in description:
        return ParamSpace(rebuild(description["param_space"]))
    return OwnSpace(space_from_definition(description["space"]))


def _node(entry: Any, path: tuple[str, ...]) -> Node:
    where = "/".join(path)
    if isinstance(entry, Domain):
        return _domain_node(entry, path)
    problem = refusal(entry)
    if problem:
        raise SpaceError(f"{where!r}: {problem}")
    if not holds(entry, is_open):
        return Constant(where, entry)
    kind = next(k for k in (dict, list, tuple) if isinstance(entry, k))
    items = entry.items() if kind is dict else enumerate(entry)
    nodes = {key: _node(value, (*path, str(key))) for key, value in items}
    if len({str(key) for key in nodes}) < len(nodes):
        raise SpaceError(f"{where!r}: two keys are the same as text; rename one")
    return Group(where, kind, nodes)


def _domain_node(domain: Domain, path: tuple[str, ...]) -> Node:
    where = "/".join(path)
    try:
        name, arguments = signature(domain)
        if name != "choice" or not holds(arguments[0], is_open):
            leaf = Leaf(where, scalar(name, arguments))
            leaf.parameters.check()
            return leaf
    except SpaceError as error:
        raise SpaceError(f"{where!r}: {error}") from None
    branches = enumerate(arguments[0])
    return Branches(where, tuple(_node(value, (*path, str(k))) for k, value in branches))


def _is_lost(node: Node, needed: bool) -> bool:
    if isinstance(node, Constant):
        return needed and holds(node.value, is_lost)
    values = node.scalar if isinstance(node, Leaf) else None
    return isinstance(values, Pick) and holds(values.values, is_lost)


def _nested_all(config: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return a config with all its flat entries nested: raybo's names rarely hold a slash."""
    level = nested(config, names)
    for name, value in level.items():
        if isinstance(value, Mapping) and any("/" in str(key) for key in value):
            level[name] = _nested_all(
                value, list(dict.fromkeys(str(k).split("/")[0] for k in value))
            )
    return level
