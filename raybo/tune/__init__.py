"""Ray Tune: RayBOSearch, a searcher with any of raybo's methods.

Names are loaded on first use, as those of raybo are: importing ray.tune takes seconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raybo.tune.front import pareto_front as pareto_front
    from raybo.tune.searcher import RayBOSearch as RayBOSearch

_HOME = {"RayBOSearch": "raybo.tune.searcher", "pareto_front": "raybo.tune.front"}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'raybo.tune' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
