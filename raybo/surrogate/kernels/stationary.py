"""Squared exponential and Matern-5/2 kernels, isotropic or with a length-scale per column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.surrogate.kernels.base import Arrays, Cross, Gradient, Hyper, LogNormal, Theta
from raybo.surrogate.linalg import with_slope

Values = TypeVar("Values", Tensor, Array)

LENGTHSCALE_BOUNDS = (5e-3, 1e3)  # in the unit cube: below the spacing of any data, and flat
VARIANCE_BOUNDS = (1e-4, 1e4)  # from 0.01 to 100 deviations of the standardised losses


def lengthscale_prior(dim: int) -> LogNormal:
    """LogNormal(sqrt2 + ln(d)/2, sqrt3), which grows with the dimension (Hvarfner et al. 2024).

    Distances in the unit cube grow as sqrt(d), and so must length-scales.
    """
    return LogNormal(math.sqrt(2.0) + 0.5 * math.log(dim), math.sqrt(3.0))


def squared_distances(X: Tensor, Z: Tensor) -> Tensor:
    """Squared distances (n, m) by |x|^2 + |z|^2 - 2xz: never an (n, m, d) tensor."""
    # Centring keeps the cancellation error small next to the distances.
    centre = Z.mean(0, keepdim=True).detach()
    X, Z = X - centre, Z - centre
    sq = torch.addmm(Z.square().sum(1), X, Z.T, alpha=-2.0) + X.square().sum(1, keepdim=True)
    return sq.clamp_min(0.0)


def matern52(sq: Tensor) -> Tensor:
    """Matern-5/2 correlation at scaled squared distances; its derivative is finite at 0.

    Notes
    -----
    (1 + r + r^2/3) exp(-r) with r = sqrt(5 sq) (Rasmussen & Williams 2006, eq. 4.17); its
    derivative in sq is -5/6 (1 + r) exp(-r).
    """
    with torch.no_grad():
        value, slope = matern52_and_slope(sq, torch.exp)
    return with_slope(sq, value, slope)


def matern52_and_slope(sq: Values, exp: Callable[[Values], Values]) -> tuple[Values, Values]:
    """Matern-5/2 correlation at scaled squared distances, and its derivative in them.

    Of tensors with torch.exp, of arrays with np.exp. In place: memory takes longer
    than arithmetic.
    """
    r = (5.0 * sq) ** 0.5
    value = exp(-r)
    slope = r
    slope += 1.0
    slope *= value  # (1 + r) exp(-r)
    value *= sq
    value *= 5.0 / 3.0
    value += slope
    slope *= -5.0 / 6.0
    return value, slope


def squared_exponential(sq: Tensor) -> Tensor:
    """Squared exponential correlation exp(-sq/2) at scaled squared distances (eq. 4.9)."""
    return torch.exp(-0.5 * sq)


@dataclass(frozen=True)
class Stationary:
    """variance * correlation(|x - z|^2 / lengthscale^2); use `Matern52` or `SE` to make one."""

    dim: int
    shape: str  # "matern52" or "se"
    ard: bool = True  # a length-scale per column, or one for all
    scaled: bool = False  # whether the variance is a hyperparameter, or 1
    prior: LogNormal | None = None  # of the length-scales; `lengthscale_prior` unless given
    lengthscale: float | None = None  # given instead of fitted

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Length-scales, and the variance if scaled."""
        hypers = [self._lengthscale_hyper]
        if self.scaled:
            hypers.append(Hyper("variance", (), *VARIANCE_BOUNDS, 1.0, LogNormal(1.0, 1.0)))
        return tuple(hypers)

    @property
    def _lengthscale_hyper(self) -> Hyper:
        shape = (self.dim,) if self.ard else ()
        if self.lengthscale is not None:
            return Hyper("lengthscale", shape, *(self.lengthscale,) * 3)
        lower, upper = LENGTHSCALE_BOUNDS
        prior = self.prior or lengthscale_prior(self.dim)
        start = min(max(prior.mode, 2 * lower), upper / 2)
        return Hyper("lengthscale", shape, lower, upper, start, prior)

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        lengthscale = theta["lengthscale"]
        sq = squared_distances(X / lengthscale, Z / lengthscale)
        K = matern52(sq) if self.shape == "matern52" else squared_exponential(sq)
        return K * theta["variance"] if self.scaled else K

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient."""
        length = theta["lengthscale"]
        A = X / length
        A = A - A.mean(0)  # keeps the cancellation error of squared distances small
        size = np.einsum("ij,ij->i", A, A)
        K, slope = self._covariances(A @ A.T, size, size, theta)

        def gradient(weights: Array) -> tuple[Array, Array]:
            W = weights * slope  # symmetric, so the gradient in A is 4 (diag(W1) - W) A
            by_A = 4.0 * (A * W.sum(1)[:, None] - W @ A)
            by_length = -(by_A * A).sum(0)
            parts = [by_length if self.ard else by_length.sum(keepdims=True)]
            if self.scaled:
                parts.append((weights * K).sum(keepdims=True).reshape(1))
            return np.concatenate(parts), by_A / length

        return K, gradient

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X."""
        length = theta["lengthscale"]
        centre = (X / length).mean(0)  # keeps the cancellation error of squared distances small
        A = X / length - centre
        size = np.einsum("ij,ij->i", A, A)

        def covariances(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
            B = Z / length - centre
            K, slope = self._covariances(B @ A.T, np.einsum("ij,ij->i", B, B), size, theta)

            def gradient(weights: Array) -> Array:
                W = weights * slope
                return np.asarray((B * W.sum(1)[:, None] - W @ A) * (2.0 / length))

            return K, gradient

        return covariances

    def _covariances(
        self, products: Array, left: Array, right: Array, theta: Arrays
    ) -> tuple[Array, Array]:
        """Covariances (m, n) of scaled points, and their derivatives in the squared distances.

        Of the points' products (m, n) and their squared lengths (m,) and (n,). In place: at 500
        rows memory takes as long as arithmetic.
        """
        sq = products
        sq *= -2.0
        sq += right
        sq += left[:, None]
        np.maximum(sq, 0.0, out=sq)
        if self.shape == "matern52":
            K, slope = matern52_and_slope(sq, np.exp)
        else:
            K = np.exp(-0.5 * sq)
            slope = -0.5 * K
        if self.scaled:
            K *= theta["variance"]
            slope *= theta["variance"]
        return K, slope

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        ones = X.new_ones(len(X))
        return ones * theta["variance"] if self.scaled else ones


def Matern52(  # noqa: N802  (reads as the kernel it makes)
    dim: int,
    *,
    ard: bool = True,
    scaled: bool = False,
    prior: LogNormal | None = None,
    lengthscale: float | None = None,
) -> Stationary:
    """Matern-5/2 kernel on `dim` columns."""
    return Stationary(dim, "matern52", ard, scaled, prior, lengthscale)


def SE(  # noqa: N802
    dim: int,
    *,
    ard: bool = True,
    scaled: bool = False,
    prior: LogNormal | None = None,
    lengthscale: float | None = None,
) -> Stationary:
    """Squared exponential kernel on `dim` columns."""
    return Stationary(dim, "se", ard, scaled, prior, lengthscale)
