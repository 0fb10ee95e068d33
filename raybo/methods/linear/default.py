"""Linear: the objective is a linear function of the parameters, laid on a sphere.

Doumont, Fan, Maus, Gardner, Moss, Pleiss (2025), "We still don't understand high-dimensional
Bayesian optimization". In hundreds of dimensions there are too few results for more than a slope
in each. On the sphere the slope bends: the minimum can be anywhere, not only in a corner. Here bad
losses are drawn in, the noise has no prior, and the next point is where log EI is highest. Of n
results in D dimensions a proposal takes O(n^2 D).
`raybo bench suite --name high` is the task for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.methods.base import Data, Proposal
from raybo.methods.maxima import maxima
from raybo.methods.model import fitted_gp
from raybo.methods.options import check_count, require_ordered
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.spherical import Spherical
from raybo.surrogate.outcomes import SHORT_TAIL


@dataclass(frozen=True)
class Linear:
    """Gaussian process with a linear kernel on a sphere."""

    space: AnySpace
    n_init: int | None = None  # points of the design; columns + 2, at most 10, unless given

    lanes = 1

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        require_ordered("linear", self.space, "adds up numbers")

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the log expected improvement under the model of the data."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Maxima of the log expected improvement, each given those before it."""
        return maxima(self.space, self.n_init, self.model, data, rngs)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""
        return fitted_gp(Spherical(self.space.dim), data, bad_side=SHORT_TAIL)
