"""What a kernel is, and how kernels combine: sums, products, kernels on some columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from raybo.arrays import Array
from raybo.lazy import Tensor

Theta = Mapping[str, Tensor]
# Takes symmetric weights (n, n) to the gradient of sum(weights * K) in the log-hyperparameters,
# flat in the order of `hypers`, and in the rows (n, d), for K = kernel(X, X, theta).
Gradient = Callable[[Array], tuple[Array, Array]]


class Prior(Protocol):
    """Prior density of a positive hyperparameter."""

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value)."""


@dataclass(frozen=True)
class LogNormal:
    """Prior density of a positive hyperparameter: its logarithm is N(mu, sigma^2)."""

    mu: float
    sigma: float

    @classmethod
    def with_mode(cls, value: float, sigma: float) -> LogNormal:
        """The prior whose density is largest at `value`."""
        return cls(math.log(value) + sigma**2, sigma)

    @property
    def mode(self) -> float:
        """Value at which the density is largest."""
        return math.exp(self.mu - self.sigma**2)

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value).

        The density is over the value, not over its logarithm, hence the term -log_value: without
        it a maximum a posteriori fit inflates every length-scale.
        """
        return -log_value - 0.5 * ((log_value - self.mu) / self.sigma) ** 2


@dataclass(frozen=True)
class Hyper:
    """A positive hyperparameter: its shape, its bounds, where a fit starts, and its prior."""

    name: str
    shape: tuple[int, ...]
    lower: float
    upper: float
    start: float
    prior: Prior | None = None


class Kernel(Protocol):
    """A covariance function: structure only, its hyperparameters are passed in.

    Rows are points: X is (n, d), Z is (m, d).
    """

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Hyperparameters that theta must hold."""

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,): the diagonal of `self(X, X, theta)`."""


@runtime_checkable
class HasGradient(Protocol):
    """A kernel whose covariances have a gradient in closed form, in numpy: what a fit needs.

    A numpy call takes a quarter of a torch call's time, and autograd doubles the calls.
    """

    def with_gradient(self, X: Array, theta: Mapping[str, Array]) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient."""


@runtime_checkable
class Terms(Protocol):
    """A kernel that is a sum, each of whose terms has a posterior."""

    def term(self, index: int, theta: Theta) -> tuple[Kernel, Theta]:
        """Term `index` and its own hyperparameters."""


def is_lengthscale(name: str) -> bool:
    """Whether a hyperparameter is a length-scale, by its name in a kernel or in a composite."""
    return "lengthscale" in name.split(".")


def lengthscales(theta: Theta) -> dict[str, Tensor]:
    """Length-scales among the hyperparameters."""
    return {name: value for name, value in theta.items() if is_lengthscale(name)}


def _part(theta: Theta, index: int) -> Theta:
    prefix = f"{index}."
    return {k[len(prefix) :]: v for k, v in theta.items() if k.startswith(prefix)}


def _prefixed(kernels: tuple[Kernel, ...]) -> tuple[Hyper, ...]:
    return tuple(
        Hyper(f"{i}.{h.name}", h.shape, h.lower, h.upper, h.start, h.prior)
        for i, kernel in enumerate(kernels)
        for h in kernel.hypers
    )


@dataclass(frozen=True)
class Sum:
    """k(x, z) = sum of its terms; term i has the hyperparameters prefixed by "i."."""

    terms: tuple[Kernel, ...]

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the terms, prefixed."""
        return _prefixed(self.terms)

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        first, *rest = (k(X, Z, _part(theta, i)) for i, k in enumerate(self.terms))
        return sum(rest, first)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        first, *rest = (k.diag(X, _part(theta, i)) for i, k in enumerate(self.terms))
        return sum(rest, first)

    def term(self, index: int, theta: Theta) -> tuple[Kernel, Theta]:
        """Term `index` and its own hyperparameters."""
        return self.terms[index], _part(theta, index)


@dataclass(frozen=True)
class Product:
    """k(x, z) = product of its factors; factor i has the hyperparameters prefixed by "i."."""

    factors: tuple[Kernel, ...]

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the factors, prefixed."""
        return _prefixed(self.factors)

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        result = self.factors[0](X, Z, _part(theta, 0))
        for i, kernel in enumerate(self.factors[1:], start=1):
            result = result * kernel(X, Z, _part(theta, i))
        return result

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        result = self.factors[0].diag(X, _part(theta, 0))
        for i, kernel in enumerate(self.factors[1:], start=1):
            result = result * kernel.diag(X, _part(theta, i))
        return result


@dataclass(frozen=True)
class OnColumns:
    """A kernel that looks at some of the columns."""

    kernel: Kernel
    columns: tuple[int, ...]

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the kernel."""
        return self.kernel.hypers

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        columns = list(self.columns)
        return self.kernel(X[:, columns], Z[:, columns], theta)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return self.kernel.diag(X[:, list(self.columns)], theta)
