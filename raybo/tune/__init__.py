"""Ray Tune: RayBOSearch, a searcher with any of raybo's methods.

The name is loaded on first use, as those of raybo are: importing ray.tune takes seconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raybo.tune.searcher import RayBOSearch as RayBOSearch

__all__ = ["RayBOSearch"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'raybo.tune' has no attribute {name!r}")
    return getattr(importlib.import_module("raybo.tune.searcher"), name)
