"""Domains of Ray Tune and distributions of Optuna as parameters, without importing either."""

from __future__ import annotations

import math
from typing import Any


def translate(entry: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the kind and fields of the parameter that `entry` stands for; None if there is none.

    A bound of Tune that its sampler excludes is excluded for whole numbers, and included for
    real ones, where one value has no weight.
    """
    module = type(entry).__module__
    if module == "optuna.distributions":
        return _from_optuna(entry)
    if module == "ray.tune.search.sample":
        return _from_tune(entry)
    return None


def _from_optuna(entry: Any) -> tuple[str, dict[str, Any]] | None:
    match type(entry).__name__:
        case "FloatDistribution":
            fields = {"low": entry.low, "high": entry.high, "log": entry.log, "step": entry.step}
            return "float", fields
        case "IntDistribution":
            fields = {"low": entry.low, "high": entry.high, "log": entry.log, "step": entry.step}
            return "int", fields
        case "CategoricalDistribution":
            return "categorical", {"values": list(entry.choices)}
    return None


def _from_tune(entry: Any) -> tuple[str, dict[str, Any]] | None:
    kind = type(entry).__name__
    if kind == "Categorical":
        plain = not any(isinstance(value, dict) for value in entry.categories)
        return ("categorical", {"values": list(entry.categories)}) if plain else None
    if kind not in ("Float", "Integer"):
        return None
    sampler = entry.get_sampler()
    step = getattr(sampler, "q", None)
    name = type(getattr(sampler, "sampler", sampler)).__name__
    if name not in ("_Uniform", "_LogUniform"):
        return None
    low, high = entry.lower, entry.upper
    if kind == "Integer" and step in (None, 1):
        high, step = high - 1, None
    if step is not None:  # the multiples of the step within the bounds
        low = math.ceil(round(low / step, 9)) * step
        high = math.floor(round(high / step, 9)) * step
    fields = {"low": low, "high": high, "log": name == "_LogUniform"}
    if step is not None:
        fields["step"] = step
    return ("int" if kind == "Integer" else "float"), fields
