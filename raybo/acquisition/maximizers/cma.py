"""CMA-ES (Hansen 2016), by the package cmaes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.arrays import Array


@dataclass(frozen=True)
class CmaEs:
    """Evolution from the best start, a population per evaluation."""

    max_evaluations: int = 1000
    sigma: float = 0.3  # of the width of the box, as Hansen (2016) advises

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        """Best point found (d,), the starts included."""
        # It brings scipy.stats along, a second that only those who use it should wait.
        from cmaes import CMA  # noqa: PLC0415

        found = values(f, region.starts, region.device)
        best, top = region.starts[np.argmax(found)], float(found.max())
        width = np.where(region.upper > region.lower, region.upper - region.lower, 1.0)
        search = CMA(
            mean=(best - region.lower) / width,
            sigma=self.sigma,
            bounds=np.stack([np.zeros(region.dim), np.ones(region.dim)], axis=1),
            seed=int(rng.integers(2**31)),
        )
        for _ in range(self.max_evaluations // search.population_size):
            asked = [search.ask() for _ in range(search.population_size)]
            points = region.snap(
                np.clip(region.lower + np.array(asked) * width, region.lower, region.upper)
            )
            gains = values(f, points, region.device)
            search.tell(
                [(x, -g if np.isfinite(g) else 1e300) for x, g in zip(asked, gains, strict=True)]
            )
            if gains.max() > top:
                best, top = points[np.argmax(gains)], float(gains.max())
            if search.should_stop():
                break
        return np.asarray(best)
