"""What the kernels of a random embedding look at: a point z as the features of its image.

A kernel of REMBO is an ordinary kernel on features of z, with x = clip(A z) the image of z in the
cube [-1, 1]^D (Wang et al. 2013, section 3.2; Binois et al. 2015 for the warped one):

Kernel    Features                      Same where the clipped images are the same
low       z itself                      no
high      x                             yes
warped    x back in the span of A, and  yes
          pushed out by its distance
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from raybo.surrogate.kernels.base import Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import Matern52


@dataclass(frozen=True, eq=False)
class Clipped:
    """Coordinates clip(A z) of the image, divided by the root of their number.

    The division makes distances root mean squares over the coordinates: a sample of the rows of
    a tall A then gives nearly the distances of all of them.
    """

    rows: Tensor  # (m, d): of A

    def __call__(self, Z: Tensor) -> Tensor:
        """Features (n, m) of Z (n, d)."""
        return image(Z, self.rows) / math.sqrt(len(self.rows))


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
        """Features (n, d) of Z (n, d), divided by the root of the number of rows."""
        return self.warp(Z @ self.rows.T, image(Z, self.rows))

    def warp(self, outside: Tensor, x: Tensor) -> Tensor:
        """Features (n, d) of images x (n, m) of the points A z = `outside`."""
        Q = self._basis
        back = x @ Q  # p(x) in orthonormal coordinates of the span
        size = (back @ Q.T).abs().amax(1, keepdim=True).clamp_min(1e-12)
        length = back.norm(dim=1, keepdim=True).clamp_min(1e-12)
        along = back / length
        pivot = length / size  # |v|
        # |x - v|^2 = |x|^2 - 2 <p(x), v> + |v|^2, since v lies in the span.
        gap = x.square().sum(1, keepdim=True) - 2.0 * length * pivot + pivot.square()
        pushed = along * (pivot + gap.clamp_min(1e-18).sqrt())
        inside = (outside.abs() <= 1.0).all(1, keepdim=True)
        psi = torch.where(inside, outside @ Q, pushed)
        return psi / math.sqrt(len(self.rows))


def image(Z: Tensor, rows: Tensor) -> Tensor:
    """clip(A z) for the given rows of A: (n, m)."""
    return (Z @ rows.T).clamp(-1.0, 1.0)


@dataclass(frozen=True)
class LearntRows:
    """Matern-5/2 on clip(B z), the n_rows rows of B hyperparameters like the length-scales.

    The objective of an embedding is h(clip(<a_1, z>), clip(<a_2, z>), ...) with the rows a_i of A
    at the few coordinates that matter, and nobody knows which these are. Here they are looked for
    in R^d instead of among the D rows, under the prior that A was drawn from.
    """

    dim: int  # d
    n_rows: int

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Length-scales, and the exponentials of the entries of B."""
        # LogNormal(1, 1) as a density over exp(b) is the standard normal density over b.
        rows = Hyper(
            "rows",
            (self.n_rows, self.dim),
            math.exp(-4.0),
            math.exp(4.0),
            1.0,
            LogNormal(1.0, 1.0),
        )
        return (*Matern52(self.n_rows).hypers, rows)

    def features(self, Z: Tensor, theta: Theta) -> Tensor:
        """What the Matern kernel is of: clip(B z) / 2 (n, n_rows)."""
        return 0.5 * image(Z, theta["rows"].log())

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        return Matern52(self.n_rows)(self.features(X, theta), self.features(Z, theta), theta)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:  # noqa: ARG002
        """Variances (n,)."""
        return X.new_ones(len(X))
