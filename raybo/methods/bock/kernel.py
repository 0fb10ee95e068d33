"""Cylindrical kernels: a kernel on radii times a kernel on directions.

Oh, Gavves, Welling (2018), section 3.2. The unit cube is read as [-1, 1]^d inside the ball of
radius R = sqrt(d) around its centre.

At the centre there is no direction, and beside it a function that is smooth in x hardly depends on
the direction, while the paper's kernel has it jump there. Where directions fade, a direction at
radius r has the length r / sqrt(r^2 + fade^2): it is x / sqrt(|x|^2 + fade^2), smooth in x
everywhere, and a row at the centre is a row like the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from raybo.lazy import Tensor, torch
from raybo.methods.bock.priors import Gamma, Horseshoe, SpikeAndSlab
from raybo.surrogate.gp import NOISE
from raybo.surrogate.kernels.base import Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import VARIANCE_BOUNDS
from raybo.surrogate.linalg import with_slope

CENTRE = 1e-9  # radii below, of R, are the centre: such a point has no direction
NOISE_HYPER = Hyper(NOISE, (), 1e-6, 1.0, 1e-2, Horseshoe(0.1))  # the authors' code


@dataclass(frozen=True)
class Cylindrical:
    """variance * K_r(|x|, |z|) * K_a(x/|x|, z/|z|), eq. 6.

    K_r is Matern-5/2 on warped radii (eq. 8), K_a = sum_p c_p (a'b)^p with c the weights divided
    by their sum (eq. 7), so that K_a(a, a) = 1. Where directions fade, K_a is that of directions
    of their length, divided by the deviations, so that K_a(a, a) = 1 again. In a batch of
    hyperparameters the batch dimensions come first: scalars (s,), weights (s, degree + 1),
    covariances (s, n, m).
    """

    dim: int
    degree: int = 3  # P
    warp: bool = True
    fades: bool = False  # whether directions fade towards the centre

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Variance, length-scale of the warped radius, angular weights, fading and warping."""
        hypers: tuple[Hyper, ...] = (
            Hyper("variance", (), *VARIANCE_BOUNDS, 1.0, LogNormal(1.0, 1.0)),
            # Of R; the flat density over (0, 2R) is that of the authors' code.
            Hyper("lengthscale", (), 0.02, 2.0, 1.0),
            # With shape 1, uniform on the simplex, a fit would leave one weight alone.
            Hyper("weights", (self.degree + 1,), 1e-3, 20.0, 1.0, Gamma(2.0)),
        )
        if self.fades:
            # Of R, with the prior of the noise: little fading unless the data show it.
            hypers = (*hypers, Hyper("fade", (), 1e-3, 1.0, 0.03, Horseshoe(0.1)))
        if not self.warp:
            return hypers
        slab = SpikeAndSlab(math.log(2.0))
        # Concave, alpha <= 1 <= beta, as in the authors' code; the supplement has it reversed.
        return (
            *hypers,
            Hyper("alpha", (), 0.5, 1.0, 0.95, slab),
            Hyper("beta", (), 1.0, 2.0, 1.05, slab),
        )

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m); a row at the centre takes the direction of the diagonal."""
        (r, a), (s, b) = cylinder(X), cylinder(Z)
        return self.covariance(r, s, a @ b.T, theta)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return X.new_ones(len(X)) * theta["variance"][..., None]

    def covariance(self, r: Tensor, s: Tensor, cosines: Tensor, theta: Theta) -> Tensor:
        """Covariances (..., n, m) at radii r (n,), s (m,), and products (n, m) of directions."""
        return self.radial(r, s, theta) * self.angular(r, s, cosines, theta)  # eq. 6

    def radial(self, r: Tensor, s: Tensor, theta: Theta) -> Tensor:
        """K_r times the variance (..., n, m) at radii r (n,) and s (m,), both divided by R."""
        scale = math.sqrt(5.0) / theta["lengthscale"][..., None]
        r, s = self.warped(r, theta) * scale, self.warped(s, theta) * scale
        K = matern52_of_gap(r[..., :, None] - s[..., None, :])  # eq. 8
        return K * theta["variance"][..., None, None]

    def angular(self, r: Tensor, s: Tensor, cosines: Tensor, theta: Theta) -> Tensor:
        """K_a (..., n, m) at radii r (n,), s (m,), and products (n, m) of directions."""
        weights = theta["weights"]
        weights = weights / weights.sum(-1, keepdim=True)
        if not self.fades:
            return polynomial(cosines, weights)  # eq. 7
        (u, f), (v, g) = (self._faded(radii, weights, theta) for radii in (r, s))
        return polynomial(u * v.mT * cosines, weights) * f * g.mT

    def _faded(self, r: Tensor, weights: Tensor, theta: Theta) -> tuple[Tensor, Tensor]:
        """Lengths (..., n, 1) of directions at radii r (n,), and what makes their variances 1."""
        r = r[:, None]
        u = r * (r.square() + theta["fade"][..., None, None].square()).rsqrt()
        return u, polynomial(u.square(), weights).rsqrt()

    def warped(self, r: Tensor, theta: Theta) -> Tensor:
        """Cumulative distribution function of Kumaraswamy at r, or r itself."""
        if not self.warp:
            return r
        r = r.clamp(CENTRE, 1.0 - 1e-12)  # the derivatives are infinite at 0 and undefined at 1
        alpha, beta = theta["alpha"][..., None], theta["beta"][..., None]
        return 1.0 - (1.0 - r**alpha) ** beta  # eq. 8


def cylinder(X: Tensor) -> tuple[Tensor, Tensor]:
    """T of eq. 5: radii (n,), divided by R, and directions (n, d) of rows of the unit cube."""
    dim = X.shape[1]
    X = 2.0 * X - 1.0
    sq = X.square().sum(1)
    off = sq > CENTRE**2 * dim
    r = torch.where(off, sq, 1.0).sqrt()
    a = torch.where(off[:, None], X / r[:, None], 1.0 / math.sqrt(dim))
    return torch.where(off, r / math.sqrt(dim), 0.0), a


def polynomial(x: Tensor, weights: Tensor) -> Tensor:
    """sum_p c_p x^p (..., n, m) at x (..., n, m) with weights c (..., degree + 1)."""
    *lower, total = (c[..., None, None] for c in weights.unbind(-1))
    for c in reversed(lower):
        total = torch.addcmul(c, total, x)
    return total


def matern52_of_gap(gap: Tensor) -> Tensor:
    """Matern-5/2 correlation (1 + t + t^2/3) exp(-t) with t = |gap|, smooth in the gap.

    In one dimension it needs no root of a square, and covariances are most of the time of a
    proposal: this and `polynomial` make few passes over them.
    """
    needs_slope = torch.is_grad_enabled()
    with torch.no_grad():
        t = gap.abs()
        decay = torch.exp(-t)
        risen = 1.0 + t
        value = torch.addcmul(risen, t, t, value=1.0 / 3.0) * decay
        if not needs_slope:
            return value
        slope = risen * decay * gap * (-1.0 / 3.0)
    return with_slope(gap, value, slope)
