"""Optuna: RayBOSampler, a sampler with any of raybo's methods.

The name is loaded on first use: Optuna is an extra, which raybo itself does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raybo.optuna.sampler import RayBOSampler as RayBOSampler

__all__ = ["RayBOSampler"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'raybo.optuna' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module("raybo.optuna.sampler"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "optuna":
            raise
        raise ImportError(
            "RayBOSampler needs Optuna, which is not installed; "
            "pip install 'raybo[optuna]' installs it"
        ) from error
