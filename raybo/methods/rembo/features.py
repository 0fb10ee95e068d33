"""What a kernel of an embedding looks at: features of z that are computed from its image.

With x the image of z in [-1, 1]^D: clip(A z), its discrete coordinates moved to their values.

Features       Meaning                                      Source
images         x itself                                     Wang et al. (2013), section 3.2
indicators     which value each discrete coordinate has     Wang et al. (2013), section 3.2
Warped         x projected to the span of A, and moved      Binois, Ginsbourger, Roustant (2015)
               outwards by its distance from there

All are equal at two points z that have the same image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raybo.errors import MethodError
from raybo.lazy import Tensor, torch
from raybo.methods.rembo.embedding import Embedding
from raybo.space.any_space import AnySpace

Features = Callable[[Tensor], Tensor]  # (n, d) -> (n, p)

MOST_VALUES = 1000  # of a column with indicators: each value takes a feature


def images(embedding: Embedding, columns: Sequence[int]) -> Features:
    """Coordinates of the image in [-1, 1], at some of the columns that models look at: (n, m)."""
    chosen = list(columns)
    if embedding.discrete:
        return lambda Z: _snapped(embedding, Z)[:, chosen]
    rows = torch.as_tensor(embedding.rows[chosen])
    return lambda Z: clip_image(Z, rows)


def indicators(embedding: Embedding, columns: Sequence[int]) -> Features:
    """One feature per value of `columns`; the squared distance is the number that differ."""
    chosen = [embedding.space.columns[i] for i in columns]
    sizes = value_counts(embedding.space, columns)
    offsets = np.cumsum([0, *sizes[:-1]])

    def features(Z: Tensor) -> Tensor:
        U = embedding.images(Z.detach().numpy())
        values = np.stack([c.indices(U[:, i]) for i, c in zip(columns, chosen, strict=True)], 1)
        found = np.zeros((len(U), sum(sizes)))
        np.put_along_axis(found, values.astype(int) + offsets, math.sqrt(0.5), axis=1)
        return torch.as_tensor(found)

    return features


def warped_images(embedding: Embedding) -> Features:
    """The warped images of `Warped`: (n, d)."""
    warp = Warped(torch.as_tensor(embedding.rows))
    if embedding.discrete:
        return lambda Z: warp.at(Z @ warp.rows.T, _snapped(embedding, Z))
    return warp


@dataclass(frozen=True, eq=False)
class Warped:
    """The warping Psi of Binois, Ginsbourger, Roustant (2015), in coordinates of the span of A.

    Notes
    -----
    With x = clip(A z) and p(x) its orthogonal projection to the span of A: where nothing is
    clipped, Psi(z) = A z. Elsewhere the ray through p(x) leaves the cube at the pivot
    v = p(x) / max |p(x)_i|, and Psi(z) = v + |x - v| v / |v|: as far out as the image is away
    from the pivot. Psi(z) lies in the span of A, so d coordinates hold it and all distances.
    """

    rows: Tensor  # (m, d): of A, m >= d

    @cached_property
    def _basis(self) -> Tensor:
        Q: Tensor = torch.linalg.qr(self.rows)[0]
        return Q

    def __call__(self, Z: Tensor) -> Tensor:
        """Features (n, d) of Z (n, d)."""
        return self.at(Z @ self.rows.T, clip_image(Z, self.rows))

    def at(self, unclipped: Tensor, x: Tensor) -> Tensor:
        """Features (n, d) of the images x (n, m) of the points A z = `unclipped`."""
        Q = self._basis
        back = x @ Q  # p(x) in orthonormal coordinates of the span
        # 1e-12 and 1e-18 keep the value and the gradient at the origin finite.
        size = (back @ Q.T).abs().amax(1, keepdim=True).clamp_min(1e-12)
        length = back.norm(dim=1, keepdim=True).clamp_min(1e-12)
        along = back / length
        pivot = length / size  # |v|
        # |x - v|^2 = |x|^2 - 2 <p(x), v> + |v|^2, since v lies in the span.
        gap = x.square().sum(1, keepdim=True) - 2.0 * length * pivot + pivot.square()
        pushed = along * (pivot + gap.clamp_min(1e-18).sqrt())
        inside = (unclipped.abs() <= 1.0).all(1, keepdim=True)
        return torch.where(inside, unclipped @ Q, pushed)


def clip_image(Z: Tensor, rows: Tensor) -> Tensor:
    """clip(A z) for the given rows of A: (n, m)."""
    return (Z @ rows.T).clamp(-1.0, 1.0)


def value_counts(space: AnySpace, columns: Sequence[int]) -> list[int]:
    """Number of values of each of the discrete `columns`."""
    return [int(space.columns[i].parameter.cardinality or 0) for i in columns]


def require_few_values(space: AnySpace) -> None:
    """Refuse a space with columns of too many values for `indicators`."""
    grids = [c.parameter.grid for c in space.columns] if space.dense else [None]
    if any(grid is None or grid.size > MOST_VALUES for grid in grids):
        raise MethodError(
            f"kernel 'categorical' needs columns of at most {MOST_VALUES} values each, and this "
            "space has others; use kernel 'mixed'"
        )


def _snapped(embedding: Embedding, Z: Tensor) -> Tensor:
    return torch.as_tensor(2.0 * embedding.images(Z.detach().numpy()) - 1.0)
