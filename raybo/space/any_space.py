"""AnySpace: a Space or a Box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raybo.errors import SpaceError
from raybo.space.box import Box
from raybo.space.space import Space

AnySpace = Space | Box


def as_space(space: Any) -> AnySpace:
    """Return `space` itself, or the Space of a dict of parameters."""
    if isinstance(space, Space | Box):
        return space
    if isinstance(space, Mapping):
        return Space(space)
    hint = "; the objective comes first, then the space" if callable(space) else ""
    raise SpaceError(f"a space is a Space, a Box or a dict of parameters, got {space!r}{hint}")
