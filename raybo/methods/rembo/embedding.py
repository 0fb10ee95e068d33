"""One random embedding of REMBO: from z in a small box to a point of the space, and back to z.

Paper       Code             Meaning
A           gaussian_rows    (D, d) standard normal, row i a pure function of (seed, i): not stored
y           z                point of the small box
Y           [-bound, bound]  the small box, to the power d
p_X(A y)    images           image in [-1, 1]^D, clipped
s(A y)      images           the same, snapped to the values of discrete columns
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.arrays import Array
from raybo.methods.base import Data, Memo, Proposal
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.design import sobol_point
from raybo.space.vector import Embedded, gaussian_rows

SAMPLED_ROWS = 100  # rows of A that stand for all of them: 10^2 and 10^12 dimensions cost alike
CHECKED_DIM = 1000  # columns; beyond, no two z have the same image in practice
_SAME = 1e-6  # largest difference of an image computed twice, as rows of the cube


@dataclass(frozen=True)
class Embedding:
    """The embedding of d dimensions into a space that a seed draws."""

    space: AnySpace
    d: int
    seed: int
    bound: float  # half the width of the small box

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Coordinates whose rows of A the model looks at: all, or a fixed random sample."""
        dim = self.space.dim
        most = max(SAMPLED_ROWS, 4 * self.d)
        if dim <= most or not isinstance(self.space, Box):
            return np.arange(dim)
        return np.random.default_rng(self.seed).choice(dim, most, replace=False)

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

    @cached_property
    def _all_rows(self) -> Array:
        return gaussian_rows(self.seed, np.arange(self.space.dim), self.d)

    def images(self, Z: Array) -> Array:
        """Rows of the cube (n, D) that the rows of Z (n, d) stand for, snapped."""
        x = np.clip(Z @ self._all_rows.T, -1.0, 1.0)
        return self.space.snap((x + 1.0) / 2.0)

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
        told, X = self._own(data.memos, data.X)
        waiting, pending = self._own(data.pending_memos, data.pending)
        return replace(
            data,
            X=X,
            loss=data.loss[told],
            failed=data.failed[told],
            memos=tuple(data.memos[i] for i in told),
            pending=pending,
            pending_memos=tuple(data.pending_memos[i] for i in waiting),
        )

    def _own(self, memos: tuple[Memo, ...], X: Array) -> tuple[NDArray[np.intp], Array]:
        """Numbers of the rows that have a z, and these z."""
        rows = np.array([i for i, m in enumerate(memos) if len(m.get("z", ())) == self.d], int)
        Z = np.reshape([memos[i]["z"] for i in rows], (len(rows), self.d)).astype(np.float64)
        if self.checked and len(rows):
            true = np.abs(self.images(Z) - X[rows]).max(1) < _SAME
            rows, Z = rows[true], Z[true]
        return rows, Z

    @property
    def checked(self) -> bool:
        """Whether images are compared: with few coordinates all of them may be clipped."""
        return self.space.dense and self.space.dim <= CHECKED_DIM

    def is_new(self, z: Array, data: Data) -> bool:
        """Whether neither z nor, where that is checked, its image is among `data` (with z)."""
        known = np.concatenate([data.X, data.pending])
        if (known == z).all(1).any():
            return False
        if not self.checked:
            return True
        return not bool((np.abs(self.images(known) - self.images(z[None])).max(1) < 1e-12).any())

    def random(self, rng: np.random.Generator) -> Array:
        """Uniform point of the small box: (d,)."""
        return rng.uniform(-self.bound, self.bound, self.d)


def embedding_seed(seed: int, lane: int) -> int:
    """Seed of the matrix of embedding number `lane` of a study: 63 bits, which JSON can hold."""
    state = np.random.SeedSequence([seed, lane]).generate_state(1, np.uint64)
    return int(state[0]) >> 1
