"""Objective: converts results to values and losses, the only place where a sign changes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raybo.errors import MetricError, ObjectiveError, StudyError

Constraints = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True)
class Objective:
    """What is optimised: the entry `metric` of the result, to its `mode` ("min" or "max").

    `constraints` are bounds (low, high) of other entries, by their names; None is no bound.
    `others` are further metrics to optimise, with their modes: each trial minimises another
    weighting of all of them (`raybo.study.scalarisation`).
    """

    mode: str = "min"
    metric: str | None = None
    constraints: Constraints = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for mode in (self.mode, *self.others.values()):
            if mode not in ("min", "max"):
                raise StudyError(f"mode must be 'min' or 'max', got {mode!r}")
        object.__setattr__(self, "constraints", checked_constraints(self.constraints))
        for metric in {self.metric, *self.others} & {*self.constraints}:
            raise StudyError(
                f"{metric!r} is the metric, which is optimised; a constraint is on another "
                "entry of the result"
            )

    def loss(self, value: float) -> float:
        """Return the loss of a value: smaller is better."""
        return value if self.mode == "min" else -value

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the entries that a result must hold beside the metric."""
        return (*self.constraints, *self.others)

    def losses(self, value: float, extra: Mapping[str, Any]) -> list[float]:
        """Return the loss of a value, then those of the other metrics among the extra entries."""
        found = [self.loss(value)]
        for name, mode in self.others.items():
            found.append(Objective(mode).loss(self._entry(extra, name)))
        return found

    def better(self, a: float, b: float) -> bool:
        """Return whether value `a` is better than value `b`."""
        return self.loss(a) < self.loss(b)

    def excess(self, extra: Mapping[str, Any]) -> list[float]:
        """Return by how much the entries of a result exceed each bound; allowed where <= 0."""
        found = []
        for name, (low, high) in self.constraints.items():
            value = self._entry(extra, name)
            found += [] if low is None else [low - value]
            found += [] if high is None else [value - high]
        return found

    def allows(self, extra: Mapping[str, Any]) -> bool:
        """Return whether the entries of a result keep all bounds."""
        return all(e <= 0.0 for e in self.excess(extra))

    def parse(self, result: Any) -> tuple[float, dict[str, Any]]:
        """Return the value and the extra entries of what an objective returned.

        Raises
        ------
        ObjectiveError
            When it holds no finite number; the message becomes the reason of the failure.
        """
        if not isinstance(result, Mapping):
            if self.constraints:
                raise MetricError(
                    f"the objective returned {_short(result)}; with constraints= it returns a "
                    "dict of the metric and the entries that are bounded"
                )
            return finite_number(result, "the objective returned"), {}
        metric = self.metric
        if metric is None:
            if len(result) != 1:
                raise MetricError(
                    f"the objective returned the entries {sorted(map(str, result))}; "
                    "name the one to optimise with metric="
                )
            metric = next(iter(result))
        if metric not in result:
            raise MetricError(
                f"the objective returned the entries {sorted(map(str, result))}, "
                f"none of them is the metric {metric!r}"
            )
        extra = {str(k): v for k, v in result.items() if k != metric}
        for name in self.entries:
            extra[name] = self._entry(extra, name)
        return finite_number(result[metric], f"the metric {metric!r} is"), extra

    def _entry(self, extra: Mapping[str, Any], name: str) -> float:
        if name not in extra:
            why = "constraints= bounds" if name in self.constraints else "is a metric too"
            raise MetricError(
                f"the result has the entries {sorted(extra)} beside the metric, "
                f"none of them is {name!r}, which {why}"
            )
        return finite_number(extra[name], f"the entry {name!r} is")


def checked_constraints(constraints: Any) -> Constraints:
    """Return constraints with bounds as floats; refuse what is none."""
    if not isinstance(constraints, Mapping):
        raise StudyError(
            f"constraints is {constraints!r}, not a dict; for example "
            '{"latency": (None, 10.0)} keeps the entry "latency" of the result at most 10'
        )
    checked: dict[str, tuple[float | None, float | None]] = {}
    for name, bounds in constraints.items():
        try:
            low, high = (None if b is None else finite_number(b, "a bound is") for b in bounds)
        except (TypeError, ValueError, ObjectiveError) as error:
            raise StudyError(
                f"constraints[{name!r}] is {bounds!r}: {error}; give (low, high), "
                "None for no bound"
            ) from None
        if (low is None and high is None) or (low is not None and high is not None and low > high):
            raise StudyError(
                f"constraints[{name!r}] is {bounds!r}: it needs a bound, and low <= high"
            )
        checked[str(name)] = (low, high)
    return checked


def finite_number(value: Any, what: str) -> float:
    """Return `value` as a finite float; zero-dimensional arrays and tensors count as numbers."""
    if type(value) is float and math.isfinite(value):  # by far the commonest
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        if bool(getattr(value, "mask", False)):  # numpy's masked scalar would count as 0
            raise ObjectiveError(f"{what} a masked value, not a number")
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ObjectiveError(f"{what} {_short(value)} ({type(value).__name__}), not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ObjectiveError(f"{what} an integer too large for a float") from None
    if not math.isfinite(number):
        raise ObjectiveError(f"{what} {number}, not a finite number")
    return number


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # one line of a table
