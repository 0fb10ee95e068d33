"""Box: one vector-valued parameter "x" of any dimension, never materialised by raybo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from raybo.arrays import Array, Bools
from raybo.errors import SpaceError
from raybo.space.columns import Column, Config
from raybo.space.parameters import Float
from raybo.space.values import as_float, as_int
from raybo.space.vector import Dense, Source, Uniform, Vector, vector_from_json

LARGEST_DENSE = 10_000
LARGEST_DIM = 10**12


@dataclass(frozen=True)
class Box:
    """The box [low, high]^dim as a search space; a config is {"x": Vector}.

    Parameters
    ----------
    dim : int
        Number of dimensions, up to 10**12.
    low, high : float
        Bounds of every dimension.
    where : None
        A box allows all of its points; a Space of named parameters can have a condition.

    Notes
    -----
    Up to 10,000 dimensions the box is `dense`: it has one column per dimension and the methods
    of `Space`. Beyond, rows would not fit in memory and whatever needs one is a SpaceError;
    `draw`, `vector`, `to_json` and `from_json` work in any dimension.
    """

    dim: int
    low: float = -1.0
    high: float = 1.0
    where: InitVar[Any] = None

    constrained: ClassVar[bool] = False
    listed: ClassVar[None] = None

    def __post_init__(self, where: Any) -> None:
        if where is not None:
            raise SpaceError(
                "a Box takes no where; use a Space of named parameters: "
                "Space({'x0': Float(-1, 1), ...}, where='x0 + x1 <= 1')"
            )
        for field, plain in (("dim", as_int), ("low", as_float), ("high", as_float)):
            object.__setattr__(self, field, plain(getattr(self, field)))
        if type(self.dim) is not int or not 1 <= self.dim <= LARGEST_DIM:
            raise SpaceError(f"'x': dim must be a whole number from 1 to 10**12, got {self.dim!r}")
        try:
            Float(self.low, self.high).check()
        except SpaceError as error:
            raise SpaceError(f"'x': {error}") from None
        if self.low == self.high:
            raise SpaceError(f"'x': needs low < high, got low={self.low}, high={self.high}")

    @property
    def dense(self) -> bool:
        """Whether the box is small enough for one column per dimension."""
        return self.dim <= LARGEST_DENSE

    @property
    def whole(self) -> Box:
        """The box: nothing is left out."""
        return self

    @property
    def cardinality(self) -> None:
        """None: the number of configs is infinite."""
        return

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """One column per dimension, named "x[0]", "x[1]", ...; SpaceError unless dense."""
        self._needs_columns()
        parameter = Float(self.low, self.high)
        return tuple(Column(i, (f"x[{i}]",), parameter) for i in range(self.dim))

    def vector(self, source: Source) -> Vector:
        """Return the vector of this box with the given coordinates."""
        return Vector(self.dim, self.low, self.high, source)

    def encode(self, config: Config) -> Array:
        """Return the row (d,) of a config, in [0, 1]; SpaceError unless dense."""
        self._needs_columns()
        source = self._read(config).source
        values = source.values if isinstance(source, Dense) else source.at(self._rows())
        return (values + 1.0) / 2.0

    def decode(self, u: Any) -> dict[str, Any]:
        """Return the config of a row (d,); entries are clipped to [0, 1], NaN reads as 1/2."""
        row = self._inside(np.reshape(u, (1, -1)))[0]
        return {"x": self.vector(Dense(2.0 * row - 1.0))}

    def snap(self, U: Array) -> Array:
        """Return rows (n, d) clipped to the cube: a box is continuous."""
        return self._inside(U)

    def active(self, U: Array) -> Bools:
        """Return True for every column and row of U (n, d): all columns matter."""
        return np.ones(self._inside(U).shape, dtype=np.bool_)

    def allows(self, config: Config) -> bool:  # noqa: ARG002  (as in Space)
        """Return True: every config of a box is allowed."""
        return True

    def check_allowed(self, config: Config) -> None:
        """Do nothing: every config of a box is allowed."""

    def allowed(self, U: Array) -> Bools:
        """Return True for every row of U (n, d): all are allowed."""
        return np.ones(len(U), dtype=np.bool_)

    def nearest(self, row: Array) -> Array:
        """Return the row (d,) itself: it is allowed."""
        return row

    def sample(self, n: int, rng: Generator) -> Array:
        """Return rows (n, d) drawn uniformly from the cube; SpaceError unless dense."""
        self._needs_columns()
        return rng.random((n, self.dim))

    def draw(self, rng: Generator) -> dict[str, Any]:
        """Return a random config, in any dimension."""
        return {"x": self.vector(Uniform(int(rng.integers(2**63))))}

    def points(self) -> Iterator[dict[str, Any]]:
        """Raise SpaceError: a box is continuous."""
        raise SpaceError("'x' is continuous: the configs cannot be listed")

    def grid(self, column: int, limit: int = 1000) -> None:  # noqa: ARG002  (as in Space)
        """Return None: a box is continuous."""
        return

    def to_json(self, config: Config) -> dict[str, Any]:
        """Return the checked config as JSON: the source of the vector, not its coordinates."""
        return {"x": self._read(config).source.to_json()}

    def from_json(self, obj: Any) -> dict[str, Any]:
        """Return the config that `to_json` wrote, checked."""
        if not isinstance(obj, Mapping) or not isinstance(obj.get("x"), Mapping):
            raise SpaceError(f"'x': expected {{'x': {{source}}}}, got {str(obj)[:200]}")
        bounds = {"dim": self.dim, "low": self.low, "high": self.high}
        return {"x": self._read({**obj, "x": vector_from_json({**bounds, **obj["x"]})})}

    def definition(self) -> dict[str, Any]:
        """Return the JSON description that `space_from_definition` and YAML files use."""
        return {"type": "box", "dim": self.dim, "low": self.low, "high": self.high}

    def _read(self, config: Config) -> Vector:
        """Return the checked vector of a config, whose "x" may be any sequence of numbers."""
        if not isinstance(config, Mapping) or set(config) != {"x"}:
            raise SpaceError(
                f"'x': the config of a box is {{'x': vector}}, got {str(config)[:200]}"
            )
        x = config["x"]
        if isinstance(x, Vector):
            if (x.dim, x.low, x.high) != (self.dim, self.low, self.high):
                raise SpaceError(f"'x': {x!r} on [{x.low}, {x.high}] is not of {self!r}")
            return x
        try:
            values = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise SpaceError(f"'x': expected numbers, got {str(x)[:200]}") from None
        if values.shape != (self.dim,):
            raise SpaceError(f"'x': expected {self.dim} numbers, got shape {values.shape}")
        outside = np.flatnonzero(~((self.low <= values) & (values <= self.high)))
        if outside.size:
            i = outside[0]
            raise SpaceError(f"'x[{i}]': {values[i]} is outside [{self.low}, {self.high}]")
        half = (self.high - self.low) / 2
        return self.vector(Dense(np.clip((values - (self.low + half)) / half, -1.0, 1.0)))

    def _rows(self) -> NDArray[np.uint64]:
        return np.arange(self.dim, dtype=np.uint64)

    def _inside(self, U: Any) -> Array:
        """Rows clipped to the cube, NaN as 1/2."""
        self._needs_columns()
        inside: Array = np.clip(np.asarray(U, dtype=np.float64), 0.0, 1.0)
        if inside.ndim != 2 or inside.shape[1] != self.dim:
            raise SpaceError(f"expected rows of {self.dim} columns, got shape {inside.shape}")
        inside[np.isnan(inside)] = 0.5
        return inside

    def _needs_columns(self) -> None:
        if not self.dense:
            raise SpaceError(
                f"{self!r} has {self.dim:,} dimensions; this needs one column each (at most "
                f"{LARGEST_DENSE:,}); use method 'bins', 'rembo' or 'random'"
            )
