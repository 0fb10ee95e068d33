"""Definitions: a space as JSON or YAML; reading and comparing them.

A definition mirrors the space. An entry whose `type` is a string is a parameter, any other
mapping is a group of them; a text named `where` at the top is the condition of the space (see
`raybo.space.expression`), a list the configs that it allows; a box stands alone at the top:

    lr: {type: float, low: 1e-5, high: 0.1, log: true}
    width: {type: int, low: 16, high: 512, log: true, step: 8}
    act: {type: categorical, values: [relu, gelu]}
    compress: {type: choice, branches: {svd: {rank: {type: int, low: 1, high: 9}}, none: {}}}
    optimizer: {momentum: {type: float, low: 0, high: 1, step: 0.1}}
    where: width < 256 or act == "gelu"

    {type: box, dim: 1000000000, low: -1, high: 1}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from raybo.errors import SpaceError
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int, Parameter
from raybo.space.space import Space
from raybo.space.values import listed
from raybo.space.where import FUNCTION

# Type: required keys, optional keys with their defaults.
_FIELDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "float": (("low", "high"), {"log": False, "step": None}),
    "int": (("low", "high"), {"log": False, "step": 1}),
    "categorical": (("values",), {}),
    "choice": (("branches",), {}),
    "box": (("dim",), {"low": -1.0, "high": 1.0}),
}


def space_from_definition(definition: Any, *, to_search: bool = True) -> AnySpace:
    """Return the space that a `definition()`, or the same read from YAML, describes.

    Unless it is to be searched, a `where` is left out: it matters for new configs only.

    Raises
    ------
    SpaceError
        With the path of an entry that is of no known type, lacks a key, has an unknown one or
        makes no sense as a parameter; and when `where` is a function.
    """
    if not isinstance(definition, Mapping):
        raise SpaceError(f"a definition is a mapping of parameters, got {definition!r}")
    if not _is_parameter(definition):
        parameters, where = _split(definition)
        if isinstance(where, Mapping) and to_search:
            raise SpaceError(
                f"its where is the function {where[FUNCTION]}, which cannot be rebuilt from a "
                "definition; pass the space itself, or write where as a text"
            )
        return Space(_read_group(parameters, ()), where=where if to_search else None)
    if definition["type"] != "box":
        raise SpaceError(f"only a box has its type at the top, got {definition!r}; name it")
    return Box(**_fields(definition, ("x",)))


def difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return sentences that say how definition b differs from definition a."""
    (a, old_where), (b, new_where) = _split(a), _split(b)
    old, new = _flat(a), _flat(b)
    changes = [f"{name!r}: only in the old space" for name in old if name not in new]
    changes += [f"{name!r}: only in the new space" for name in new if name not in old]
    for name in old:
        if name in new:
            changes += [f"{name!r}: {change}" for change in _changes(old[name], new[name])]
    if not changes and list(old) != list(new):
        changes = [f"the parameters are in another order: {listed(new)}, were {listed(old)}"]
    if old_where != new_where:
        changes.append(f"where {_shown(old_where)} -> {_shown(new_where)}")
    return changes


def _split(definition: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """The parameters, and `where`: its text or list, its function as {FUNCTION: ...}, or None."""
    where = definition.get("where")
    if not isinstance(where, str | list) and not (
        isinstance(where, Mapping) and FUNCTION in where
    ):
        return definition, None  # none, or a parameter of that name
    return {name: entry for name, entry in definition.items() if name != "where"}, where


def _shown(where: Any) -> str:
    return f"a list of {len(where):,}" if isinstance(where, list) else json.dumps(where)


def _is_parameter(entry: Mapping[str, Any]) -> bool:
    # A group may hold a parameter named "type", but then its value is a mapping.
    return isinstance(entry.get("type"), str)


def _read_group(definition: Any, path: tuple[str, ...]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for name, entry in definition.items():
        where = (*path, str(name))
        if not isinstance(entry, Mapping):
            raise SpaceError(f"{_at(where)}: expected a mapping with a 'type', got {entry!r}")
        group = not _is_parameter(entry) and all(isinstance(v, Mapping) for v in entry.values())
        parameters[name] = (_read_group if group else _read_parameter)(entry, where)
    return parameters


def _read_parameter(entry: Mapping[str, Any], path: tuple[str, ...]) -> Parameter:
    fields = _fields(entry, path)
    match entry["type"]:
        case "float":
            return Float(**fields)
        case "int":
            return Int(**fields)
        case "categorical":
            return Categorical(_rebuilt(fields["values"], path))
        case "choice":
            return Choice(_read_branches(fields["branches"], path))
        case _:
            raise SpaceError(f"{_at(path)}: a box stands alone, as the whole definition")


def _read_branches(branches: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(branches, Mapping):
        return branches
    read_branches: dict[str, Any] = {}
    for name, branch in branches.items():
        # In YAML a branch without parameters may be left empty, which reads as None.
        inside = {} if branch is None else branch
        group = isinstance(inside, Mapping)
        read_branches[name] = _read_group(inside, (*path, str(name))) if group else inside
    return read_branches


def _fields(entry: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return the checked keys of an entry, but not their values."""
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise SpaceError(f"{_at(path)}: type must be one of {listed(_FIELDS)}, got {kind!r}")
    required, optional = _FIELDS[kind]
    for key in entry:
        if key not in ("type", *required, *optional):
            known = listed([*required, *optional])
            raise SpaceError(f"{_at(path)}: unknown key {key!r} for type {kind!r}; known: {known}")
    for key in required:
        if key not in entry:
            raise SpaceError(f"{_at(path)}: type {kind!r} needs the key {key!r}; add it")
    return {key: value for key, value in entry.items() if key != "type"}


def _rebuilt(values: Any, path: tuple[str, ...]) -> Any:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, Mapping) and "$object" in value:
            raise SpaceError(
                f"{_at(path)}: the value {value['$object']} cannot be rebuilt from a definition; "
                "pass the space itself"
            )
    return values


def _flat(definition: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Path to the fields of each parameter; a choice keeps the names of its branches."""
    if not path and _is_parameter(definition):
        return {"x": _with_defaults(definition)}
    flat: dict[str, dict[str, Any]] = {}
    for name, entry in definition.items():
        where = (*path, name)
        if not _is_parameter(entry):
            flat.update(_flat(entry, where))
            continue
        flat["/".join(where)] = fields = _with_defaults(entry)
        if "branches" in fields:
            fields["branches"] = list(entry["branches"])
            for branch, inside in entry["branches"].items():
                flat.update(_flat(inside, (*where, branch)))
    return flat


def _with_defaults(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, **_FIELDS[entry["type"]][1], **entry}


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    if old["type"] != new["type"]:
        return [f"type {old['type']} -> {new['type']}"]
    # As text: in JSON, unlike in python, 1, 1.0 and true differ.
    texts = [(key, json.dumps(old[key]), json.dumps(new[key])) for key in old]
    return [f"{key} {before} -> {after}" for key, before, after in texts if before != after]


def _at(path: tuple[str, ...]) -> str:
    return repr("/".join(path))
