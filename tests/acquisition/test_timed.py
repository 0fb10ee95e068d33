"""A search repeated for a time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import torch

from raybo.acquisition.maximizers.base import Acquisition, Array, Region
from raybo.acquisition.maximizers.timed import Timed

LINE = Region(np.zeros(1), np.ones(1), np.zeros((1, 1)))


def identity(X: torch.Tensor) -> torch.Tensor:
    return X[:, 0]


@dataclass
class Scripted:
    """Finds given points, one per call, each after `seconds` of work."""

    points: list[float]
    seconds: float = 0.0
    starts: list[float] = field(default_factory=list)

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        self.starts.append(float(region.starts[0, 0]))
        return np.array([self.points[len(self.starts) - 1]])


def run(search: Scripted, seconds: float) -> float:
    fresh = iter(np.arange(1.0, 100.0))

    def starts() -> Array:
        return np.array([[next(fresh)]])

    return float(Timed(search, starts, seconds)(identity, LINE, np.random.default_rng(0))[0])


def test_one_search_is_made_however_little_the_time() -> None:
    search = Scripted([0.3, 0.9])
    assert run(search, 1e-12) == 0.3
    assert search.starts == [0.0]


def test_the_best_of_all_searches_counts_and_each_has_new_starts() -> None:
    search = Scripted([0.3, 0.9, 0.2, *[0.1] * 97], seconds=0.01)
    assert run(search, 0.055) == 0.9
    assert search.starts == list(np.arange(float(len(search.starts))))
    assert len(search.starts) >= 3


def test_a_search_that_would_end_too_late_is_not_begun() -> None:
    search = Scripted([0.3, 0.9], seconds=0.03)
    assert run(search, 0.05) == 0.3
