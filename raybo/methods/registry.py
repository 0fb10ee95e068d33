"""Names of the methods, and what builds them; each is imported on first use."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from raybo.errors import MethodError
from raybo.methods.base import Method
from raybo.space.any_space import AnySpace

# By preset: "default" is what raybo does, "paper" the published algorithm.
METHODS: dict[str, dict[str, str]] = {
    "auto": {"default": "raybo.methods.auto.default:Auto"},
    "random": {"default": "raybo.methods.random_search:RandomSearch"},
    "sobol": {"default": "raybo.methods.random_search:Sobol"},
    "bo": {
        "default": "raybo.methods.bo.default:Bo",
        "paper": "raybo.methods.bo.published:PublishedBo",
    },
    "rembo": {
        "default": "raybo.methods.rembo.default:Rembo",
        "paper": "raybo.methods.rembo.published:PublishedRembo",
    },
    "addtree": {
        "default": "raybo.methods.addtree.default:AddTree",
        "paper": "raybo.methods.addtree.published:PublishedAddTree",
    },
    "addgp": {
        "default": "raybo.methods.addgp.default:AddGp",
        "paper": "raybo.methods.addgp.published:PublishedAddGp",
    },
    "rpp": {
        "default": "raybo.methods.rpp.default:Rpp",
        "paper": "raybo.methods.rpp.published:PublishedRpp",
    },
    "egp": {
        "default": "raybo.methods.egp.default:Egp",
        "paper": "raybo.methods.egp.published:PublishedEgp",
    },
    "bock": {
        "default": "raybo.methods.bock.default:Bock",
        "paper": "raybo.methods.bock.published:PublishedBock",
    },
    "linear": {"default": "raybo.methods.linear.default:Linear"},
    "ridge": {"default": "raybo.methods.ridge.default:Ridge"},
    "bins": {"default": "raybo.methods.bins.default:Bins"},
    "local": {"default": "raybo.methods.local.default:Local"},
}


# Options of version 0.1 that are gone, at the values that changed nothing: its journals and states
# hold them.
_RETIRED = {"device": "cpu", "maximizer": "elastic"}


_NESTED = ": give them as keywords, Optimizer(space, 'rembo', d=2)"


def check_method(name: str) -> None:
    """Raise MethodError unless there is a method called `name`."""
    if name not in METHODS:
        near = difflib.get_close_matches(name.lower(), METHODS, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise MethodError(
            f"method {name!r} is not known{hint}; choose one of {', '.join(METHODS)}"
        )


def method_class(name: str, preset: str = "default") -> type[Any]:
    """Class of the method called `name`, under a preset."""
    check_method(name)
    presets = METHODS[name]
    if preset not in presets:
        allowed = ", ".join(repr(p) for p in presets)
        raise MethodError(f"preset of method {name!r} must be one of {allowed}, got {preset!r}")
    module, _, cls = presets[preset].partition(":")
    return getattr(importlib.import_module(module), cls)  # type: ignore[no-any-return]


def option_names(cls: type[Any]) -> list[str]:
    """Names of the options that `cls` takes beside the space."""
    return [f.name for f in dataclasses.fields(cls) if f.init and f.name != "space"]


def method_options(name: str, preset: str = "default") -> dict[str, Any]:
    """Return the options of a method and their defaults; None where the method decides."""
    fields = {f.name: f.default for f in dataclasses.fields(method_class(name, preset))}
    return {option: fields[option] for option in option_names(method_class(name, preset))}


def build_method(
    method: str | Method, space: AnySpace, options: Mapping[str, Any] | None = None
) -> Method:
    """Build the method `method`, a name with options or a method object already built.

    An option that is None counts as not given.
    """
    if options is not None and not isinstance(options, Mapping):
        raise MethodError(
            f"method_options must be a dict such as {{'n_init': 10}}, got {options!r}"
        )
    given = {name: value for name, value in dict(options or {}).items() if value is not None}
    if not isinstance(method, str):
        if isinstance(method, type) or not callable(getattr(method, "propose", None)):
            raise MethodError(
                f"method must be a name ({', '.join(METHODS)}) or an object with lanes and "
                f"propose(data, rng), got {method!r}"
            )
        if given:
            raise MethodError(
                f"method options {sorted(given)} were given with a method object; "
                "pass them to the object, or name the method by a string"
            )
        return method
    preset = given.pop("preset", "default")
    cls = method_class(method, preset)
    allowed = option_names(cls)
    given = {k: v for k, v in given.items() if k in allowed or v != _RETIRED.get(k)}
    unknown = next((name for name in given if name not in allowed), None)
    if unknown is not None:
        of_preset = "" if preset == "default" else f" with preset {preset!r}"
        raise MethodError(
            f"method {method!r}{of_preset} has no option {unknown!r}; "
            f"it takes {', '.join(['preset', *allowed])}"
            f"{_NESTED if unknown == 'method_options' else ''}"
        )
    return cls(space, **given)  # type: ignore[no-any-return]


def describe_method(method: Method) -> dict[str, Any]:
    """Name and options of `method`, as JSON: what a journal records and compares."""
    cls = type(method)
    path = f"{cls.__module__}:{cls.__qualname__}"
    names: list[str] = option_names(cls) if dataclasses.is_dataclass(cls) else []
    options = {n: getattr(method, n) for n in names if _is_json(getattr(method, n))}
    for name, presets in METHODS.items():
        for preset, known in presets.items():
            if known == path:
                return {"name": name, "options": {"preset": preset, **options}}
    return {"name": path, "options": options}


def is_same_method(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two descriptions are of one method, an option at its default not counted."""

    def given(description: Mapping[str, Any]) -> dict[str, Any]:
        name, options = description["name"], dict(description["options"])
        preset = options.get("preset") or "default"
        defaults: dict[str, Any] = {**_RETIRED, "preset": "default"}
        if preset in METHODS.get(name, {}):
            fields = dataclasses.fields(method_class(name, preset))
            defaults |= {f.name: f.default for f in fields}
        return {k: v for k, v in options.items() if v is not None and v != defaults.get(k)}

    return bool(one["name"] == other["name"] and given(one) == given(other))


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_json(v) for v in value)
    return value is None or isinstance(value, str | int | float)
