"""Acquisition functions of a posterior, for minimisation: larger is better."""

from __future__ import annotations

import math
from collections.abc import Callable

from raybo.lazy import Tensor, torch
from raybo.surrogate.gp import Posterior
from raybo.surrogate.linalg import with_slope

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
SERIES_BELOW = -200.0  # there the closed form has lost six digits, the series none


def log_h(z: Tensor) -> Tensor:
    """log(phi(z) + z Phi(z)): the logarithm of the expected improvement of N(-z, 1) below 0.

    Finite, and with a finite derivative Phi / (phi + z Phi), over the whole range of z.
    """
    with torch.no_grad():
        # Left: h = phi(z) (1 + z R) with Mills' ratio R = Phi / phi.
        left = z.clamp(SERIES_BELOW, 0.0)
        mills = math.sqrt(math.pi / 2.0) * torch.special.erfcx(-left / math.sqrt(2.0))
        inner = 1.0 + left * mills
        # Far left: 1 + z R = z^-2 (1 - 3 z^-2 + 15 z^-4 ...), and Phi / h = |z| (1 + 2 z^-2 ...).
        far = z.clamp_max(SERIES_BELOW)
        tail = far.reciprocal().square()
        far_inner = torch.log1p(tail * (-3.0 + 15.0 * tail)) - 2.0 * torch.log(-far)
        # Right: direct.
        right = z.clamp_min(0.0)
        cdf = torch.special.ndtr(right)
        h = torch.exp(-0.5 * right.square() - LOG_SQRT_2PI) + right * cdf
        log_phi = -0.5 * z.clamp_max(0.0).square() - LOG_SQRT_2PI
        is_far, is_left = z < SERIES_BELOW, z < 0.0
        value = torch.where(
            is_left, log_phi + torch.where(is_far, far_inner, torch.log(inner)), torch.log(h)
        )
        slope = torch.where(
            is_left, torch.where(is_far, -far * (1.0 + 2.0 * tail), mills / inner), cdf / h
        )
    return with_slope(z, value, slope)


def log_ei(posterior: Posterior, best: Tensor) -> Tensor:
    """Logarithm of the expected improvement below `best` (Ament et al. 2023)."""
    sd = posterior.variance.sqrt()
    return log_h((best - posterior.mean) / sd) + torch.log(sd)


def ei(posterior: Posterior, best: Tensor) -> Tensor:
    """Expected improvement below `best` (Jones et al. 1998, eq. 15)."""
    return torch.exp(log_ei(posterior, best))


def ucb(posterior: Posterior, beta: float | Tensor) -> Tensor:
    """-(mean - sqrt(beta) sd): the lower confidence bound of the loss, as a gain."""
    return (beta * posterior.variance).sqrt() - posterior.mean


def exploration(dim: int, t: int) -> float:
    """beta_t = 0.2 d ln(2t), the weight of the variance in `ucb` after t evaluations.

    That of the authors' code of Add-GP-UCB (Kandasamy, Schneider, Poczos 2015, section 4.1).
    """
    return 0.2 * dim * math.log(2.0 * t)


def log_below(posterior: Posterior, bound: Tensor) -> Tensor:
    """Logarithm of the probability that the value is at most `bound`."""
    below: Tensor = torch.special.log_ndtr((bound - posterior.mean) / posterior.variance.sqrt())
    return below


ACQUISITIONS: dict[str, Callable[[Posterior, Tensor], Tensor]] = {
    "log_ei": log_ei,
    "ei": ei,
    "ucb": ucb,
    "log_below": log_below,
}
