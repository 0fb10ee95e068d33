"""Parameters of a search space: Float, Int, Categorical and the conditional Choice.

A parameter converts a value to a position in [0, 1] and back. It is checked not when it is made
but by the `Space` that holds it, which reports a problem with the path of the parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raybo.arrays import Array
from raybo.errors import SpaceError
from raybo.space.foreign import translate
from raybo.space.grid import EXACT, Grid
from raybo.space.values import as_float, as_int, is_scalar, listed, same, to_json


@dataclass(frozen=True)
class Float:
    """A real number in [low, high].

    Parameters
    ----------
    low, high : float
        Bounds, both included; equal bounds make a constant.
    log : bool
        Search on a log scale; needs low > 0.
    step : float, optional
        Only the values low, low + step, ... up to high. They are exact decimals: low 0 and
        step 0.1 give 0.3, not 0.30000000000000004.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        for field in ("low", "high", "step"):
            object.__setattr__(self, field, as_float(getattr(self, field)))

    def check(self) -> None:
        """Raise SpaceError if the definition makes no sense."""
        _check_bounds(self, float, 8e307, "a number within ±8e307")  # high - low stays finite
        if self.step is not None:
            _check_step(self, float)
            if (self.high - self.low) / self.step > EXACT:
                raise SpaceError(f"step={self.step} gives over 2**50 values; raise or drop it")

    @cached_property
    def _decimals(self) -> tuple[Decimal, Decimal]:
        return Decimal(repr(self.low)), Decimal(repr(self.step))

    @cached_property
    def cardinality(self) -> int | None:
        """Number of values; None when continuous."""
        if self.low == self.high:
            return 1
        if self.step is None:
            return None
        low, step = self._decimals
        return int((Decimal(repr(self.high)) - low) // step) + 1

    @cached_property
    def grid(self) -> Grid | None:
        """The values as intervals of [0, 1]; None when continuous."""
        if self.cardinality is None:
            return None
        log = self.log and self.cardinality > 1
        return Grid(self.cardinality, self.low, self.step or 1.0, log)

    @cached_property
    def _scale(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def value(self, k: int) -> float:
        """Return value number k of a quantised or constant parameter."""
        if self.cardinality == 1:
            return self.low
        low, step = self._decimals
        return float(low + k * step)

    def plain(self, value: Any) -> float:
        """Return the value as a float; SpaceError if it is not one of the parameter's values."""
        number = as_float(value)
        if not isinstance(number, float):
            raise SpaceError(f"expected a number, got {value!r} ({type(value).__name__})")
        if not self.low <= number <= self.high:
            raise SpaceError(f"{number} is outside [{self.low}, {self.high}]")
        if self.cardinality is None:
            return number
        nearest = self.value(self._nearest(number))
        if abs(number - nearest) > 1e-9 * (self.step or 1.0):
            raise SpaceError(
                f"{number} is not low + k * step for low={self.low}, step={self.step}; "
                f"the nearest value is {nearest}"
            )
        return nearest

    def _nearest(self, number: float) -> int:
        return min(round((number - self.low) / (self.step or 1.0)), (self.cardinality or 1) - 1)

    def contains(self, value: Any) -> bool:
        """Return whether the value is one of the parameter's values."""
        return _accepts(self, value)

    def encode(self, value: Any) -> float:
        """Return the position of the value in [0, 1]."""
        number = self.plain(value)
        if self.grid is not None:
            return self.grid.position(self._nearest(number))
        first, last = self._scale
        u = ((math.log(number) if self.log else number) - first) / (last - first)
        return min(max(u, 0.0), 1.0)

    def decode(self, u: float) -> float:
        """Return the value at position u of [0, 1]."""
        if self.grid is not None:
            return self.value(self.grid.index(u))
        first, last = self._scale
        x = first * (1.0 - u) + last * u
        return min(max(math.exp(x) if self.log else x, self.low), self.high)

    def decode_all(self, u: Array) -> Array:
        """Return the values (n,) of a continuous parameter, to the last digit as in `decode`."""
        first, last = self._scale
        x = first * (1.0 - u) + last * u
        if self.log:
            x = np.array([math.exp(entry) for entry in x.tolist()])  # np.exp rounds otherwise
        return np.minimum(np.maximum(x, self.low), self.high)

    def definition(self) -> dict[str, Any]:
        """Return the JSON description; the fields at their defaults are left out."""
        return _describe_number(self)

    def __repr__(self) -> str:
        return _show_number(self)


@dataclass(frozen=True)
class Int:
    """A whole number from low to high, both included.

    Parameters
    ----------
    low, high : int
        Bounds; equal bounds make a constant.
    log : bool
        Search on a log scale; needs low >= 1.
    step : int
        Only the values low, low + step, ... up to high.

    Notes
    -----
    Encoding and decoding are exact for up to 2**50 values on a linear scale (2**45 on a log
    scale); beyond that neighbours share a float64 position.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1
    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        for field in ("low", "high", "step"):
            object.__setattr__(self, field, as_int(getattr(self, field)))

    def check(self) -> None:
        """Raise SpaceError if the definition makes no sense."""
        _check_bounds(self, int, 2**64, "a whole number within ±2**64")
        _check_step(self, int)

    @cached_property
    def cardinality(self) -> int:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

    @cached_property
    def grid(self) -> Grid:
        """The values as intervals of [0, 1]."""
        return Grid(self.cardinality, self.low, self.step, self.log and self.cardinality > 1)

    def value(self, k: int) -> int:
        """Return value number k."""
        return self.low + k * self.step

    def plain(self, value: Any) -> int:
        """Return the value as an int; SpaceError if it is not one of the parameter's values."""
        number = as_int(value)
        if type(number) is not int:
            raise SpaceError(f"expected a whole number, got {value!r} ({type(value).__name__})")
        if not self.low <= number <= self.high:
            raise SpaceError(f"{number} is outside {self.low}..{self.high}")
        if (number - self.low) % self.step:
            raise SpaceError(
                f"{number} is not low + k * step for low={self.low}, step={self.step}"
            )
        return number

    def contains(self, value: Any) -> bool:
        """Return whether the value is one of the parameter's values."""
        return _accepts(self, value)

    def encode(self, value: Any) -> float:
        """Return the position of the value in [0, 1]."""
        return self.grid.position((self.plain(value) - self.low) // self.step)

    def decode(self, u: float) -> int:
        """Return the value at position u of [0, 1]."""
        return self.low + self.grid.index(u) * self.step

    def definition(self) -> dict[str, Any]:
        """Return the JSON description; the fields at their defaults are left out."""
        return _describe_number(self)

    def __repr__(self) -> str:
        return _show_number(self)


@dataclass(frozen=True, eq=False)
class Categorical:
    """One of several values without an order.

    Parameters
    ----------
    values : sequence
        Any python objects. Type counts: 1, 1.0 and True are three different values.
    """

    values: Sequence[Any]
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        if isinstance(self.values, Iterable) and not isinstance(self.values, str | Mapping | Set):
            object.__setattr__(self, "values", tuple(self.values))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Categorical)
            and len(self.values) == len(other.values)
            and all(map(same, self.values, other.values))
        )

    def check(self) -> None:
        """Raise SpaceError if the definition makes no sense."""
        if not isinstance(self.values, tuple):
            raise SpaceError(f"values must be a list, got {self.values!r}")
        if not self.values:
            raise SpaceError("values is empty; give at least one")
        for k, value in enumerate(self.values):
            if self.rank(value) < k:
                raise SpaceError(f"the value {value!r} is given twice; drop one")

    @cached_property
    def cardinality(self) -> int:
        """Number of values."""
        return len(self.values)

    @cached_property
    def grid(self) -> Grid:
        """The values as equal intervals of [0, 1], in the given order."""
        return Grid(len(self.values))

    @cached_property
    def _ranks(self) -> dict[tuple[type, Any], int]:
        """Numbers of the scalars by type and value: of thousands one is found at once."""
        pairs = [((type(v), v), k) for k, v in enumerate(self.values) if is_scalar(v)]
        return dict(reversed(pairs))

    def value(self, k: int) -> Any:
        """Return value number k."""
        return self.values[k]

    def rank(self, value: Any) -> int:
        """Return the number of the value; SpaceError if it is not one of them."""
        if is_scalar(value):
            found = self._ranks.get((type(value), value))
        else:
            found = next((k for k, own in enumerate(self.values) if same(own, value)), None)
        if found is not None:
            return found
        raise SpaceError(f"{value!r} ({type(value).__name__}) is not one of {listed(self.values)}")

    def plain(self, value: Any) -> Any:
        """Return the parameter's own object equal to the value; SpaceError if there is none."""
        return self.values[self.rank(value)]

    def contains(self, value: Any) -> bool:
        """Return whether the value is one of the parameter's values."""
        return _accepts(self, value)

    def encode(self, value: Any) -> float:
        """Return the position of the value in [0, 1]."""
        return self.grid.position(self.rank(value))

    def decode(self, u: float) -> Any:
        """Return the value at position u of [0, 1]."""
        return self.values[self.grid.index(u)]

    def definition(self) -> dict[str, Any]:
        """Return the JSON description; a value JSON cannot hold is {"$object": its repr}."""
        return {"type": "categorical", "values": [to_json(value) for value in self.values]}

    def __repr__(self) -> str:
        return f"Categorical({list(self.values)!r})"


@dataclass(frozen=True)
class Choice:
    """A choice of one branch; only the chosen branch's parameters are part of the config.

    Parameters
    ----------
    branches : dict of str to dict
        Branch name to its parameters: possibly none, possibly nested dicts and Choices.

    Notes
    -----
    Its own value, for `encode`, `decode` and `cardinality`, is the name of the branch. In a
    config it appears as {branch: {parameters of the branch}}.
    """

    branches: Mapping[str, Mapping[str, Any]]
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", copy_tree(self.branches))

    def check(self) -> None:
        """Raise SpaceError if the definition makes no sense; branches are checked by the Space."""
        if not isinstance(self.branches, Mapping):
            raise SpaceError(
                f"branches must be a dict of branch name to parameters, got {self.branches!r}; "
                "use Categorical for values without parameters"
            )
        if not self.branches:
            raise SpaceError("branches is empty; give at least one")

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.branches)

    @cached_property
    def cardinality(self) -> int:
        """Number of branches."""
        return len(self.branches)

    @cached_property
    def grid(self) -> Grid:
        """The branches as equal intervals of [0, 1], in the given order."""
        return Grid(len(self.branches))

    def value(self, k: int) -> str:
        """Return the name of branch number k."""
        return self._names[k]

    def plain(self, value: Any) -> str:
        """Return the branch name; SpaceError if there is no such branch."""
        if not isinstance(value, str) or value not in self.branches:
            raise SpaceError(f"{value!r} is not one of the branches {listed(self._names)}")
        return value

    def contains(self, value: Any) -> bool:
        """Whether the value is the name of a branch."""
        return _accepts(self, value)

    def encode(self, value: Any) -> float:
        """Position of the branch in [0, 1]."""
        return self.grid.position(self._names.index(self.plain(value)))

    def decode(self, u: float) -> str:
        """Name of the branch at position u of [0, 1]."""
        return self._names[self.grid.index(u)]

    def definition(self) -> dict[str, Any]:
        """JSON description, with the branches' parameters."""
        branches = {name: describe(branch) for name, branch in self.branches.items()}
        return {"type": "choice", "branches": branches}

    def __repr__(self) -> str:
        return f"Choice({self.branches!r})"


Parameter = Float | Int | Categorical | Choice


def _accepts(parameter: Parameter, value: Any) -> bool:
    try:
        parameter.plain(value)
    except SpaceError:
        return False
    return True


def _check_bounds(parameter: Any, expected: type[Any], largest: float, words: str) -> None:
    """Raise SpaceError unless low and high bound a range, on the wanted scale."""
    low, high = parameter.low, parameter.high
    for field, bound in (("low", low), ("high", high)):
        if type(bound) is not expected or not -largest <= bound <= largest:
            raise SpaceError(
                f"{field} must be {words}, got {bound!r} ({type(bound).__name__}); write for "
                f"instance {type(parameter).__name__}({1 if expected is int else 0}, 10)"
            )
    if low > high:
        raise SpaceError(f"needs low <= high, got low={low}, high={high}; swap them")
    if not isinstance(parameter.log, bool):
        raise SpaceError(f"log must be True or False, got {parameter.log!r}")
    if parameter.log and low <= 0:
        raise SpaceError(
            f"log=True needs 0 < low < high, got low={low}, high={high}; raise low or drop log"
        )


def _check_step(parameter: Any, expected: type[Any]) -> None:
    """Raise SpaceError unless the step is positive and fits into the range."""
    low, high, step = parameter.low, parameter.high, parameter.step
    if type(step) is not expected or not 0 < step < math.inf:
        raise SpaceError(f"step must be a positive {expected.__name__}, got {step!r}")
    if low < high and step > high - low:
        raise SpaceError(f"step={step} exceeds high - low = {high - low}; lower or drop step")


def describe(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON description of a (nested) dict of parameters."""
    return {
        name: describe(entry) if isinstance(entry, Mapping) else entry.definition()
        for name, entry in parameters.items()
    }


def _describe_number(parameter: Any) -> dict[str, Any]:
    """JSON description of a Float or Int; the fields at their defaults are left out."""
    values = [(field, getattr(parameter, field.name)) for field in fields(parameter)]
    changed = {field.name: value for field, value in values if value != field.default}
    return {"type": parameter.kind, **changed}


def _show_number(parameter: Any) -> str:
    """Constructor call of a Float or Int; the fields at their defaults are left out."""
    _, (_, low), (_, high), *options = parameter.definition().items()
    shown = [repr(low), repr(high), *(f"{name}={value!r}" for name, value in options)]
    return f"{type(parameter).__name__}({', '.join(shown)})"


def copy_tree(entry: Any) -> Any:
    """Return a copy of nested mappings as dicts; domains of other tuners become parameters."""
    if isinstance(entry, Mapping):
        return {name: copy_tree(child) for name, child in entry.items()}
    found = translate(entry)
    if found is None:
        return entry
    kind, fields = found
    return {"float": Float, "int": Int, "categorical": Categorical}[kind](**fields)
