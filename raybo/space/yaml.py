"""Read YAML, and spaces from YAML files; their format is that of `raybo.space.definition`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from raybo.errors import MALFORMED, SpaceError
from raybo.space.any_space import AnySpace
from raybo.space.definition import space_from_definition

MAX_REPEATED = 100_000  # entries that aliases repeat: a few lines of them could stand for 10**9


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

    try:
        loader = _loader_class()(text)
        node = loader.get_single_node()
        if node is None:
            return None
        sizes: dict[int, int] = {}
        if _check_node(node, (), sizes) > len(sizes) + MAX_REPEATED:
            raise SpaceError(f"aliases repeat more than {MAX_REPEATED:,} entries; write fewer")
        return loader.construct_document(node)
    except SpaceError:
        raise
    except RecursionError:
        raise SpaceError("not YAML that raybo reads: it is nested too deeply") from None
    except (yaml.YAMLError, *MALFORMED) as error:
        raise SpaceError(f"not YAML: {error}") from None


@cache
def _loader_class() -> Any:
    import yaml  # noqa: PLC0415

    bases: tuple[Any, ...] = (yaml.SafeLoader,)
    if yaml.__with_libyaml__:
        # libyaml reads several times as fast. What it reads is composed in Python: the composer of
        # yaml.CSafeLoader overflows the stack of the process where a file is nested deeply.
        composer, constructor = yaml.composer.Composer, yaml.constructor.SafeConstructor
        parser = yaml.cyaml.CParser  # type: ignore[attr-defined]
        bases = (composer, parser, constructor, yaml.resolver.Resolver)

    class Loader(*bases):  # type: ignore[misc]
        """Reads numbers as YAML 1.2 does; YAML 1.1 wants a dot and a sign: 1.0e-5, 1.0e+5."""

        def __init__(self, text: str) -> None:
            for base in bases:
                base.__init__(self, *([text] if hasattr(base, "get_event") else []))

    number = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    return Loader


def _text(source: str | Path) -> str:
    if isinstance(source, str) and ("\n" in source or not source.endswith((".yaml", ".yml"))):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise SpaceError(f"{source}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SpaceError(f"{source}: not a text in UTF-8") from None


def _check_node(node: Any, path: tuple[str, ...], sizes: dict[int, int]) -> int:
    """Number of nodes from `node` on, aliases expanded; refuses a key that is given twice."""
    known = sizes.get(id(node))
    if known is not None:  # an alias: each node is visited once
        if known < 0:
            raise SpaceError(f"{'/'.join(path)!r}: holds itself; write it without the alias")
        return known
    sizes[id(node)] = -1
    children = []
    if node.id == "mapping":
        seen: set[str] = set()
        for key, value in node.value:
            where = (*path, str(key.value))
            if where[-1] in seen:  # a loader would silently keep the last
                raise SpaceError(f"{'/'.join(where)!r}: given twice; rename or drop one")
            seen.add(where[-1])
            children.append((value, where))
    elif node.id == "sequence":
        children = [(value, path) for value in node.value]
    size = 1 + sum(_check_node(child, where, sizes) for child, where in children)
    sizes[id(node)] = size
    return size
