"""First points: the centre, then uniform points."""

from __future__ import annotations

import numpy as np

from raybo.arrays import Array
from raybo.methods.base import Data
from raybo.space.any_space import AnySpace
from raybo.space.design import centre

N_INIT = 2  # the centre and one uniform point: the authors' code


def design_point(space: AnySpace, data: Data, rng: np.random.Generator) -> Array:
    """The centre (d,), or a uniform point where the centre was asked before."""
    first = centre(space)
    asked = np.concatenate([data.X, data.pending])
    was_asked = (asked == first).all(1).any()
    return np.asarray(space.sample(1, rng)[0] if was_asked else first)
