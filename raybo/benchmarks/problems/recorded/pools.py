"""Pools of recorded configs: a list of points with their values, not a grid.

`hpob-SPACE-DATA` are 92 pools of HPO-B (Pineda Arango, Jomaa, Wistuba & Grabocka 2021), with the
logarithms that FixedHPO-B added: 2 to 18 parameters of a learner, all scaled to [0, 1], and the
validation accuracy. `lcbench-pool-DATA` are the 35 data sets of LCBench (Zimmer, Lindauer & Hutter
2021): 2000 networks each of 7 parameters, and the validation accuracy in percent.

The methods of raybo choose from the pool: it is the list of what their space allows. The other
tuners know nothing of lists; they propose any config of the box around the pool and are told the
value of the nearest point, the usual way to let them run on one. Distance is Euclidean after each
parameter is scaled to [0, 1], on a log scale where the parameter has one. A config drawn from the
box finds points at the edge of the pool more often than others, so the median of such configs is
not that of the points (hpob-7609-9967: 0.889 and 0.999).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem, one_of
from raybo.benchmarks.problems.bocode import PACKAGE, POOLS, files
from raybo.space.parameters import Float, Int
from raybo.space.space import Space

LCBENCH: dict[str, Float | Int] = {  # in the order of the columns
    "batch_size": Int(16, 512, log=True),
    "learning_rate": Float(1e-4, 0.1, log=True),
    "max_dropout": Float(0.0, 1.0),
    "max_units": Int(64, 1024, log=True),
    "momentum": Float(0.1, 0.99),
    "num_layers": Int(1, 4),
    "weight_decay": Float(1e-5, 0.1),
}


@lru_cache(maxsize=2)
def _keys(file: str) -> tuple[str, ...]:
    with np.load(files()[f"{POOLS}/{file}_data.npz"]) as archive:
        return tuple(archive.files)


@lru_cache(maxsize=8)
def rows(file: str, key: str) -> Array:
    """Return the points of a pool, and in the last column their values; read only."""
    with np.load(files()[f"{POOLS}/{file}_data.npz"]) as archive:
        found: Array = archive[key].astype(np.float64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=8)
def parameters(file: str, key: str) -> Mapping[str, Float | Int]:
    """Return the parameters of a pool, one for each column.

    Columns of HPO-B are named x0, x1, ...; one that is 0 or 1 in all points, as for a category or
    for a value that is missing, is an Int.
    """
    if file == "lcbench":
        return LCBENCH
    found: dict[str, Float | Int] = {}
    for i, column in enumerate(rows(file, key)[:, :-1].T):
        binary = np.isin(column, (0.0, 1.0)).all()
        found[f"x{i}"] = Int(0, 1) if binary else Float(0.0, 1.0)
    return found


@lru_cache(maxsize=2)
def _space(file: str, key: str) -> Space:
    found = parameters(file, key)
    points = rows(file, key)[:, :-1]
    configs = (
        {
            name: int(x) if isinstance(parameter, Int) else x
            for (name, parameter), x in zip(found.items(), point, strict=True)
        }
        for point in points.tolist()
    )
    return Space(found, where=list(configs))


def scaled(points: Array, found: Mapping[str, Float | Int]) -> Array:
    """Return points (n, d) with every parameter scaled to [0, 1]."""
    low, high = (
        np.array([getattr(parameter, end) for parameter in found.values()], dtype=np.float64)
        for end in ("low", "high")
    )
    log = [parameter.log for parameter in found.values()]
    low, high, inside = (_logarithm(x, log) for x in (low, high, points))
    return (inside - low) / (high - low)


def _logarithm(x: Array, log: list[bool]) -> Array:
    return np.log(x, out=x.copy(), where=log)


@lru_cache(maxsize=8)
def _cube(file: str, key: str) -> tuple[Array, Array]:
    """The points (n, d), scaled, and their squared lengths (n,)."""
    cube = scaled(rows(file, key)[:, :-1], parameters(file, key))
    return cube, np.sum(cube**2, axis=1)


@dataclass(frozen=True)
class Nearest:
    """Value of the point of a pool that is nearest to a config."""

    file: str
    key: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        found = parameters(self.file, self.key)
        point = scaled(np.array([[float(config[name]) for name in found]]), found)[0]
        cube, squares = _cube(self.file, self.key)
        rough = squares - 2.0 * (cube @ point)  # squared distance, less a constant; rounded
        close = np.flatnonzero(rough <= rough.min() + 1e-9)
        nearest = close[np.argmin(np.sum((cube[close] - point) ** 2, axis=1))]
        return float(rows(self.file, self.key)[nearest, -1])


def pool(name: str) -> Problem:
    """Return the problem "hpob-SPACE-DATA" or "lcbench-pool-DATA"."""
    family, file = ("hpob", "hpob") if name.startswith("hpob-") else ("lcbench-pool", "lcbench")
    keys = {f"{family}-{key.lower().replace('_', '-')}": key for key in _keys(file)}
    key = keys[one_of(name, keys)]
    values = rows(file, key)[:, -1]
    return Problem(
        name,
        partial(_space, file, key),
        Nearest(file, key),
        optimum=float(values.max()),
        mode="max",
        description=f"validation accuracy of the nearest of {len(values)} recorded configs",
        cost=f"up to 1 ms, after {PACKAGE.name} is fetched",
    )
