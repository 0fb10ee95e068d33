"""Spaces in YAML files; the format is that of `raybo.space.definition`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.errors import SpaceError
from raybo.space.any_space import AnySpace
from raybo.space.definition import space_from_definition


def space_from_yaml(source: str | Path) -> AnySpace:
    """Space of a YAML text or file.

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
    # Imported here: most users define spaces in python.
    import yaml  # noqa: PLC0415

    text = _text(source)
    try:
        _check_keys(yaml.compose(text, yaml.SafeLoader), ())
        definition = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpaceError(f"not YAML: {error}") from None
    return space_from_definition(definition)


def _text(source: str | Path) -> str:
    if isinstance(source, str) and ("\n" in source or not source.endswith((".yaml", ".yml"))):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise SpaceError(f"{source}: cannot be read ({error.strerror})") from None


def _check_keys(node: Any, path: tuple[str, ...]) -> None:
    """Refuse a key that is given twice: a loader would silently keep the last."""
    if getattr(node, "id", "") != "mapping":
        return
    seen: set[str] = set()
    for key, value in node.value:
        where = (*path, str(key.value))
        if where[-1] in seen:
            raise SpaceError(f"{'/'.join(where)!r}: given twice; rename or drop one")
        seen.add(where[-1])
        _check_keys(value, where)
