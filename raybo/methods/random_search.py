"""Search without a model: independent uniform points, or a scrambled Sobol sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.errors import SpaceError
from raybo.methods.base import Data, Proposal
from raybo.space.any_space import AnySpace
from raybo.space.design import sobol_point


@dataclass(frozen=True)
class RandomSearch:
    """Uniform random points of the space (on the scale of each parameter)."""

    space: AnySpace
    lanes = 1
    reads_data = False

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:  # noqa: ARG002
        """Uniform draw; it does not look at the data."""
        return Proposal(config=self.space.draw(rng))


@dataclass(frozen=True)
class Sobol:
    """Points of one scrambled Sobol sequence: trial i is its element i."""

    space: AnySpace
    lanes = 1
    reads_data = False

    def __post_init__(self) -> None:
        if not self.space.dense:
            raise SpaceError(
                f"method 'sobol' needs one column per dimension, this box has {self.space.dim:,}; "
                "use method 'random', 'bins' or 'rembo'"
            )

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:  # noqa: ARG002
        """Element `data.number` of the sequence."""
        return Proposal(x=sobol_point(self.space, data.number, data.seed))
