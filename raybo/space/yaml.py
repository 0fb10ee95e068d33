"""Read YAML, and spaces from YAML files; their format is that of `raybo.space.definition`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from raybo.errors import MALFORMED, SpaceError
from raybo.space.any_space import AnySpace
from raybo.space.definition import space_from_definition

MAX_REPEATED = 100_000  # entries that aliases repeat: a few lines of them could stand for 10**9
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def space_from_yaml(source: str | Path) -> AnySpace:
    """Return the space that a YAML text or file defines.

    Parameters
    ----------
    source : str or Path
        The text itself, or the path of a file; a one-line string that ends in .yaml or .yml is
        a path.

    Raises
    ------
    SpaceError
        If there is no such file, it is not YAML, a key is given twice, or the space it defines
        makes no sense.
    """
    return space_from_definition(read_yaml(_text(source)))


def read_yaml(text: str) -> Any:
    """Return the value of a YAML document; 1e-5 is a number, as in YAML 1.2.

    Raises
    ------
    SpaceError
        If it is not YAML, a key is given twice, or it is too large.
    """
    import yaml  # noqa: PLC0415  (most users define spaces in python)

    # libyaml parses several times as fast.
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        return _Document(yaml.parse(text, loader)).read()
    except SpaceError:
        raise
    except RecursionError:
        raise SpaceError("not YAML that raybo reads: it is nested too deeply") from None
    except (yaml.YAMLError, *MALFORMED) as error:
        raise SpaceError(f"not YAML: {error}") from None


class _Document:
    """Builds a value from the events of a parser.

    PyYAML would make a node of every entry first, which takes five times as long, overflows the
    stack of the process where libyaml does it, and keeps the last of two equal keys.
    """

    def __init__(self, events: Iterator[Any]) -> None:
        self._events, self._scalar = events, _scalar_reader()
        self._path: list[str] = []
        # Values by anchor with the number of their entries; None while one is read.
        self._anchored: dict[str, tuple[Any, int] | None] = {}
        self._entries = self._repeated = 0

    def read(self) -> Any:
        """Return the value of the only document."""
        value = None
        for event in self._events:
            if event.__class__.__name__ == "DocumentStartEvent":
                if self._entries:
                    raise SpaceError("not YAML that raybo reads: more than one document")
                value = self._value(next(self._events))
        return value

    def _value(self, event: Any) -> Any:
        """Value of the entry that begins with `event`."""
        kind, before = event.__class__.__name__, self._entries
        if kind == "AliasEvent":
            return self._repeat(event.anchor)
        self._entries += 1
        if event.anchor:
            self._anchored[event.anchor] = None
        if kind == "ScalarEvent":
            value = self._scalar(event)
        elif event.tag not in (None, "!", *_COLLECTIONS):
            raise SpaceError(f"not YAML that raybo reads: {self._place}: has the tag {event.tag}")
        else:
            value = self._mapping() if kind == "MappingStartEvent" else self._sequence()
        if event.anchor:
            self._anchored[event.anchor] = value, self._entries - before
        return value

    def _mapping(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        merged: list[Any] = []
        seen: set[str] = set()
        while (event := next(self._events)).__class__.__name__ != "MappingEndEvent":
            if event.__class__.__name__ != "ScalarEvent":
                raise SpaceError(f"{self._place}: its keys must be texts")
            self._path.append(event.value)
            if event.value in seen:
                raise SpaceError(f"{self._place}: given twice; rename or drop one")
            seen.add(event.value)
            if event.value == "<<":
                value = self._value(next(self._events))
                merged += value if isinstance(value, list) else [value]
                if not all(isinstance(other, dict) for other in merged):
                    raise SpaceError(f"{self._place}: merges a mapping or a list of them")
            else:
                found[self._scalar(event)] = self._value(next(self._events))
            self._path.pop()
        for other in merged:
            found = {**other, **found}
        return found

    def _sequence(self) -> list[Any]:
        found = []
        while (event := next(self._events)).__class__.__name__ != "SequenceEndEvent":
            found.append(self._value(event))
        return found

    def _repeat(self, anchor: str) -> Any:
        """Value of an alias."""
        if anchor not in self._anchored:
            raise SpaceError(f"{self._place}: there is no anchor &{anchor} before it")
        known = self._anchored[anchor]
        if known is None:
            raise SpaceError(f"{self._place}: holds itself; write it without the alias")
        value, size = known
        self._entries += size
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            raise SpaceError(f"aliases repeat more than {MAX_REPEATED:,} entries; write fewer")
        return value

    @property
    def _place(self) -> str:
        return repr("/".join(self._path))


def _scalar_reader() -> Callable[[Any], Any]:
    """Function from events to numbers, texts and so on; each text is interpreted once."""
    import yaml  # noqa: PLC0415

    reader, known = _scalars_class()(), dict[Any, Any]()

    def read(event: Any) -> Any:
        key = event.tag, event.implicit, event.value
        if key not in known:
            tag = event.tag
            if tag in (None, "!"):
                tag = reader.resolve(yaml.ScalarNode, event.value, event.implicit)
            known[key] = reader.construct_document(
                yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
            )
        return known[key]

    return read


@cache
def _scalars_class() -> Any:
    import yaml  # noqa: PLC0415

    class Scalars(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
        """Reads numbers as YAML 1.2 does; YAML 1.1 wants a dot and a sign: 1.0e-5, 1.0e+5."""

        def __init__(self) -> None:
            yaml.constructor.SafeConstructor.__init__(self)
            yaml.resolver.Resolver.__init__(self)

    number = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
    Scalars.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    return Scalars


def _text(source: str | Path) -> str:
    if isinstance(source, str) and ("\n" in source or not source.endswith((".yaml", ".yml"))):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise SpaceError(f"{source}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SpaceError(f"{source}: not a text in UTF-8") from None
