"""Gaussian processes whose datum at the centre takes the direction of the query.

Oh, Gavves, Welling (2018), section 3.3 and supplement, section 1. Such a datum cannot be a row of
one Cholesky factor; it is added for each query by block inversion (supplement, eq. 10). The datum
of BOCK+B, at the boundary in the direction of the query and without a value (footnote 4), is added
in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from raybo.lazy import Tensor, torch
from raybo.methods.bock.kernel import Cylindrical, cylinder
from raybo.surrogate.gp import GP, LEAST_VARIANCE, NOISE, Posterior
from raybo.surrogate.kernels.base import Theta


@dataclass(frozen=True)
class CentreGP:
    """Processes, one for each of s samples of the hyperparameters; make them with `of`."""

    kernel: Cylindrical
    gp: GP  # of the rows off the centre
    at_centre: Tensor | None  # (s,): value of the datum at the centre, where there is one
    boundary: bool  # whether each query has a datum at the boundary

    @classmethod
    def of(
        cls, kernel: Cylindrical, theta: Theta, X: Tensor, y: Tensor, *, boundary: bool = False
    ) -> CentreGP:
        """Condition on values y (n,) of rows X (n, d); equal rows at the centre are averaged."""
        off = off_centre(X)
        gp = GP.of(kernel, theta, X[off], y[off])
        at_centre = None if off.all() else y[~off].mean().expand(len(gp.mean))
        return cls(kernel, gp, at_centre, boundary)

    def posterior(self, X: Tensor) -> Posterior:
        """Posterior (s, m) of the function at rows X (m, d) of the cube.

        Notes
        -----
        Supplement, eq. 10: with A = K(D, D) + noise I, b = K(D, 0) in the direction of the query
        and c = k(0, 0) + noise - b' A^-1 b, the datum 0 adds g (y_0 - m - b' A^-1 (y - m)) / c to
        the mean and takes g^2 / c off the variance, g = k(0, x) - b' A^-1 k(D, x).
        """
        gp, theta = self.gp, self.gp.theta
        (rows, directions), (r, a) = cylinder(gp.X), cylinder(X)
        cosines = directions @ a.T
        query = _Datum.at(self, rows, r, cosines)
        mean = query.mean  # eq. 2
        variance = theta["variance"][:, None] - query.half.square().sum(1)  # eq. 3
        centre = None
        if self.at_centre is not None:
            centre = _Datum.at(self, rows, r.new_zeros(1), cosines)
            g, c = self._gain(query, r, centre, 0.0)
            mean = mean + g / c * (self.at_centre[:, None] - centre.mean)  # eq. 10
            variance = variance - g.square() / c
        if self.boundary:
            edge = _Datum.at(self, rows, r.new_ones(1), cosines)
            g_edge, c_edge = self._gain(query, r, edge, 1.0)
            if centre is not None:  # first seen by the datum at the centre
                across, _ = self._gain(centre, r.new_zeros(1), edge, 1.0)
                g_edge = g_edge - g * across / c
                c_edge = c_edge - across.square() / c
            variance = variance - g_edge.square() / c_edge
        return Posterior(mean, variance.clamp_min(LEAST_VARIANCE))

    def _gain(
        self, query: _Datum, r: Tensor, datum: _Datum, radius: float
    ) -> tuple[Tensor, Tensor]:
        """Covariances g (s, m) of a datum and the query given D, and variances c of the datum."""
        theta = self.gp.theta
        same_direction = self.kernel.radial(r.new_full((1,), radius), r, theta)[:, 0]
        g = same_direction - (datum.half * query.half).sum(1)
        c = (theta["variance"] + theta[NOISE])[:, None] - datum.half.square().sum(1)
        return g, c

    def condition_on_mean(self, X: Tensor) -> CentreGP:
        """The processes with pending rows at their posterior mean (Desautels et al. 2014)."""
        if not len(X):
            return self
        gp, off = self.gp, off_centre(X)
        values = self.posterior(X).mean
        y = torch.cat([gp.y.expand(len(values), -1), values[:, off]], 1)
        wider = GP.of(self.kernel, gp.theta, torch.cat([gp.X, X[off]]), y, gp.mean)
        at_centre = self.at_centre
        if at_centre is None and not off.all():
            at_centre = values[:, ~off].mean(1)
        return replace(self, gp=wider, at_centre=at_centre)


class _Datum(NamedTuple):
    """Points, one for each query, as the rows off the centre see them."""

    half: Tensor  # (s, n, m): inverse of the Cholesky factor times covariances
    mean: Tensor  # (s, m): posterior mean

    @classmethod
    def at(cls, process: CentreGP, rows: Tensor, r: Tensor, cosines: Tensor) -> _Datum:
        """Points at radii r (m,), or at one radius, in the directions of the queries."""
        gp = process.gp
        K = process.kernel.covariance(rows, r, cosines, gp.theta)
        half = torch.linalg.solve_triangular(gp.chol, K, upper=False)
        return cls(half, gp.mean[:, None] + (K.mT @ gp.alpha[..., None])[..., 0])


def off_centre(X: Tensor) -> Tensor:
    """Which rows (n,) of the cube have a direction."""
    return cylinder(X)[0] > 0.0
