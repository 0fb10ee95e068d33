"""Gaussian processes on the cylinder, one for each sample of the hyperparameters, in one batch.

A point at the centre of the cube has no direction. A datum there takes the direction of the point
that is predicted (Oh, Gavves, Welling 2018, section 3.3): it cannot be a row of one Cholesky
factor, and enters by block inversion, query by query. Where directions fade towards the centre, it
is a row like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from raybo.arrays import Array
from raybo.methods.bock.kernel import Cylindrical, Horseshoe, cylinder
from raybo.surrogate.gp import NOISE, Posterior
from raybo.surrogate.kernels.base import Hyper, Theta
from raybo.surrogate.linalg import cholesky

NOISE_HYPER = Hyper(NOISE, (), 1e-6, 1.0, 1e-2, Horseshoe(0.1))  # the authors' code


@dataclass(frozen=True)
class CylinderData:
    """Rows of the cube and their values; those at the centre are set apart unless they fade."""

    kernel: Cylindrical
    X: Tensor  # (n, d), without those set apart
    y: Tensor  # (n,), or (s, n): one row per sample of the hyperparameters
    at_centre: Tensor | None = None  # (), or (s,): mean of the values at the centre

    @classmethod
    def of(cls, kernel: Cylindrical, X: Tensor, y: Tensor) -> CylinderData:
        """Data of rows (n, d) with values (n,) or (s, n)."""
        off = (cylinder(X)[0] > 0.0) | kernel.fades
        at_centre = None if bool(off.all()) else y[..., ~off].mean(-1)
        return cls(kernel, X[off], y[..., off], at_centre)

    @property
    def least(self) -> Tensor:
        """Least value."""
        least = self.y.min()
        return least if self.at_centre is None else torch.minimum(least, self.at_centre)

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Hyperparameters of the model: the kernel's and the noise."""
        return (*self.kernel.hypers, NOISE_HYPER)

    @property
    def bounds(self) -> Array:
        """Bounds (h, 2) of the flat log-hyperparameters."""
        return np.log([(h.lower, h.upper) for h in self.hypers for _ in range(math.prod(h.shape))])

    def theta(self, logs: Array) -> dict[str, Tensor]:
        """Hyperparameters by name, batched over the rows of flat logarithms (s, h)."""
        sizes = [math.prod(h.shape) for h in self.hypers]
        parts = torch.split(torch.as_tensor(logs).exp(), sizes, dim=1)
        return {
            h.name: p.reshape(len(logs), *h.shape) for h, p in zip(self.hypers, parts, strict=True)
        }

    def logs(self, theta: Theta) -> Array:
        """Flat logarithms (1, h) of one set of hyperparameters."""
        parts = [theta[h.name].reshape(-1).log() for h in self.hypers]
        return torch.cat(parts)[None].cpu().numpy()


class HyperDensity:
    """Log posterior density of log-hyperparameters, up to a constant: (k, h) -> (k,).

    Notes
    -----
    The likelihood is that of the rows X of the data, with the constant mean integrated out under
    a flat prior (Rasmussen & Williams 2006, eq. 2.45 up to a constant).
    """

    def __init__(self, data: CylinderData) -> None:
        self._data = data
        self._r, a = cylinder(data.X)
        self._cosines = a @ a.T
        self._sides = torch.stack([data.y, torch.ones_like(data.y)], dim=1)

    def __call__(self, logs: Array) -> Array:
        """Densities (k,)."""
        data, n = self._data, len(self._r)
        theta = data.theta(logs)
        K = data.kernel.covariance(self._r, self._r, self._cosines, theta)
        K.diagonal(dim1=1, dim2=2).add_(theta[NOISE][:, None])
        chol, info = torch.linalg.cholesky_ex(K)
        half = torch.linalg.solve_triangular(chol, self._sides.expand(len(K), n, 2), upper=False)
        yy, ones = half.square().sum(1).T
        cross = half.prod(2).sum(1)
        log_det = 2.0 * chol.diagonal(dim1=1, dim2=2).log().sum(1)
        value = -0.5 * (yy - cross.square() / ones + log_det + ones.log()) + self._prior(logs)
        return torch.where((info == 0) & value.isfinite(), value, -torch.inf).numpy()

    def _prior(self, logs: Array) -> Tensor:
        sizes = [math.prod(h.shape) for h in self._data.hypers]
        flat = torch.as_tensor(logs)
        total = flat.sum(1)  # of the change from values to logarithms
        for h, part in zip(self._data.hypers, torch.split(flat, sizes, dim=1), strict=True):
            if h.prior is not None:
                total = total + h.prior.log_density(part).sum(1)
        return total


@dataclass(frozen=True)
class CylinderGP:
    """Processes given their data; make them with `CylinderGP.of`."""

    data: CylinderData
    theta: Theta  # batched
    boundary: bool  # whether every query also sees a datum without value at R times its direction
    mean: Tensor  # (s,)
    inverse: Tensor  # (s, n, n): of the Cholesky factor of K(D, D) + noise I
    alpha: Tensor  # (s, n): (K + noise I)^-1 (y - mean)

    @classmethod
    def of(
        cls,
        data: CylinderData,
        theta: Theta,
        *,
        boundary: bool = False,
        mean: Tensor | None = None,
    ) -> CylinderGP:
        """Condition on the data; the mean is the likeliest unless it is given."""
        eye = torch.eye(len(data.X), dtype=torch.float64)
        K = data.kernel(data.X, data.X, theta) + theta[NOISE][:, None, None] * eye
        chol = torch.stack([cholesky(k) for k in K])
        inverse = torch.linalg.solve_triangular(chol, eye.expand_as(K), upper=False)
        y = data.y.expand(len(K), -1)
        if mean is None:
            rows = inverse.sum(2)
            mean = (rows * _apply(inverse, y)).sum(1) / rows.square().sum(1)
        alpha = _apply(inverse.mT, _apply(inverse, y - mean[:, None]))
        return cls(data, theta, boundary, mean, inverse, alpha)

    def posterior(self, X: Tensor) -> Posterior:
        """Posterior (s, m) of the function at rows X (m, d) of the cube.

        Notes
        -----
        Supplement, eq. 10: with A = K(D, D) + noise I, b = K(D, 0) in the direction of the query
        and c = k(0, 0) + noise - b' A^-1 b, the datum 0 adds g (y_0 - m - b' A^-1 (y - m)) / c to
        the mean and takes g^2 / c off the variance, g = k(0, x) - b' A^-1 k(D, x).
        """
        kernel, theta, data = self.data.kernel, self.theta, self.data
        (r, a), (rows, directions) = cylinder(X), cylinder(data.X)
        cosines = directions @ a.T
        K = kernel.covariance(rows, r, cosines, theta)
        half = self.inverse @ K
        mean = self.mean[:, None] + (K * self.alpha[..., None]).sum(1)  # eq. 2
        variance = theta["variance"][:, None] - half.square().sum(1)  # eq. 3
        seen: tuple[Tensor, Tensor, Tensor] | None = None
        if data.at_centre is not None:
            b, g, c, half_b = self._extra(0.0, rows, r, cosines, half)
            surprise = data.at_centre.expand(len(mean))[:, None] - self.mean[:, None]
            surprise = surprise - (b * self.alpha[..., None]).sum(1)
            mean = mean + g / c * surprise  # eq. 10
            variance = variance - g.square() / c
            seen = g, c, half_b
        if self.boundary:
            variance = variance - self._boundary(rows, r, cosines, half, seen)
        return Posterior(mean, variance.clamp_min(1e-18))

    def _extra(
        self, radius: float, rows: Tensor, r: Tensor, cosines: Tensor, half: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A datum at a radius in the direction of each query: b, g, c of eq. 10, and half of b."""
        kernel, theta = self.data.kernel, self.theta
        at, same = r.new_full((1,), radius), r.new_ones(1, 1)
        b = kernel.covariance(rows, at, cosines, theta)
        half_b = self.inverse @ b
        g = kernel.covariance(at, r, same, theta)[:, 0] - (half_b * half).sum(1)
        c = (theta["variance"] + theta[NOISE])[:, None] - half_b.square().sum(1)
        return b, g, c, half_b

    def _boundary(
        self,
        rows: Tensor,
        r: Tensor,
        cosines: Tensor,
        half: Tensor,
        seen: tuple[Tensor, Tensor, Tensor] | None,
    ) -> Tensor:
        """What the datum at R takes off the variance, after the one at the centre (footnote 4)."""
        _, g, c, half_b = self._extra(1.0, rows, r, cosines, half)
        if seen is not None:
            g_0, c_0, half_0 = seen
            ends = r.new_tensor([0.0]), r.new_tensor([1.0])
            across = self.data.kernel.radial(*ends, self.theta)[:, 0] - (half_0 * half_b).sum(1)
            g, c = g - g_0 * across / c_0, c - across.square() / c_0
        return g.square() / c

    def first(self, n_samples: int) -> CylinderGP:
        """The processes of the first samples alone."""
        keep = slice(n_samples)
        data = self.data
        if data.y.ndim == 2:
            centre = None if data.at_centre is None else data.at_centre.expand(len(data.y))[keep]
            data = replace(data, y=data.y[keep], at_centre=centre)
        theta = {name: value[keep] for name, value in self.theta.items()}
        return CylinderGP(
            data, theta, self.boundary, self.mean[keep], self.inverse[keep], self.alpha[keep]
        )

    def fitted_min(self) -> Tensor:
        """Least posterior mean (s,) over the data."""
        fitted = self.data.y - self.theta[NOISE][:, None] * self.alpha
        least = fitted.min(1).values
        if self.data.at_centre is None:
            return least
        return torch.minimum(least, self.data.at_centre)

    def told_mean(self, X: Tensor) -> CylinderGP:
        """The processes with pending rows told their own posterior mean.

        The variance shrinks around them. The mean stays as it is, but for what a datum at the
        centre, which changes its direction with the query, makes of them.
        """
        if not len(X):
            return self
        mean = self.posterior(X).mean
        pending = CylinderData.of(self.data.kernel, X, mean)
        own = self.data.y.expand(len(mean), -1)
        at_centre = self.data.at_centre
        data = replace(
            self.data,
            X=torch.cat([self.data.X, pending.X]),
            y=torch.cat([own, pending.y], dim=1),
            at_centre=pending.at_centre if at_centre is None else at_centre,
        )
        return CylinderGP.of(data, self.theta, boundary=self.boundary, mean=self.mean)


def _apply(matrix: Tensor, rows: Tensor) -> Tensor:
    """Products (s, n) of matrices (s, n, n) and vectors (s, n)."""
    return (matrix @ rows[..., None])[..., 0]
