"""Prior densities of the hyperparameters of cylindrical kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from raybo.lazy import Tensor, torch

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

    Oh, Gavves, Welling (2018), supplement, section 2, after Ishwaran et al. (2005).
    """

    width: float  # of the range

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value)."""
        peak = math.log(math.sqrt(2.0 / math.pi) / _SPIKE)  # of a half-normal: one side is allowed
        spike = peak - 0.5 * (log_value / _SPIKE) ** 2
        return torch.logaddexp(spike, torch.full_like(spike, -math.log(self.width))) - log_value


@dataclass(frozen=True)
class Horseshoe:
    """Prior of log(value), largest near 0: density log(1 + 2 (scale / value)^2).

    That of the authors' code, a bound on the horseshoe (Carvalho, Polson, Scott 2010, theorem 1).
    """

    scale: float

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density over the hyperparameter itself, up to a constant, at exp(log_value)."""
        ratio = self.scale * (-log_value).exp()
        return torch.log(torch.log1p(2.0 * ratio**2)) - log_value
