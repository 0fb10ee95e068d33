"""Log-warp: columns on scales between linear and logarithmic, learnt with the kernel.

Users give parameters linear scales that should have others: the rank of a layer from 10 to 500,
whose best value is 40 (`raybo bench addtree-fc3`).
"""

from __future__ import annotations

from dataclasses import dataclass

from raybo.errors import SurrogateError
from raybo.lazy import Tensor, torch
from raybo.methods.model import unordered_columns
from raybo.space.any_space import AnySpace
from raybo.surrogate.kernels.base import Hyper, Kernel, LogNormal, Terms, Theta

RATIO = "log_warp"
SPREAD = 1.5  # deviation of the logarithm of a ratio: between linear and the 1 : 50 of `fc3`


@dataclass(frozen=True)
class LogWarped:
    """A kernel of rows some of whose columns are on learnt scales."""

    kernel: Kernel
    columns: tuple[int, ...]  # on learnt scales

    @classmethod
    def of(cls, kernel: Kernel, space: AnySpace) -> LogWarped:
        """The kernel with all columns on learnt scales whose values have an order."""
        unordered = unordered_columns(space)
        return cls(kernel, tuple(c for c in range(space.dim) if c not in unordered))

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the kernel, and the ratios of the scales: linear before any data."""
        prior = LogNormal.with_mode(1.0, SPREAD)
        return (*self.kernel.hypers, Hyper(RATIO, (len(self.columns),), 1e-3, 1e3, 1.0, prior))

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        A = self.warp(X, theta)
        return self.kernel(A, A if Z is X else self.warp(Z, theta), theta)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return self.kernel.diag(self.warp(X, theta), theta)

    def term(self, index: int, theta: Theta) -> tuple[Kernel, Theta]:
        """Term `index` of the kernel, of warped rows, and its hyperparameters."""
        if not isinstance(self.kernel, Terms):
            raise SurrogateError(f"{self.kernel} is no sum of terms")
        term, own = self.kernel.term(index, theta)
        return LogWarped(term, self.columns), {**own, RATIO: theta[RATIO]}

    def warp(self, X: Tensor, theta: Theta) -> Tensor:
        """Rows (n, d) with their columns on the learnt scales."""
        columns = torch.tensor(self.columns, dtype=torch.long)
        return X.index_copy(1, columns, log_warp(X[:, columns], theta[RATIO]))

    def ratios(self, columns: Tensor, theta: Theta) -> Tensor:
        """Ratios of the scales of `columns`, of the same shape; 1 for a linear one."""
        every = theta[RATIO].new_ones(1 + max((*self.columns, int(columns.max()))))
        warped = torch.tensor(self.columns, dtype=torch.long)
        return every.index_copy(0, warped, theta[RATIO])[columns]


def log_warp(U: Tensor, ratio: Tensor) -> Tensor:
    """Positions in [0, 1] on a scale whose slope at 0 is `ratio` times that at 1.

    Notes
    -----
    log(1 + (ratio - 1) u) / log(ratio): a ratio of 1 changes nothing, high / low makes the scale
    of a range from low to high logarithmic, and a ratio below 1 widens the other end.
    """
    k = ratio.log()
    small = k.abs() < 1e-4  # where the quotient is 0 / 0: its expansion to first order in k
    safe = torch.where(small, torch.ones_like(k), k)
    exact = torch.log1p(torch.expm1(safe) * U) / safe
    return torch.where(small, U + 0.5 * k * U * (1.0 - U), exact)
