"""Cylindrical kernel (Oh, Gavves, Welling 2018): a kernel on radii times a kernel on directions.

The unit cube is read as [-1, 1]^d inside the ball of radius R = sqrt(d) around its centre.

Directions mean nothing at the centre, and next to it a function that is smooth in x hardly depends
on them, while the paper's kernel has it jump there. Where they fade, a direction at radius r has
the length r / sqrt(r^2 + fade^2): it is x / sqrt(|x|^2 + fade^2), smooth in x everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from raybo.surrogate.kernels.base import Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import VARIANCE_BOUNDS, matern52

CENTRE = 1e-9  # radii below, of R, are the centre: no direction can be read off such a point
_SPIKE = 0.1  # standard deviation of the spike: narrow, but a chain can leave it


@dataclass(frozen=True)
class Gamma:
    """Prior value^(shape - 1) exp(-value); draws divided by their sum are Dirichlet(shape)."""

    shape: float

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value)."""
        return (self.shape - 1.0) * log_value - log_value.exp()


@dataclass(frozen=True)
class SpikeAndSlab:
    """Prior of log(value): half N(0, 0.1^2), which is no warping, half flat over a range.

    Supplement, section 2, after Ishwaran et al. (2005).
    """

    width: float

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value)."""
        peak = math.log(math.sqrt(2.0 / math.pi) / _SPIKE)  # of a half-normal: one side is allowed
        spike = peak - 0.5 * (log_value / _SPIKE) ** 2
        return torch.logaddexp(spike, torch.full_like(spike, -math.log(self.width))) - log_value


@dataclass(frozen=True)
class Horseshoe:
    """Prior of log(value), most of it near none: density log(1 + 2 (scale / value)^2).

    That of the authors' code, a bound on the horseshoe (Carvalho, Polson, Scott 2010, theorem 1).
    """

    scale: float

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value)."""
        ratio = self.scale * (-log_value).exp()
        return torch.log(torch.log1p(2.0 * ratio**2)) - log_value


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
    fades: bool = False  # whether directions fade towards the centre; not in the paper

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Variance, length-scale of the warped radius, angular weights, and the warping."""
        hypers: tuple[Hyper, ...] = (
            Hyper("variance", (), *VARIANCE_BOUNDS, 1.0, LogNormal(1.0, 1.0)),
            # Of R; the flat density over (0, 2R) is that of the authors' code.
            Hyper("lengthscale", (), 0.02, 2.0, 1.0),
            # With shape 1, uniform on the simplex, a fit would leave one weight alone.
            Hyper("weights", (self.degree + 1,), 1e-3, 20.0, 1.0, Gamma(2.0)),
        )
        if self.fades:
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
        return self.radial(r, s, theta) * self.angular(r, s, cosines, theta)

    def radial(self, r: Tensor, s: Tensor, theta: Theta) -> Tensor:
        """K_r times the variance (..., n, m) at radii r (n,) and s (m,), both divided by R."""
        r, s = self.warped(r, theta), self.warped(s, theta)
        lengthscale = theta["lengthscale"][..., None, None]
        gap = (r[..., :, None] - s[..., None, :]) / lengthscale
        return matern52(gap.square()) * theta["variance"][..., None, None]  # eq. 8

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
        total = total * x + c
    return total
