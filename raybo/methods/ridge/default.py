"""Ridge functions: f(x) = g(B x) of a few directions, none of which need be a column's.

The assumption is that of active subspaces (Garnett, Osborne, Hennig 2014): a function of many
columns changes along few combinations of them. The model is a Matern-5/2 process on B x. All
(D, D) entries of B are learnt under a standard normal prior. It penalises the sum of the squared
singular values, so a direction that explains nothing shrinks to nothing, and the number of
directions need not be known. The fit starts at B = I, all columns; from a few random directions
it ends in poor optima (rotated Branin in 25 dimensions, 200 rows: log-likelihood 540 from I, -8
to 85 from three draws of two directions). `raybo bench rpp-rotated` is the task for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.lazy import torch
from raybo.methods.base import Data, Proposal
from raybo.methods.maxima import maxima
from raybo.methods.model import fitted_gp
from raybo.methods.options import check_count, require_ordered
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.kernels.projected import MORE_ITERATIONS, ROWS, Projected
from raybo.surrogate.kernels.stationary import Matern52
from raybo.surrogate.map import NOISE_HYPER

DIGITS = 6  # of exp(B) in a memo, which has D^2 entries; the fit knows fewer


@dataclass(frozen=True)
class Ridge:
    """Gaussian process over learnt directions."""

    space: AnySpace
    n_init: int | None = None  # points of the design; columns + 2, at most 10, unless given

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        require_ordered("ridge", self.space, "combines numbers")

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the log expected improvement under the model of the data."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the log expected improvement, each given those before it."""
        return maxima(self.space, self.n_init, self.model, data, rngs)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        dim = self.space.dim
        # B has the scale of the projections, so their length-scale is fixed. The noise has a
        # prior: without one, (D, D) entries are free to explain any noise as a direction.
        kernel = Projected(Matern52(dim, ard=False, scaled=True, lengthscale=1.0), dim)
        gp, memo = fitted_gp(
            kernel,
            data,
            noise=NOISE_HYPER,
            more_starts=_from_columns,
            more_iterations=MORE_ITERATIONS,
        )
        if memo:
            rows = memo["theta"][ROWS]
            memo["theta"][ROWS] = [[float(f"{b:.{DIGITS}g}") for b in row] for row in rows]
        return gp, memo


def _from_columns(theta: Theta) -> list[Theta]:
    """Another start of a fit, at B = I; theta holds exp(B)."""
    dim = theta[ROWS].shape[0]
    eye = torch.eye(dim, dtype=theta[ROWS].dtype, device=theta[ROWS].device)
    return [{**theta, ROWS: eye.exp()}]
