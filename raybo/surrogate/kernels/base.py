"""What a kernel is, and how kernels combine: sums, products, kernels on some columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np

from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.lazy import Tensor

Value = TypeVar("Value", Tensor, Array)
Theta = Mapping[str, Tensor]
Arrays = Mapping[str, Array]  # a Theta in numpy
# Takes symmetric weights (n, n) to the gradient of sum(weights * K) in the log-hyperparameters,
# flat in the order of `hypers`, and in the rows (n, d), for K = kernel(X, X, theta).
Gradient = Callable[[Array], tuple[Array, Array]]
# Takes points (m, d) to their covariances (m, n) with given rows, and to a function from weights
# (m, n) to the gradient (m, d) of sum(weights * covariances) in the points.
Cross = Callable[[Array], tuple[Array, Callable[[Array], Array]]]


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


class HasGradient(Kernel, Protocol):
    """A kernel whose covariances have gradients in closed form, in numpy; see `has_gradient`.

    A numpy call takes a quarter of a torch call's time, and autograd doubles the calls.
    """

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient: what a fit needs."""

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X: what a search needs."""


@runtime_checkable
class Terms(Protocol):
    """A kernel that is a sum, each of whose terms has a posterior."""

    def term(self, index: int, theta: Theta) -> tuple[Kernel, Theta]:
        """Term `index` and its own hyperparameters."""


def has_gradient(kernel: Kernel) -> TypeGuard[HasGradient]:
    """Whether a kernel, and each that it is made of, has gradients in closed form."""
    parts: tuple[Kernel, ...] = getattr(kernel, "parts", ())
    # isinstance with a protocol takes as long as the covariances of ten points
    return hasattr(kernel, "with_gradient") and all(map(has_gradient, parts))


def require_gradient(kernel: Kernel) -> HasGradient:
    """The kernel, which must have gradients in closed form."""
    if not has_gradient(kernel):
        raise SurrogateError(f"a kernel with a gradient in closed form is needed, not {kernel}")
    return kernel


def is_lengthscale(name: str) -> bool:
    """Whether a hyperparameter is a length-scale, by its name in a kernel or in a composite."""
    return "lengthscale" in name.split(".")


def lengthscales(theta: Theta) -> dict[str, Tensor]:
    """Length-scales among the hyperparameters."""
    return {name: value for name, value in theta.items() if is_lengthscale(name)}


def _part(theta: Mapping[str, Value], index: int) -> Mapping[str, Value]:
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

    parts: tuple[Kernel, ...]

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the factors, prefixed."""
        return _prefixed(self.parts)

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        return math.prod(
            (k(X, Z, _part(theta, i)) for i, k in enumerate(self.parts)), start=X.new_ones(())
        )

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return math.prod(
            (k.diag(X, _part(theta, i)) for i, k in enumerate(self.parts)), start=X.new_ones(())
        )

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient, where the factors have one."""
        found = [
            require_gradient(k).with_gradient(X, _part(theta, i)) for i, k in enumerate(self.parts)
        ]
        factors = [K for K, _ in found]

        def gradient(weights: Array) -> tuple[Array, Array]:
            each = [
                of(weights * rest) for (_, of), rest in zip(found, _others(factors), strict=True)
            ]
            by_hypers = np.concatenate([by for by, _ in each])
            return by_hypers, np.asarray(sum(by for _, by in each))

        return np.prod(factors, axis=0), gradient

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X, where the factors have a closed form."""
        of = [require_gradient(k).cross(X, _part(theta, i)) for i, k in enumerate(self.parts)]

        def covariances(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
            found = [factor(Z) for factor in of]
            factors = [K for K, _ in found]

            def gradient(weights: Array) -> Array:
                each = zip(found, _others(factors), strict=True)
                return np.asarray(sum(of(weights * rest) for (_, of), rest in each))

            return np.prod(factors, axis=0), gradient

        return covariances


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

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernel on the columns."""
        return (self.kernel,)

    def with_gradient(self, X: Array, theta: Arrays) -> tuple[Array, Gradient]:
        """Covariances (n, n) of the rows of X, and their gradient, where the kernel has one."""
        K, of = require_gradient(self.kernel).with_gradient(X[:, list(self.columns)], theta)

        def gradient(weights: Array) -> tuple[Array, Array]:
            by_hypers, by_columns = of(weights)
            return by_hypers, self._spread(by_columns, X.shape[1])

        return K, gradient

    def cross(self, X: Array, theta: Arrays) -> Cross:
        """Covariances of points with the rows of X, where the kernel has a closed form."""
        of = require_gradient(self.kernel).cross(X[:, list(self.columns)], theta)

        def covariances(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
            K, by_columns = of(Z[:, list(self.columns)])
            return K, lambda weights: self._spread(by_columns(weights), Z.shape[1])

        return covariances

    def _spread(self, by_columns: Array, dim: int) -> Array:
        """Derivatives in the columns among those of all, which are 0."""
        gradient = np.zeros((len(by_columns), dim))
        gradient[:, list(self.columns)] = by_columns
        return gradient


def _others(factors: Sequence[Array]) -> Iterator[Array]:
    """For each factor the product of the others."""
    for i in range(len(factors)):
        yield np.prod([K for j, K in enumerate(factors) if j != i], axis=0)
