"""One random embedding: from a point z of a small box to a point of the space.

The image of z is clip(A z), in [-1, 1]^D, with a matrix A of independent standard normal entries.
Row i of A is a pure function of a seed and i, so A is never stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array, Bools, Indices
from raybo.errors import MethodError
from raybo.methods.base import Data, Memo, Proposal
from raybo.methods.feasibility import Feasibility, feasibility
from raybo.methods.model import unordered_columns
from raybo.space.allowed import Whole, sample
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.design import allowed_element, sobol, sobol_point
from raybo.space.vector import Embedded, gaussian_rows
from raybo.surrogate.kernels.stationary import Matern52

# Rows of A that stand for all rows of a box, so that 10^12 dimensions cost what 100 cost. The root
# mean square distance of two images is then known to a few percent.
SAMPLED_ROWS = 100


@dataclass(frozen=True)
class Embedding:
    """The embedding of the small box [-bound, bound]^d into a space that a seed draws."""

    space: AnySpace
    d: int
    seed: int
    bound: float  # half the width of the small box

    @classmethod
    def of_lane(
        cls, space: AnySpace, d: int, bound: float, study_seed: int, lane: int
    ) -> Embedding:
        """Return the embedding of one lane of a study."""
        state = np.random.SeedSequence([study_seed, lane]).generate_state(1, np.uint64)
        return cls(space, d, int(state[0]) >> 1, bound)  # 63 bits, which JSON can hold

    @cached_property
    def columns(self) -> Indices:
        """Coordinates whose rows of A a model looks at: all, or a fixed random sample."""
        dim = self.space.dim
        most = max(SAMPLED_ROWS, 4 * self.d)
        if dim <= most or not isinstance(self.space, Box):
            return np.arange(dim)
        return np.random.default_rng(self.seed).choice(dim, most, replace=False)

    @cached_property
    def rows(self) -> Array:
        """Rows of A at `columns`: (m, d)."""
        return gaussian_rows(self.seed, self.columns, self.d)

    @cached_property
    def _all_rows(self) -> Array:
        return gaussian_rows(self.seed, np.arange(self.space.dim), self.d)

    @cached_property
    def discrete(self) -> bool:
        """Whether some columns of the space have a finite number of values."""
        return not isinstance(self.space, Box) and any(
            c.parameter.grid is not None for c in self.space.columns
        )

    @cached_property
    def unordered(self) -> tuple[int, ...]:
        """Columns of the space whose values have no order."""
        return () if isinstance(self.space, Box) else unordered_columns(self.space)

    def images(self, Z: Array) -> Array:
        """Return the rows (n, D) of the unit cube that the rows of Z (n, d) map to, snapped."""
        x = np.clip(Z @ self._all_rows.T, -1.0, 1.0)
        return self.space.snap((x + 1.0) / 2.0)

    def from_cube(self, U: Array) -> Array:
        """Return the points of the small box at the points U of the unit cube."""
        return (2.0 * U - 1.0) * self.bound

    def to_cube(self, Z: Array) -> Array:
        """Return the points of the unit cube at the points Z of the small box."""
        return (Z / self.bound + 1.0) / 2.0

    def design(self, index: int) -> Array:
        """Return element `index` of a scrambled Sobol sequence in the small box: (d,).

        Where only some points of the space are allowed, only elements with such images count. If
        none is found the study moves the image to a point that is allowed.
        """
        box, element = Box(self.d), None
        if self.space.constrained:
            element = allowed_element(
                lambda start, n: sobol(box, n, self.seed, start), self.allowed, index
            )
        return self.from_cube(sobol_point(box, index, self.seed) if element is None else element)

    def allowed(self, U: Array) -> Bools:
        """Return which points U (n, d) of the unit cube have images that are allowed."""
        return self.space.allowed(self.images(self.from_cube(U)))

    def region(self, data: Data, n: int, rng: np.random.Generator, n_best: int = 3) -> Region:
        """Return the small box, with n starts spread over it and n near the best z of `data`."""
        near = around(self.to_cube(data.best_rows(n_best)), n, rng)
        if self.space.constrained:
            over = sample(Whole(self.d, self.allowed), n, rng, self.to_cube(data.X))
        else:
            over = spread(self.d, n, rng)
        edge = np.full(self.d, self.bound)
        starts = self.from_cube(np.concatenate([over, near]))
        return Region(-edge, edge, starts, walled=self.space.constrained)

    def proposal(self, z: Array, memo: Mapping[str, Any]) -> Proposal:
        """Propose the image of z; the memo holds z and the share of coordinates clipped."""
        clipped = float(np.mean(np.abs(self.rows @ z) > 1.0))
        noted = {"z": z.tolist(), "clipped": round(clipped, 4), **memo}
        if isinstance(self.space, Box):
            config = {"x": self.space.vector(Embedded(self.seed, tuple(z)))}
            return Proposal(config=config, memo=noted)
        return Proposal(x=self.images(z[None])[0], memo=noted)

    def data(self, data: Data) -> Data:
        """Return the data of the points of this embedding, with z in place of their rows."""
        return data.only(lambda memo: len(memo.get("z", ())) == self.d, self._points)

    def success(self, data: Data) -> Feasibility:
        """What the points z in `data` say of where trials succeed."""
        return feasibility(Matern52(self.d, scaled=True), data)

    def _points(self, memos: Sequence[Memo]) -> Array:
        return np.array([memo["z"] for memo in memos], dtype=np.float64).reshape(-1, self.d)


def require_embeddable(d: int | None, space: AnySpace) -> None:
    """Refuse an embedding of more dimensions than the space has."""
    if d is not None and d > space.dim:
        raise MethodError(
            f"d must be at most the dimension of the space, {space.dim}, got {d}; "
            "an embedding is smaller than what it is embedded in"
        )
