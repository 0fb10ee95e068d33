"""One random embedding of REMBO: from z in a small box to a point of the space, and back to z.

Paper       Code             Meaning
A           gaussian_rows    (D, d) standard normal, row i a pure function of (seed, i): not stored
y           z                point of the small box
Y           [-bound, bound]  the small box, bound = sqrt(d) (section 3)
p_X(A y)    images           image in [-1, 1]^D, clipped
s(A y)      images           the same, snapped to the values of discrete columns
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.methods.base import Array, Data, Proposal
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.design import sobol_point
from raybo.space.vector import Embedded, gaussian_rows

SAMPLED_ROWS = 100  # rows of A that stand for all of them: 10^2 and 10^12 dimensions cost alike
CHECKED_DIM = 1000  # up to here two z with one image are told apart from two points


@dataclass(frozen=True)
class Embedding:
    """The embedding of d dimensions into a space that a seed draws."""

    space: AnySpace
    d: int
    seed: int

    @property
    def bound(self) -> float:
        """Half the width of the small box."""
        return math.sqrt(self.d)

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Coordinates whose rows of A the model looks at: all, or a fixed random sample."""
        dim = self.space.dim
        most = max(SAMPLED_ROWS, 4 * self.d)
        if dim <= most or not isinstance(self.space, Box):
            return np.arange(dim)
        return np.random.default_rng(self.seed).choice(dim, most, replace=dim > 10**6)

    @cached_property
    def rows(self) -> Array:
        """Rows of A at `columns`: (m, d)."""
        return gaussian_rows(self.seed, self.columns, self.d)

    @property
    def discrete(self) -> bool:
        """Whether some columns of the space have a finite number of values."""
        return not isinstance(self.space, Box) and any(
            c.parameter.grid is not None for c in self.space.columns
        )

    def images(self, Z: Array) -> Array:
        """Rows of the cube (n, D) that the rows of Z (n, d) stand for, snapped."""
        source = [Embedded(self.seed, tuple(z)).at(_all(self.space.dim)) for z in Z]
        return self.space.snap((np.reshape(source, (len(Z), self.space.dim)) + 1.0) / 2.0)

    def design(self, index: int) -> Array:
        """Element `index` of a scrambled Sobol sequence in the small box: (d,)."""
        return (2.0 * sobol_point(Box(self.d), index, self.seed) - 1.0) * self.bound

    def proposal(self, z: Array, memo: Mapping[str, Any]) -> Proposal:
        """Proposal of the image of z; z and the clipped share of its coordinates are noted."""
        clipped = float(np.mean(np.abs(self.rows @ z) > 1.0))
        noted = {"z": z.tolist(), "clipped": round(clipped, 4), **memo}
        if isinstance(self.space, Box):
            return Proposal(
                config={"x": self.space.vector(Embedded(self.seed, tuple(z)))}, memo=noted
            )
        return Proposal(x=self.images(z[None])[0], memo=noted)

    def data(self, data: Data) -> Data:
        """Data of the rows that belong to this embedding, with z in place of the rows.

        A user's own point has no z. Nor has one that the study drew in place of a duplicate: its
        memo is there, but its row is not the image.
        """
        told = [self._z(m, row) for m, row in zip(data.memos, data.X, strict=True)]
        kept = np.array([z is not None for z in told], dtype=bool)
        pending = [self._z(m, row) for m, row in zip(data.pending_memos, data.pending, strict=True)]
        return replace(
            data,
            X=self._stack(told),
            loss=data.loss[kept],
            failed=data.failed[kept],
            memos=tuple(m for m, keep in zip(data.memos, kept, strict=True) if keep),
            pending=self._stack(pending),
            pending_memos=tuple(
                m for m, z in zip(data.pending_memos, pending, strict=True) if z is not None
            ),
        )

    def _z(self, memo: Mapping[str, Any], row: Array) -> list[float] | None:
        z = memo.get("z")
        if z is None or len(z) != self.d:
            return None
        if 0 < len(row) <= CHECKED_DIM:
            image = self.images(np.array([z]))[0]
            if np.abs(image - row).max() > 1e-6:
                return None
        return list(z)

    def _stack(self, rows: list[list[float] | None]) -> Array:
        return np.reshape([z for z in rows if z is not None], (-1, self.d)).astype(np.float64)

    def is_new(self, z: Array, data: Data) -> bool:
        """Whether neither z nor, where that can be checked, its image is among `data`."""
        if any(np.array_equal(z, other) for other in (*data.X, *data.pending)):
            return False
        if not self.space.dense or self.space.dim > CHECKED_DIM:
            return True
        known = self.images(np.concatenate([data.X, data.pending]))
        return not bool((known == self.images(z[None])).all(1).any())

    def random(self, rng: np.random.Generator) -> Array:
        """Uniform point of the small box: (d,)."""
        return rng.uniform(-self.bound, self.bound, self.d)


def _all(dim: int) -> NDArray[np.uint64]:
    return np.arange(dim, dtype=np.uint64)


def embedding_seed(seed: int, lane: int) -> int:
    """Seed of the matrix of embedding number `lane` of a study: 63 bits, which JSON can hold."""
    state = np.random.SeedSequence([seed, lane]).generate_state(1, np.uint64)
    return int(state[0]) >> 1
