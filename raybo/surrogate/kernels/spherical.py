"""The linear kernel on a sphere.

Doumont, Fan, Maus, Gardner, Moss, Pleiss (2025), "We still don't understand high-dimensional
Bayesian optimization". A linear function has its minimum in a corner of the cube; laid on a sphere
by the inverse of the stereographic projection, it can have it anywhere. The process has dim + 1
weights, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.surrogate.kernels.base import Arrays, Cross, Gradient, Hyper, Theta, Value
from raybo.surrogate.kernels.stationary import Matern52


@dataclass(frozen=True)
class Spherical:
    """variance * P(z) . P(z') with z = (x - middle of the cube) / lengthscale.

    P(z) = (2 z, |z|^2 - 1) / (|z|^2 + 1) is on the unit sphere of dim + 1 dimensions.
    """

    dim: int

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """A length-scale per column and the variance, as of a stationary kernel.

        The paper divides its length-scales by a common one, of which it learns the share of the
        largest that makes sense, about sqrt(dim) as in `lengthscale_prior`.
        """
        return Matern52(self.dim, scaled=True).hypers

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        length = theta["lengthscale"]
        P, Q = (_on_sphere((rows - 0.5) / length, torch.cat) for rows in (X, Z))
        return theta["variance"] * P @ Q.T

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return theta["variance"] * X.new_ones(len(X))

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient."""
        length, variance = theta["lengthscale"], theta["variance"]
        A = (X - 0.5) / length
        P = _on_sphere(A, np.concatenate)
        K = variance * P @ P.T

        def gradient(weights: Array) -> tuple[Array, Array]:
            by_A = _by_plane(A, P, 2.0 * variance * (weights @ P))
            by_variance = (weights * K).sum(keepdims=True).reshape(1)
            by_hypers = np.concatenate([-(by_A * A).sum(0), by_variance])
            return by_hypers, np.asarray(by_A / length)

        return K, gradient

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X."""
        length, variance = theta["lengthscale"], theta["variance"]
        P = variance * _on_sphere((X - 0.5) / length, np.concatenate)

        def covariances(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
            A = (Z - 0.5) / length
            Q = _on_sphere(A, np.concatenate)
            return Q @ P.T, lambda weights: np.asarray(_by_plane(A, Q, weights @ P) / length)

        return covariances


def _on_sphere(A: Value, concatenate: Callable[[list[Value], int], Value]) -> Value:
    """Points (n, dim + 1) of the sphere for points A (n, dim) of the plane."""
    square = (A * A).sum(1)[:, None]
    on_sphere: Value = concatenate([2.0 * A, square - 1.0], 1) / (square + 1.0)
    return on_sphere


def _by_plane(A: Array, P: Array, by_P: Array) -> Array:
    """Derivatives in points of the plane, by those in their points P of the sphere."""
    shrink = np.asarray(1.0 - P[:, -1:])  # 2 / (|z|^2 + 1)
    inner = (by_P[:, :-1] * A).sum(1)[:, None] - by_P[:, -1:]
    return np.asarray(shrink * (by_P[:, :-1] - shrink * inner * A))
