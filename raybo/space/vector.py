"""Vector: the lazy vector of a Box config, whose coordinates are computed when they are read.

A vector is its dimension, its bounds and a source of coordinates in [-1, 1], which are then
scaled affinely to [low, high]. Coordinates of all sources but `Dense` are pure functions
of (seed, index): a vector of 10**12 coordinates takes a few hundred bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from raybo.arrays import Array, Bools
from raybo.errors import SpaceError

Bits = NDArray[np.uint64]

LARGEST_SLICE = 10**7
LARGEST_ARRAY = 2 * 10**8


def gaussian_rows(seed: int, rows: Any, d: int) -> Array:
    """Return rows of the infinite standard normal matrix of a seed.

    Parameters
    ----------
    seed : int
        Number of the matrix; taken modulo 2**64.
    rows : array of int, shape (n,)
        Numbers of the rows, in any order.
    d : int
        Number of columns; the first d columns are the same for every d.

    Returns
    -------
    ndarray, shape (n, d)
        Entry (i, j) is a pure function of (seed, rows[i], j).
    """
    # Imported here: scipy.special takes 0.2 s, which building a space must not cost.
    from scipy.special import ndtri  # noqa: PLC0415

    keys = _mix(_stream(seed) + _counters(rows))
    normal: Array = ndtri(_uniform(_mix(keys[:, None] + _first_counters(d))))
    return normal


def permuted(seed: int, rows: Any, dim: int) -> Bits:
    """Return the places of coordinates in a random order of all `dim` of them.

    Notes
    -----
    A Feistel network of four rounds (Luby & Rackoff 1988) permutes the numbers below a power of
    four; what falls beyond `dim` is permuted again until it does not (Black & Rogaway 2002). So
    each place costs the same in any dimension, and no two coordinates share one.
    """
    half = max(1, ((dim - 1).bit_length() + 1) // 2)
    shift, mask = _uint64(half), _uint64(2**half - 1)
    keys = [_mix(_stream(seed) + _counters(_uint64(n))) for n in range(1, _ROUNDS + 1)]
    places: Bits = np.array(rows, dtype=np.uint64)
    todo = np.arange(len(places))
    while len(todo):
        left, right = places[todo] >> shift, places[todo] & mask
        for key in keys:
            left, right = right, left ^ (_mix(key + right * _GOLDEN) & mask)
        places[todo] = (left << shift) | right
        todo = todo[places[todo] >= dim]
    return places


def random_signs(seed: int, rows: Any) -> Array:
    """Return 1.0 or -1.0 for each of the coordinates, pure functions of (seed, row)."""
    return np.where(_uniform(_mix(_stream(seed) + _counters(rows))) < 0.5, -1.0, 1.0)


def _uint64(*values: int) -> Bits:
    # Arrays, never scalars: numpy warns when a scalar wraps around and is silent for arrays.
    return np.array(values, dtype=np.uint64)


_ONE = _uint64(1)
_GOLDEN = _uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, the increment of splitmix64
_FACTOR_1, _FACTOR_2 = _uint64(0xBF58476D1CE4E5B9), _uint64(0x94D049BB133111EB)
_ROUNDS = 4
_SHIFT_12, _SHIFT_27, _SHIFT_30, _SHIFT_31 = map(_uint64, (12, 27, 30, 31))


def _mix(h: Bits) -> Bits:
    """Finaliser of splitmix64 (Steele, Lea, Flood 2014), in place."""
    h ^= h >> _SHIFT_30
    h *= _FACTOR_1
    h ^= h >> _SHIFT_27
    h *= _FACTOR_2
    h ^= h >> _SHIFT_31
    return h


def _counters(numbers: Any) -> Bits:
    counters: Bits = (np.asarray(numbers, dtype=np.uint64) + _ONE) * _GOLDEN
    return counters


@lru_cache(maxsize=64)
def _first_counters(d: int) -> Bits:
    return _counters(np.arange(d))


@lru_cache(maxsize=64)
def _stream(seed: int) -> Bits:
    return _mix(_uint64(seed % 2**64) + _GOLDEN)


def _uniform(bits: Bits) -> Array:
    """Numbers in the open interval (0, 1); with 53 bits the largest would round to 1."""
    return ((bits >> _SHIFT_12).astype(np.float64) + 0.5) * 2.0**-52


def _clip(values: Array, low: float, high: float) -> Array:
    """np.clip, which spends four times as long on its arguments as on a short array."""
    return np.minimum(np.maximum(values, low), high)


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool | float) or not hasattr(seed, "__index__"):
        raise SpaceError(f"the seed of a vector is an integer, got {seed!r}")
    return int(seed)


@dataclass(frozen=True, eq=False)
class Dense:
    """Coordinates held in an array.

    Parameters
    ----------
    values : ndarray, shape (dim,)
        In [-1, 1], whatever the bounds of the vector.
    """

    values: Array

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 1 or not (np.abs(values) <= 1.0).all():
            raise SpaceError("a dense vector is a row of numbers in [-1, 1]; divide by the bounds")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.values)

    def at(self, rows: Bits) -> Array:
        """Return coordinates in [-1, 1]."""
        return self.values[rows.astype(np.intp)]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON description."""
        return {"dense": {"values": self.values.tolist()}}


@dataclass(frozen=True)
class Uniform:
    """Independent uniform coordinates: coordinate i is a pure function of (seed, i)."""

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", _checked_seed(self.seed))

    def at(self, rows: Bits) -> Array:
        """Return coordinates in [-1, 1]."""
        return 2.0 * _uniform(_mix(_stream(self.seed) + _counters(rows))) - 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON description."""
        return {"uniform": {"seed": self.seed}}


@dataclass(frozen=True)
class Embedded:
    """A z in a random embedding: coordinate i is <A_i, z>, clipped to [-1, 1].

    Parameters
    ----------
    seed : int
        Seed of the Gaussian matrix A, see `gaussian_rows`.
    z : tuple of float
        The point of the low-dimensional space.
    """

    seed: int
    z: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", _checked_seed(self.seed))
        object.__setattr__(self, "z", tuple(map(float, self.z)))
        if not self.z or not all(map(math.isfinite, self.z)):
            raise SpaceError(f"an embedded vector needs finite coordinates z, got {self.z}")

    def at(self, rows: Bits) -> Array:
        """Return coordinates in [-1, 1]."""
        # A matrix product may sum in another order when the number of rows changes; the sum of
        # each row does not, so x[i] and x[a:b] agree to the last bit.
        inner = (gaussian_rows(self.seed, rows, len(self.z)) * self.z).sum(axis=1)
        return _clip(inner, -1.0, 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON description."""
        return {"embedded": {"seed": self.seed, "z": list(self.z)}}


@dataclass(frozen=True)
class Binned:
    """One value for each bin of coordinates: coordinate i is the value of its bin, or minus that.

    A permutation of the coordinates, drawn by the seed, is cut into bins.

    Parameters
    ----------
    seed : int
        Seed of the permutation, see `permuted`, and of the signs.
    ends : tuple of int
        Where each bin ends in the order of the permutation, increasing; the last is the dimension.
    values : tuple of float
        The value of each bin, in [-1, 1].
    """

    seed: int
    ends: tuple[int, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", _checked_seed(self.seed))
        object.__setattr__(self, "ends", tuple(map(int, self.ends)))
        object.__setattr__(self, "values", tuple(map(float, self.values)))
        rising = all(a < b for a, b in zip((0, *self.ends), self.ends, strict=False))
        if not self.ends or not rising or len(self.ends) != len(self.values):
            raise SpaceError("a binned vector has bins, each with a rising end and a value")
        if not all(abs(value) <= 1.0 for value in self.values):
            raise SpaceError("the values of a binned vector lie in [-1, 1]; divide by the bounds")

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.ends[-1]

    def at(self, rows: Bits) -> Array:
        """Return coordinates in [-1, 1]."""
        places = permuted(self.seed, rows, self.dim)
        bins = np.searchsorted(np.array(self.ends, dtype=np.uint64), places, side="right")
        found: Array = random_signs(self.seed, rows) * np.array(self.values)[bins]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the JSON description."""
        about = {"seed": self.seed, "ends": list(self.ends), "values": list(self.values)}
        return {"binned": about}


Source = Dense | Uniform | Embedded | Binned


@dataclass(frozen=True, eq=False, repr=False)
class Vector(NDArrayOperatorsMixin):
    """A read-only vector whose coordinates are computed when they are read.

    Index it (`x[5]`, `x[[3, 8]]`, `x[10:20]`), iterate over `chunks`, or convert it to an array
    with `np.asarray(x)`. Arithmetic and comparisons are elementwise and materialise it.

    Parameters
    ----------
    dim : int
        Number of coordinates.
    low, high : float
        Range of every coordinate.
    source : Dense, Uniform, Embedded or Binned
        Coordinates in [-1, 1], scaled to [low, high] on reading.
    """

    dim: int
    low: float
    high: float
    source: Source

    def __post_init__(self) -> None:
        given = self.source.dim if isinstance(self.source, Dense | Binned) else self.dim
        if given != self.dim:
            raise SpaceError(f"a vector of dimension {self.dim} was given {given} coordinates")

    @property
    def shape(self) -> tuple[int]:
        """The dimension, as a tuple."""
        return (self.dim,)

    def __len__(self) -> int:
        return self.dim

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._slice(range(*key.indices(self.dim)))
        if isinstance(key, int | np.integer):
            return float(self._at(_uint64(self._checked(int(key))))[0])
        index = np.asarray(key)
        if index.dtype == np.bool_:
            return self._masked(index)
        if index.size == 0:
            return np.empty(index.shape)
        if index.dtype.kind not in "iu":
            raise IndexError(f"a Vector is indexed by integers, slices and masks, got {key!r}")
        signed = index.astype(np.int64)
        rows = np.where(signed < 0, signed + self.dim, signed).view(np.uint64)
        if rows.max() >= self.dim:  # what is still negative reads as at least 2**63 here
            self._checked(int(signed.min()))
            self._checked(int(signed.max()))
        return self._at(rows) if rows.ndim == 1 else self._at(rows.ravel()).reshape(rows.shape)

    def __iter__(self) -> Iterator[float]:
        for _, values in self.chunks():
            yield from values.tolist()

    def chunks(self, size: int = 65536) -> Iterator[tuple[int, Array]]:
        """Yield (start, coordinates start .. start + size) over the whole vector."""
        for start in range(0, self.dim, size):
            stop = min(start + size, self.dim)
            yield start, self._at(np.arange(start, stop, dtype=np.uint64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a Vector holds no array: np.asarray(x) has to make one")
        if self.dim > LARGEST_ARRAY:
            raise SpaceError(
                f"an array of {self.dim:,} coordinates is too large (at most {LARGEST_ARRAY:,}); "
                "index x[[3, 8]] or iterate over x.chunks()"
            )
        array = np.empty(self.dim)
        for start, values in self.chunks():
            array[start : start + len(values)] = values
        return array if dtype is None else array.astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(entry) if isinstance(entry, Vector) else entry for entry in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def same_as(self, other: Any) -> bool:
        """Return whether the other is a vector of the same dimension, bounds and source."""
        return isinstance(other, Vector) and self.to_json() == other.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the exact JSON description."""
        return {"dim": self.dim, "low": self.low, "high": self.high, **self.source.to_json()}

    def __repr__(self) -> str:
        first = ", ".join(f"{value:.4g}" for value in self[:3])
        dots = ", ..." if self.dim > 3 else ""
        return f"Vector([{first}{dots}], dim={self.dim}, {type(self.source).__name__.lower()})"

    def _at(self, rows: Bits) -> Array:
        middle, half = self.low + (self.high - self.low) / 2, (self.high - self.low) / 2
        return _clip(middle + half * self.source.at(rows), self.low, self.high)

    def _slice(self, indices: range) -> Array:
        if len(indices) > LARGEST_SLICE:
            raise SpaceError(
                f"a slice of {len(indices):,} coordinates is too large (at most "
                f"{LARGEST_SLICE:,}); iterate over x.chunks()"
            )
        return self._at(np.arange(indices.start, indices.stop, indices.step).astype(np.uint64))

    def _masked(self, mask: Bools) -> Array:
        if mask.shape != self.shape:
            raise IndexError(f"a mask has the shape of the vector {self.shape}, got {mask.shape}")
        return self._at(np.flatnonzero(mask).astype(np.uint64))

    def _checked(self, i: int) -> int:
        if not -self.dim <= i < self.dim:
            raise IndexError(f"index {i} is out of range for a Vector of {self.dim} coordinates")
        return i + self.dim if i < 0 else i


def vector_from_json(obj: Mapping[str, Any]) -> Vector:
    """Return the Vector that `Vector.to_json` described."""
    try:
        [name] = set(obj) - {"dim", "low", "high"}
        source: Source = _SOURCES[name](**obj[name])
        return Vector(int(obj["dim"]), float(obj["low"]), float(obj["high"]), source)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SpaceError(f"not a vector: {str(obj)[:200]} ({error})") from None


_SOURCES: dict[str, Any] = {
    "dense": Dense,
    "uniform": Uniform,
    "embedded": Embedded,
    "binned": Binned,
}
