"""Tuners by name: raybo's methods, the peers (other tools' tuners), and published baselines.

The module of a peer or baseline is imported on first use: its package need not be installed.
"""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from raybo.benchmarks.tuners.base import AskTell, Tuner, centre_config, parse_spec
from raybo.benchmarks.tuners.own import OwnMethod
from raybo.errors import MethodError, SpaceError
from raybo.methods.registry import METHODS, method_class, option_names
from raybo.space.any_space import AnySpace
from raybo.study.optimizer import Optimizer


@dataclass(frozen=True)
class Entry:
    """Where a tuner is found, and which package it needs.

    Attributes
    ----------
    path : str
        "module:class" in this folder.
    package : str
        What must be installed for it.
    fixed : dict
        Options that the name implies.
    install : str
        Command that installs the package.
    """

    path: str
    package: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    install: str = "pip install 'raybo[bench]'"


PEERS = {
    "botorch": Entry("botorch:BotorchLogEi", "botorch"),
    "turbo": Entry("turbo:Turbo", "botorch"),
    "optuna-tpe": Entry("optuna:OptunaSampler", "optuna", {"sampler": "tpe"}),
    "optuna-tpe-liar": Entry("optuna:OptunaSampler", "optuna", {"sampler": "tpe-liar"}),
    "optuna-gp": Entry("optuna:OptunaSampler", "optuna", {"sampler": "gp"}),
    "optuna-cmaes": Entry("optuna:OptunaSampler", "optuna", {"sampler": "cmaes"}),
    "optuna-auto": Entry("optuna:OptunaSampler", "optuna", {"sampler": "auto"}),
    "optuna-raybo": Entry("optuna:OptunaSampler", "optuna", {"sampler": "raybo"}),
    "hyperopt": Entry("hyperopt:HyperoptTpe", "hyperopt"),
    "smac": Entry("smac:SmacForest", "smac"),
    "hebo": Entry(
        "hebo:HeboMace",
        "hebo",
        install="pip install --no-deps HEBO pymoo moocore cma GPy paramz catboost disjoint-set "
        "and what these miss (HEBO's own pins exclude numpy 2)",
    ),
}
BASELINES = {"independent-gps": Entry("independent_gps:IndependentGps", "raybo")}
_ENTRIES = {**PEERS, **BASELINES}


def build_tuner(
    spec: str, space: AnySpace, seed: int = 0, evaluations: int = 100, centre: bool = False
) -> Tuner:
    """Return the tuner of the given spec, ready to be asked.

    Parameters
    ----------
    spec
        Name and options.
    space
        What to search.
    seed
        The same seed and the same losses give the same configs.
    evaluations
        Length of the run, for the tuners that plan ahead.
    centre
        Whether the first config is the centre of the space.
    """
    check_tuner(spec)
    name, options = parse_spec(spec)
    search: AskTell
    if name in _ENTRIES:
        search = _load(name)[0](space, seed, evaluations, **_ENTRIES[name].fixed, **options)
    else:
        search = OwnMethod(space, Optimizer(space, name, seed=seed, **options))
    return Tuner(search, centre_config(space) if centre else None)


def why_not(spec: str, space: AnySpace) -> str | None:
    """Return why a tuner cannot search a space; None where it can."""
    check_tuner(spec)
    try:
        build_tuner(spec, space)
    except (MethodError, SpaceError) as error:
        return str(error)
    return None


def check_tuner(spec: str) -> None:
    """Raise MethodError if the tuner is unknown, not installed or has no such option."""
    name, options = parse_spec(spec)
    if name in _ENTRIES:
        _, allowed = _load(name)
    elif name in METHODS:
        preset = options.get("preset", "default")
        allowed = ["preset", *option_names(method_class(name, preset))]
    else:
        raise MethodError(
            f"tuner {name!r} is not known; choose one of raybo's methods ({', '.join(METHODS)}), "
            f"of the peers ({', '.join(PEERS)}) or of the baselines ({', '.join(BASELINES)})"
        )
    for option in options:
        if option not in allowed:
            takes = ", ".join(allowed) or "no options"
            raise MethodError(f"tuner {name!r} has no option {option!r}; it takes {takes}")


def is_peer(spec: str) -> bool:
    """Return whether a spec names another tool's tuner."""
    return parse_spec(spec)[0] in PEERS


def is_installed(name: str) -> bool:
    """Return whether the package of a peer or baseline is there."""
    return find_spec(_ENTRIES[name].package) is not None


def package_of(spec: str) -> str:
    """Return the package that a tuner comes from."""
    name, _ = parse_spec(spec)
    return _ENTRIES[name].package if name in _ENTRIES else "raybo"


def _load(name: str) -> tuple[type[Any], list[str]]:
    """Return the class of a peer or baseline, and the names of its options."""
    entry = _ENTRIES[name]
    if not is_installed(name):
        raise MethodError(
            f"tuner {name!r} needs the package {entry.package!r}, which is not installed; "
            f"{entry.install}"
        )
    module, _, cls_name = entry.path.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raised while the package is imported
        cls = getattr(importlib.import_module(f"raybo.benchmarks.tuners.{module}"), cls_name)
    taken = {"space", "seed", "evaluations", *entry.fixed}
    return cls, [f.name for f in dataclasses.fields(cls) if f.init and f.name not in taken]
