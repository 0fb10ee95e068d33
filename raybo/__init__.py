"""Asynchronous Bayesian optimisation on Ray, for problems where ordinary tuners give up.

The public names are loaded on first use, so that importing raybo loads neither torch nor ray.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raybo.errors import RayboError as RayboError
    from raybo.result import Result as Result
    from raybo.result import load as load
    from raybo.runtime.evaluations.reports import report as report
    from raybo.runtime.optimize import optimize as optimize
    from raybo.space.box import Box as Box
    from raybo.space.parameters import Categorical as Categorical
    from raybo.space.parameters import Choice as Choice
    from raybo.space.parameters import Float as Float
    from raybo.space.parameters import Int as Int
    from raybo.space.space import Space as Space
    from raybo.study.optimizer import Optimizer as Optimizer
    from raybo.study.outcome import studies as studies
    from raybo.study.trial import Trial as Trial

__version__ = "0.2.0"

_HOME = {
    "RayboError": "raybo.errors",
    "optimize": "raybo.runtime.optimize",
    "report": "raybo.runtime.evaluations.reports",
    "Result": "raybo.result",
    "Box": "raybo.space.box",
    "Categorical": "raybo.space.parameters",
    "Choice": "raybo.space.parameters",
    "Float": "raybo.space.parameters",
    "Int": "raybo.space.parameters",
    "Space": "raybo.space.space",
    "Optimizer": "raybo.study.optimizer",
    "Trial": "raybo.study.trial",
    "load": "raybo.result",
    "studies": "raybo.study.outcome",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'raybo' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
