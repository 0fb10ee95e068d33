"""Names of the methods, each imported on first use."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from raybo.errors import MethodError
from raybo.methods.base import Method
from raybo.space.any_space import AnySpace

METHODS = {
    "random": "raybo.methods.random_search:RandomSearch",
    "sobol": "raybo.methods.random_search:Sobol",
    "bo": "raybo.methods.bo.default:Bo",
    "rembo": "raybo.methods.rembo.default:Rembo",
    "addtree": "raybo.methods.addtree.default:AddTree",
    "addgp": "raybo.methods.addgp.default:AddGp",
    "rpp": "raybo.methods.rpp.default:Rpp",
    "egp": "raybo.methods.egp.default:Egp",
    "bock": "raybo.methods.bock.default:Bock",
}


def method_class(name: str) -> type[Any]:
    """Class of the method called `name`."""
    if name not in METHODS:
        raise MethodError(f"method {name!r} is not known; choose one of {', '.join(METHODS)}")
    module, _, cls = METHODS[name].partition(":")
    return getattr(importlib.import_module(module), cls)  # type: ignore[no-any-return]


def option_names(cls: type[Any]) -> list[str]:
    """Names of the options that `cls` takes beside the space."""
    return [f.name for f in dataclasses.fields(cls) if f.init and f.name != "space"]


def build_method(
    method: str | Method, space: AnySpace, options: Mapping[str, Any] | None = None
) -> Method:
    """Build the method `method`, a name with options or a method object already built."""
    options = dict(options or {})
    if not isinstance(method, str):
        if options:
            raise MethodError(
                f"method options {sorted(options)} were given with a method object; "
                "pass them to the object, or name the method by a string"
            )
        return method
    cls = method_class(method)
    allowed = option_names(cls)
    unknown = [name for name in options if name not in allowed]
    if unknown:
        raise MethodError(
            f"method {method!r} has no option {unknown[0]!r}; it takes {', '.join(allowed)}"
        )
    return cls(space, **options)  # type: ignore[no-any-return]


def describe_method(method: Method) -> dict[str, Any]:
    """Name and options of `method`, as JSON: what a journal records and compares."""
    cls = type(method)
    path = f"{cls.__module__}:{cls.__qualname__}"
    name = next((n for n, p in METHODS.items() if p == path), path)
    names: list[str] = option_names(cls) if dataclasses.is_dataclass(cls) else []
    options = {n: getattr(method, n) for n in names if _is_json(getattr(method, n))}
    return {"name": name, "options": options}


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_json(v) for v in value)
    return value is None or isinstance(value, str | int | float)
