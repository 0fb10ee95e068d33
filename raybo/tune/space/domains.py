"""Domains of Tune as parameters of raybo, and back.

A domain is known by the function of `ray.tune` that makes it and its arguments, for instance
("qloguniform", (1e-3, 1.0, 1e-3)). Values are those that Ray's own sampler gives, bound for bound:

    uniform, loguniform              [lower, upper)
    quniform, qloguniform            k * q in [lower, upper], as the float k * q
    randint, lograndint              lower .. upper - 1
    qrandint, qlograndint            k * q in [lower, upper]; for q = 1 without upper
    randn, qrandn                    any number; searched over mean ± 4.5 sd
    choice                           the given objects themselves
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from ray.tune.search import sample
from scipy.special import ndtr, ndtri

from raybo.errors import SpaceError
from raybo.space.parameters import Categorical, Float, Int, Parameter
from raybo.space.values import as_float, as_int, listed, same

# About the largest of 10**5 normal draws: a search that prefers corners stays finite.
WIDEST = 4.5

NO_FUNCTION = (
    "tune.sample_from is a function, which a search cannot see into; compute the value in the "
    "trainable from parameters that are searched, or use tune.choice over dicts for what is "
    "conditional"
)
NO_GRID = (
    "tune.grid_search lists its trials itself and leaves nothing to search; use tune.choice, or "
    "Tune's default search algorithm for a grid"
)

_MAKERS = {
    "uniform": (sample.Float, sample.Uniform),
    "loguniform": (sample.Float, sample.LogUniform),
    "randn": (sample.Float, sample.Normal),
    "randint": (sample.Integer, sample.Uniform),
    "lograndint": (sample.Integer, sample.LogUniform),
}


class Scalar(Protocol):
    """A domain with one parameter: its values are `show` of the values of `parameter`."""

    @property
    def parameter(self) -> Parameter:
        """What raybo searches."""

    def show(self, inner: Any) -> Any:
        """Return the value of Tune for a value of the parameter."""

    def read(self, value: Any) -> Any:
        """Return the value of the parameter for one of Tune; SpaceError outside the domain."""


def signature(domain: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the name of the function of `ray.tune` that makes the domain, and its arguments.

    Raises
    ------
    SpaceError
        For grid_search, sample_from and domains that Ray Tune does not ship.
    """
    if domain.is_function():
        raise SpaceError(NO_FUNCTION)
    if domain.is_grid():
        raise SpaceError(NO_GRID)
    if isinstance(domain, sample.Categorical):
        return "choice", (list(domain.categories),)
    sampler = domain.get_sampler()
    q: tuple[Any, ...] = ()
    if isinstance(sampler, sample.Quantized):
        q, sampler = (sampler.q,), sampler.sampler
    name = next(
        (n for n, (d, s) in _MAKERS.items() if isinstance(domain, d) and isinstance(sampler, s)),
        None,
    )
    if name is None:
        raise SpaceError(f"{type(domain).__name__} is no domain of ray.tune that raybo knows")
    shape = (sampler.mean, sampler.sd) if name == "randn" else (domain.lower, domain.upper)
    return ("q" if q else "") + name, (*shape, *q)


def refusal(entry: Any) -> str | None:
    """Return why an entry that is no domain cannot be in a param_space; None if it can."""
    if isinstance(entry, Parameter):
        return (
            f"{type(entry).__name__} is a parameter of raybo, which Tune would pass on as a "
            "constant; use ray.tune's domains here, or RayBOSearch(space=...)"
        )
    if isinstance(entry, dict) and len(entry) == 1:  # as Tune recognises them
        return {"grid_search": NO_GRID, "eval": NO_FUNCTION}.get(next(iter(entry)))
    return None


def is_tune(entry: Any) -> bool:
    """Whether the entry is one that Tune resolves."""
    return isinstance(entry, sample.Domain) or (isinstance(entry, dict) and bool(refusal(entry)))


def is_open(entry: Any) -> bool:
    """Whether the entry is no plain value: a domain, or something that is refused."""
    return isinstance(entry, sample.Domain) or refusal(entry) is not None


def holds(entry: Any, test: Callable[[Any], bool]) -> bool:
    """Whether the entry, or one nested in it, passes the test."""
    if test(entry):
        return True
    inside = entry.values() if isinstance(entry, Mapping) else entry
    return isinstance(entry, Mapping | list | tuple) and any(holds(e, test) for e in inside)


def scalar(name: str, arguments: tuple[Any, ...]) -> Scalar:
    """Return the domain that the function of `ray.tune` called `name` makes."""
    if name == "choice":
        return Pick(tuple(arguments[0]))
    log = "log" in name
    if name.endswith("randn"):
        return Normal(*map(float, arguments))
    if name.endswith("int"):
        return _whole(name, arguments, log)
    lower, upper = map(float, arguments[:2])
    if name.startswith("q"):
        q = float(arguments[2])
        return Multiples(_index(lower, q, math.ceil), _index(upper, q, math.floor), log, q, float)
    return Continuous(lower, upper, log)


def _whole(name: str, arguments: tuple[Any, ...], log: bool) -> Multiples:
    lower, upper = (as_int(bound) for bound in arguments[:2])
    if type(lower) is not int or type(upper) is not int:
        raise SpaceError(f"tune.{name} needs whole bounds, got {lower!r} and {upper!r}")
    q = arguments[2] if name.startswith("q") else 1
    first, last = _index(lower, q, math.ceil), _index(upper, q, math.floor)
    last -= q == 1
    if last < first:
        what = "the upper bound is not included" if q == 1 else f"no multiple of {q} lies between"
        raise SpaceError(f"tune.{name}{arguments} has no values: {what}")
    return Multiples(first, last, log, q, int)


def _index(bound: float, q: float, inwards: Callable[[float], float]) -> int:
    """Return k of a bound k * q; a bound between two multiples is moved inwards."""
    nearest = round(bound / q)
    return nearest if math.isclose(bound / q, nearest) else int(inwards(bound / q))


def _number(value: Any) -> float:
    number = as_float(value)
    if not isinstance(number, float) or not math.isfinite(number):
        raise SpaceError(f"expected a number, got {value!r} ({type(value).__name__})")
    return number


@dataclass(frozen=True)
class Continuous:
    """uniform and loguniform."""

    lower: float
    upper: float
    log: bool

    @cached_property
    def parameter(self) -> Parameter:
        """The same range; raybo's includes the upper bound."""
        return Float(self.lower, self.upper, log=self.log)

    def show(self, inner: float) -> float:
        """Return the number, short of the upper bound."""
        if self.lower == self.upper:
            return self.lower
        return min(inner, math.nextafter(self.upper, -math.inf))

    def read(self, value: Any) -> float:
        """Return the number; the upper bound is accepted, as Tune's `is_valid` does."""
        number = _number(value)
        if not self.lower <= number <= self.upper:
            raise SpaceError(f"{value!r} is outside [{self.lower}, {self.upper}]")
        return number


@dataclass(frozen=True)
class Multiples:
    """All quantised and all whole domains with bounds: k * q for k from first to last."""

    first: int
    last: int
    log: bool
    q: float
    cast: type[float] | type[int]

    @cached_property
    def parameter(self) -> Parameter:
        """The number k."""
        return Int(self.first, self.last, log=self.log)

    def show(self, inner: int) -> float:
        """Return k * q, rounded as Ray's sampler does."""
        return self.cast(inner * self.q)

    def read(self, value: Any) -> int:
        """Return the number k."""
        number = _number(value)
        k = round(number / self.q)
        if not math.isclose(number, self.show(k), abs_tol=1e-9 * self.q):
            raise SpaceError(f"{value!r} is not a multiple of {self.q}")
        if not self.first <= k <= self.last:
            low, high = self.show(self.first), self.show(self.last)
            raise SpaceError(f"{value!r} is outside {low} .. {high}")
        return k


@dataclass(frozen=True)
class Normal:
    """randn and qrandn, by the cumulative probability."""

    mean: float
    sd: float
    q: float | None = None

    @cached_property
    def parameter(self) -> Parameter:
        """The probability of a smaller value."""
        return Float(0.0, 1.0)

    def show(self, inner: float) -> float:
        """Return the quantile."""
        deviation = min(max(float(ndtri(inner)), -WIDEST), WIDEST)
        value = self.mean + self.sd * deviation
        return value if self.q is None else float(round(value / self.q) * self.q)

    def read(self, value: Any) -> float:
        """Return the cumulative probability of any finite number."""
        return float(ndtr((_number(value) - self.mean) / self.sd))


@dataclass(frozen=True)
class Pick:
    """A choice of plain objects. Three or more distinct numbers keep their order."""

    values: tuple[Any, ...]

    @cached_property
    def distinct(self) -> tuple[Any, ...]:
        """The objects without repetitions, numbers in ascending order."""
        kept: list[Any] = []
        for value in self.values:
            if not any(same(value, other) for other in kept):
                kept.append(value)
        return tuple(sorted(kept) if _ordered(kept) else kept)

    @cached_property
    def parameter(self) -> Parameter:
        """Index of the object: JSON holds it whatever the object is."""
        if not self.values:
            raise SpaceError("tune.choice needs at least one value")
        if _ordered(self.distinct):
            return Int(0, len(self.distinct) - 1)
        return Categorical(range(len(self.distinct)))

    def show(self, inner: int) -> Any:
        """Return the object itself."""
        return self.distinct[inner]

    def read(self, value: Any) -> int:
        """Return the index of the object: the same, or else the only equal one."""
        for k, own in enumerate(self.distinct):
            if same(own, value):
                return k
        equal = [k for k, own in enumerate(self.distinct) if _equal(own, value)]
        if len(equal) != 1:
            raise SpaceError(f"{value!r} is not one of {listed(self.distinct)}")
        return equal[0]


def _ordered(values: Any) -> bool:
    return (
        len(values) > 2
        and all(isinstance(as_float(v), float) and math.isfinite(v) for v in values)
        and len({float(v) for v in values}) == len(values)
    )


def _equal(own: Any, value: Any) -> bool:
    """Whether two values are equal, but for what JSON or numpy changes in their types."""
    if isinstance(own, bool) != isinstance(value, bool):
        return False
    if isinstance(own, list | tuple) and isinstance(value, list | tuple):
        return len(own) == len(value) and all(map(_equal, own, value))
    try:
        return bool(own == value)
    except (TypeError, ValueError):
        return False
