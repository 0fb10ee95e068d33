"""Searches from new starts, one after another, for a given time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region, values
from raybo.arrays import Array


@dataclass(frozen=True)
class Timed:
    """A maximizer repeated for as long as another search like the last ones is in time.

    The time is the processor's, of this thread, so that what else a machine does takes nothing
    from a search; how many searches fit is the machine's all the same, and a run cannot be
    repeated to the digit.
    """

    search: Maximizer
    starts: Callable[[], Array]  # new ones (k, d)
    seconds: float

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        """Best point found (d,); at least one search is made."""
        begin = time.thread_time()
        found = [self.search(f, region, rng)]
        while (time.thread_time() - begin) * (1 + 1 / len(found)) <= self.seconds:
            found.append(self.search(f, replace(region, starts=self.starts()), rng))
        return np.asarray(found[np.argmax(values(f, np.stack(found), region.device))])
