"""What the tuners built from BoTorch's parts have in common: their data, design and seeds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.stats import qmc

from raybo.arrays import Array
from raybo.space.any_space import AnySpace


@dataclass
class Told:
    """The configs told to a tuner as rows of the unit cube, with their losses."""

    space: AnySpace
    seed: int
    rows: list[Array] = field(default_factory=list, init=False)
    losses: list[float] = field(default_factory=list, init=False)

    def add(self, config: Mapping[str, Any], loss: float) -> None:
        """Add an evaluated config."""
        self.rows.append(self.space.encode(config))
        self.losses.append(loss)

    def design(self, run: int = 0) -> dict[str, Any]:
        """Return the next config of a scrambled Sobol sequence; each run has another one."""
        sobol = qmc.Sobol(self.space.dim, rng=np.random.default_rng([self.seed, run]))
        return self.space.decode(sobol.random_base2(12)[len(self.rows)])

    def tensors(self, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows (n, d) from number `first` on and the negative losses (n, 1)."""
        X = torch.tensor(np.array(self.rows[first:]), dtype=torch.float64)
        return X, -torch.tensor(self.losses[first:], dtype=torch.float64).unsqueeze(-1)

    @contextmanager
    def seeded(self) -> Iterator[None]:
        """Seed torch's generator, from which BoTorch draws, and restore it at the end.

        Warnings are not shown: they are about failed restarts, which BoTorch handles.
        """
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(self.seed * 1_000_003 + len(self.rows))
            yield
