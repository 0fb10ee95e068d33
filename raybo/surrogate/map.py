"""The fit of every model: hyperparameters of maximum a posteriori density, by L-BFGS-B.

Hyperparameters are positive and searched as logarithms. The gradient of the likelihood in the
covariance is known in closed form, so what is left is the gradient of the kernel: in closed form
where the kernel has one (`HasGradient`), which takes a fifth of the time, by autograd elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import scipy

from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.lazy import Tensor, torch
from raybo.surrogate.gp import NOISE, add_noise, likeliest_mean
from raybo.surrogate.kernels.base import Hyper, Kernel, LogNormal, Theta, has_gradient
from raybo.surrogate.linalg import Values, cholesky, inverse_and_log_det

Objective = Callable[[Array], tuple[float, Array]]  # flat vector -> value and gradient

# BoTorch's prior of the noise of standardised values (Hvarfner et al. 2024): LogNormal(-4, 1).
NOISE_HYPER = Hyper(NOISE, (), 1e-6, 1.0, 1e-2, LogNormal(-4.0, 1.0))
# From exact values to nothing but noise, with no prior: the data say which. Start such a fit also
# from `mostly_noise`.
FREE_NOISE = Hyper(NOISE, (), 1e-8, 1.0, 1e-4)
MAX_ITERATIONS = 50  # of L-BFGS-B from one start; warm starts end long before
RELATIVE_GAIN = 1e-7  # per step, below which a fit ends: far below what changes a proposal


def fit(
    kernel: Kernel,
    X: Tensor,
    y: Tensor,
    starts: Iterable[Theta],
    *,
    noise: Hyper = NOISE_HYPER,
    mean: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    own: Tensor | None = None,
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
        Constant mean of the process; the one of highest likelihood if it is not given.
    max_iterations
        Bound on the iterations from each start.
    own
        Variances (n,) that single values have beside the noise of all.

    Returns
    -------
    dict
        Hyperparameters of the kernel, and "noise".
    """
    density = NegativeLogPosterior(kernel, X, y, noise, mean, own)
    found = minimize_from(
        density, [density.logs(start) for start in starts], density.bounds, max_iterations
    )
    with torch.no_grad():
        return density.theta(torch.as_tensor(found, device=X.device))


def minimize_from(
    objective: Objective,
    starts: Sequence[Array],
    bounds: Sequence[tuple[float, float]],
    max_iterations: int = MAX_ITERATIONS,
) -> Array:
    """Flat vector of the least objective that L-BFGS-B finds from any of the starts."""
    options = {"maxiter": max_iterations, "ftol": RELATIVE_GAIN}
    found = [
        scipy.optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=list(bounds), options=options
        )
        for start in starts
    ]
    finite = [end for end in found if np.isfinite(end.fun)]
    if not finite:
        raise SurrogateError(f"none of {len(found)} starts of a fit has a finite likelihood")
    return np.asarray(min(finite, key=lambda end: float(end.fun)).x)


def starting_theta(kernel: Kernel, noise: Hyper, device: str = "cpu") -> dict[str, Tensor]:
    """Hyperparameters at which a first fit of `kernel` starts, noise included."""
    return {
        h.name: torch.full(h.shape, h.start, dtype=torch.float64, device=device)
        for h in (*kernel.hypers, noise)
    }


def mostly_noise(kernel: Kernel, noise: Hyper, device: str = "cpu") -> dict[str, Tensor]:
    """Hyperparameters at which a fit starts where all values may be noise.

    From small noise a climb can end where short length-scales explain noise as a rugged function.
    """
    theta = starting_theta(kernel, noise, device)
    return {**theta, NOISE: torch.full_like(theta[NOISE], noise.upper)}


class NegativeLogPosterior:
    """Negative log posterior density of flat log-hyperparameters, with its gradient."""

    def __init__(
        self,
        kernel: Kernel,
        X: Tensor,
        y: Tensor,
        noise: Hyper,
        mean: float | None = None,
        own: Tensor | None = None,
    ) -> None:
        self.kernel, self.X, self.y, self.mean = kernel, X, y, mean
        self.closed_form = kernel if has_gradient(kernel) else None
        self.own = X.new_zeros(len(X)) if own is None else own
        self.hypers = (*kernel.hypers, noise)
        self.sizes = [math.prod(h.shape) for h in self.hypers]
        self.normals = _normals(self.hypers, self.sizes)

    def theta(self, logs: Tensor) -> dict[str, Tensor]:
        """Hyperparameters by name; those of flat vectors (k, h) are batched."""
        parts = torch.split(logs.exp(), self.sizes, dim=-1)
        batch = logs.shape[:-1]
        return {
            h.name: p.reshape((*batch, *h.shape)) for h, p in zip(self.hypers, parts, strict=True)
        }

    def logs(self, theta: Theta) -> Array:
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

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """Value and gradient."""
        if self.closed_form is not None and self.X.device.type == "cpu":
            return self.at_rows(self.X.numpy(), flat)[:2]
        logs = torch.as_tensor(flat, device=self.X.device).requires_grad_()
        theta = self.theta(logs)
        penalty = self.penalty(logs)
        K = add_noise(self.kernel(self.X, self.X, theta), theta[NOISE], self.own)
        with torch.no_grad():
            value, slope = likelihood(K, self.y, self.mean)
        (gradient,) = torch.autograd.grad((K * slope).sum() + penalty, logs)
        return float(value + penalty.detach()), gradient.cpu().numpy()

    def at_rows(self, X: Array, flat: Array) -> tuple[float, Array, Array]:
        """Value for the rows X, and its gradients in the flat vector and in X, in closed form."""
        if self.closed_form is None:
            raise SurrogateError(
                f"a gradient in the rows needs a kernel with one, not {self.kernel}"
            )
        parts = np.split(np.exp(flat), np.cumsum(self.sizes)[:-1])
        theta = {h.name: p.reshape(h.shape) for h, p in zip(self.hypers, parts, strict=True)}
        K, gradient = self.closed_form.with_gradient(X, theta)
        noise = float(theta[NOISE])
        noisy = K.copy()
        noisy.flat[:: len(K) + 1] += noise + self.own.numpy()
        value, slope = likelihood(noisy, self.y.numpy(), self.mean)
        by_hypers, by_rows = gradient(slope)
        penalty, by_prior = self.penalty_with_gradient(flat)
        by_logs = np.append(by_hypers, noise * np.trace(slope)) + by_prior
        return float(value) + penalty, by_logs, by_rows

    def penalty_with_gradient(self, flat: Array) -> tuple[float, Array]:
        """Negative log prior density, up to a constant, and its gradient."""
        if self.normals is None:
            logs = torch.as_tensor(flat).requires_grad_()
            penalty = self.penalty(logs)
            (gradient,) = torch.autograd.grad(penalty, logs)
            return float(penalty.detach()), gradient.numpy()
        there, mu, precision = self.normals  # as in LogNormal.log_density, all of them at once
        pull = precision * (flat - mu)
        return float(there @ flat + 0.5 * pull @ (flat - mu)), there + pull

    def values(self, flat: Array) -> Array:
        """Values (k,) at flat vectors (k, h), without gradients."""
        with torch.no_grad():
            logs = torch.as_tensor(flat, device=self.X.device)
            theta = self.theta(logs)
            K = add_noise(self.kernel(self.X, self.X, theta), theta[NOISE], self.own)
            found = _negative_log_likelihoods(K, self.y, self.mean) + self.penalty(logs)
        return found.cpu().numpy()

    def penalty(self, logs: Tensor) -> Tensor:
        """Negative log prior density, up to a constant."""
        parts = zip(self.hypers, torch.split(logs, self.sizes, dim=-1), strict=True)
        return -sum(
            (h.prior.log_density(part).sum(-1) for h, part in parts if h.prior),
            start=logs.new_zeros(logs.shape[:-1]),
        )


def _normals(hypers: Sequence[Hyper], sizes: Sequence[int]) -> tuple[Array, Array, Array] | None:
    """Whether each logarithm has a prior, its mean and its precision; None for other priors."""
    priors = [h.prior for h in hypers]
    if not all(p is None or isinstance(p, LogNormal) for p in priors):
        return None
    rows = [(1.0, p.mu, p.sigma**-2) if isinstance(p, LogNormal) else (0.0,) * 3 for p in priors]
    there, mu, precision = np.repeat(rows, sizes, axis=0).T
    return there, mu, precision


def likelihood(K: Values, y: Values, mean: float | None = None) -> tuple[Values | float, Values]:
    """Negative log marginal likelihood of y ~ N(m, K), and its gradient in K.

    Notes
    -----
    -log p = (r' K^-1 r + log det K + n log 2 pi) / 2 with r = y - m (Rasmussen & Williams 2006,
    eq. 2.30), its gradient (K^-1 - alpha alpha') / 2 with alpha = K^-1 r (eq. 5.9). The mean,
    where none is given, is the one of highest likelihood, so its own gradient vanishes.
    """
    inverse, log_det = inverse_and_log_det(K)
    rows = inverse.sum(1)
    residual = y - ((rows @ y) / rows.sum() if mean is None else mean)
    alpha = inverse @ residual
    value = 0.5 * (residual @ alpha + log_det + len(y) * math.log(2.0 * math.pi))
    return value, 0.5 * (inverse - alpha[:, None] * alpha)


def negative_log_likelihood(K: Tensor, y: Tensor) -> float:
    """Value of `likelihood` alone, for a third of its time."""
    return float(_negative_log_likelihoods(K, y, None))


def _negative_log_likelihoods(K: Tensor, y: Tensor, mean: float | None) -> Tensor:
    """Values (...) of `likelihood` at covariances (..., n, n)."""
    chol = cholesky(K)
    residual = y - (likeliest_mean(chol, y)[..., None] if mean is None else mean)
    residual = residual.expand(chol.shape[:-1])
    half: Tensor = torch.linalg.solve_triangular(chol, residual[..., None], upper=False)
    return 0.5 * half.square().sum((-2, -1)) + _half_log_det(chol)


def _half_log_det(chol: Tensor) -> Tensor:
    """Log det(2 pi K) / 2 for the factors of K (..., n, n)."""
    diagonal = chol.diagonal(dim1=-2, dim2=-1)
    return diagonal.log().sum(-1) + 0.5 * chol.shape[-1] * math.log(2.0 * math.pi)
