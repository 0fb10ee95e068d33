"""Hyperparameters by maximum a posteriori: L-BFGS-B in log space, closed-form gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from raybo.errors import SurrogateError
from raybo.surrogate.gp import MEAN, NOISE
from raybo.surrogate.kernels.base import Hyper, Kernel, LogNormal, Theta
from raybo.surrogate.kernels.stationary import Stationary
from raybo.surrogate.linalg import cholesky

NOISE_HYPER = Hyper(NOISE, (), 1e-6, 1.0, 1e-2, LogNormal(-4.0, 1.0))


class Target:
    """Negative log posterior of the log-hyperparameters, as one flat vector."""

    def __init__(
        self, kernel: Kernel, X: Tensor, y: Tensor, noise: Hyper, mean: float | None = None
    ) -> None:
        self.kernel, self.X, self.y, self.mean = kernel, X, y, mean
        self.hypers = (*kernel.hypers, noise)
        self.sizes = [math.prod(h.shape) for h in self.hypers]
        self.eye = torch.eye(len(X), dtype=X.dtype, device=X.device)

    def theta(self, logs: Tensor) -> dict[str, Tensor]:
        """Hyperparameters by name."""
        parts = torch.split(logs.exp(), self.sizes)
        return {h.name: p.reshape(h.shape) for h, p in zip(self.hypers, parts, strict=True)}

    def logs(self, theta: Theta) -> NDArray[np.float64]:
        """Flat log-hyperparameters of `theta`, moved inside the bounds."""
        parts = [
            torch.log(theta[h.name].detach().cpu().clamp(h.lower, h.upper)).reshape(-1).numpy()
            for h in self.hypers
        ]
        return np.concatenate(parts)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of the flat vector."""
        return [
            (math.log(h.lower), math.log(h.upper))
            for h, size in zip(self.hypers, self.sizes, strict=True)
            for _ in range(size)
        ]

    def __call__(self, flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Value and gradient."""
        logs = torch.as_tensor(flat, device=self.X.device).requires_grad_()
        penalty = self.penalty(logs)
        # d(-log p)/dK is known in closed form, so autograd only runs through the kernel.
        if isinstance(self.kernel, Stationary):  # and not even there
            with torch.no_grad():
                theta = self.theta(logs)
                K, pull = self.kernel.with_pull(self.X, theta)
                value, slope, _ = likelihood(K + theta[NOISE] * self.eye, self.y, self.mean)
                by_noise = theta[NOISE] * slope.diagonal().sum()
                gradient = torch.cat([pull(slope), by_noise[None]])
            (by_prior,) = torch.autograd.grad(penalty, logs)
            return float(value + penalty.detach()), (gradient + by_prior).cpu().numpy()
        theta = self.theta(logs)
        K = self.kernel(self.X, self.X, theta) + theta[NOISE] * self.eye
        with torch.no_grad():
            value, slope, _ = likelihood(K, self.y, self.mean)
        (gradient,) = torch.autograd.grad((K * slope).sum() + penalty, logs)
        return float(value + penalty.detach()), gradient.cpu().numpy()

    def penalty(self, logs: Tensor) -> Tensor:
        """Negative log prior density, up to a constant."""
        parts = zip(self.hypers, torch.split(logs, self.sizes), strict=True)
        return -sum(
            (h.prior.log_density(part).sum() for h, part in parts if h.prior),
            start=logs.new_zeros(()),
        )


def likelihood(K: Tensor, y: Tensor, mean: float | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Negative log marginal likelihood of y ~ N(m, K), its gradient in K, and the mean m.

    Notes
    -----
    -log p = (r' K^-1 r + log det K + n log 2 pi) / 2 with r = y - m (Rasmussen & Williams 2006,
    eq. 2.30), its gradient (K^-1 - alpha alpha') / 2 with alpha = K^-1 r (eq. 5.9). The mean,
    where none is given, is the one of highest likelihood, 1'K^-1 y / 1'K^-1 1, so its own gradient
    vanishes.
    """
    chol = cholesky(K)
    inverse = torch.cholesky_inverse(chol)
    rows = inverse.sum(1)
    m = (rows @ y) / rows.sum() if mean is None else y.new_tensor(mean)
    residual = y - m
    alpha = inverse @ residual
    log_det = 2.0 * chol.diagonal().log().sum()
    value = 0.5 * (residual @ alpha + log_det + len(y) * math.log(2.0 * math.pi))
    return value, 0.5 * (inverse - torch.outer(alpha, alpha)), m


def negative_log_likelihood(K: Tensor, y: Tensor) -> float:
    """Value of `likelihood` alone, for a third of its time."""
    chol = cholesky(K)
    half = torch.linalg.solve_triangular(
        chol, torch.stack([y, torch.ones_like(y)], 1), upper=False
    )
    mean = (half[:, 0] @ half[:, 1]) / half[:, 1].square().sum()
    fit_term = (half[:, 0] - mean * half[:, 1]).square().sum()
    log_det = 2.0 * chol.diagonal().log().sum()
    return float(0.5 * (fit_term + log_det + len(y) * math.log(2.0 * math.pi)))


def fit(
    kernel: Kernel,
    X: Tensor,
    y: Tensor,
    starts: Sequence[Theta],
    *,
    noise: Hyper = NOISE_HYPER,
    mean: float | None = None,
    max_iterations: int = 50,
) -> dict[str, Tensor]:
    """Hyperparameters of highest posterior density found from any of the starts.

    Parameters
    ----------
    kernel
        Covariance of the process.
    X, y
        Rows (n, d) and their standardised values (n,).
    starts
        Hyperparameters to start from, noise included; the last fit makes a good one.
    noise
        Bounds, start and prior of the noise variance.
    mean
        Of the process; the one of highest likelihood if it is not given.
    max_iterations
        Bound on the iterations from each start.

    Returns
    -------
    dict
        The kernel's hyperparameters, with "noise" and "mean".
    """
    target = Target(kernel, X, y, noise, mean)
    best: tuple[float, NDArray[np.float64]] | None = None
    for start in starts:
        found = minimize(
            target,
            target.logs(start),
            jac=True,
            method="L-BFGS-B",
            bounds=target.bounds,
            options={"maxiter": max_iterations, "ftol": 1e-7, "maxcor": 10},
        )
        if np.isfinite(found.fun) and (best is None or found.fun < best[0]):
            best = (float(found.fun), found.x)
    if best is None:
        raise SurrogateError(f"{len(X)} rows: no start gives a finite likelihood")
    with torch.no_grad():
        theta = target.theta(torch.as_tensor(best[1], device=X.device))
        K = kernel(X, X, theta) + theta[NOISE] * target.eye
        return {**theta, MEAN: likelihood(K, y, mean)[2]}
