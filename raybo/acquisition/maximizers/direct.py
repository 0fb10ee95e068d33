"""DIRECT (Jones et al. 1993), by scipy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.arrays import Array


@dataclass(frozen=True)
class Direct:
    """Dividing rectangles, with a budget of evaluations; deterministic."""

    max_evaluations: int = 1000

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Best point found (d,), the starts included."""
        free = region.upper > region.lower

        def place(part: Array) -> Array:
            x = region.lower.copy()
            x[free] = part
            return np.asarray(region.snap(x[None])[0])

        def loss(part: Array) -> float:
            found = float(values(f, place(part)[None], region.device)[0])
            return -found if np.isfinite(found) else 1e300

        points = region.starts
        if free.any():
            found = scipy.optimize.direct(
                loss,
                list(zip(region.lower[free], region.upper[free], strict=True)),
                maxfun=self.max_evaluations,
                maxiter=self.max_evaluations,
                locally_biased=False,
            )
            points = np.concatenate([points, place(found.x)[None]])
        return np.asarray(points[np.argmax(values(f, points, region.device))])
