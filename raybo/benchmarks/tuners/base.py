"""Every tuner behind one ask/tell protocol, named by a short text.

A spec is a name with options, `rembo:d=2,k=4,preset=paper` or `botorch:n_init=20`. Names are
raybo's methods and those of `PEERS`, whose packages are imported on use.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.errors import MethodError
from raybo.methods.registry import METHODS, method_class, option_names
from raybo.space.any_space import AnySpace
from raybo.study.optimizer import Optimizer

Config = Mapping[str, Any]


class Rival(Protocol):
    """A tuner at work on one space; it minimises."""

    def ask(self) -> Config:
        """Next config to evaluate."""

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluated config, whether it was asked for or not."""


@dataclass(frozen=True)
class Peer:
    """Where another project's tuner lives, and what must be installed for it."""

    path: str  # module:class
    package: str
    title: str
    fixed: Mapping[str, Any] = field(default_factory=dict)  # options that make up the name
    install: str = "pip install 'raybo[bench]'"


_HOME = "raybo.benchmarks.tuners"
PEERS = {
    "botorch": Peer(f"{_HOME}.botorch:BotorchLogEi", "botorch", "BoTorch LogEI"),
    "optuna-tpe": Peer(
        f"{_HOME}.optuna:OptunaSampler", "optuna", "Optuna TPE", {"sampler": "tpe"}
    ),
    "optuna-gp": Peer(
        f"{_HOME}.optuna:OptunaSampler", "optuna", "Optuna GPSampler", {"sampler": "gp"}
    ),
    "optuna-cmaes": Peer(
        f"{_HOME}.optuna:OptunaSampler", "optuna", "Optuna CMA-ES", {"sampler": "cmaes"}
    ),
    "hyperopt": Peer(f"{_HOME}.hyperopt:HyperoptTpe", "hyperopt", "Hyperopt TPE"),
    "independent-gps": Peer(
        f"{_HOME}.independent_gps:IndependentGps", "torch", "a Gaussian process per leaf"
    ),
    "smac": Peer(f"{_HOME}.smac:SmacForest", "smac", "SMAC3", install="pip install smac"),
    "hebo": Peer(
        f"{_HOME}.hebo:HeboMace",
        "hebo",
        "HEBO",
        install="pip install --no-deps HEBO pymoo moocore cma GPy paramz catboost disjoint-set "
        "and what these miss (HEBO's own pins exclude numpy 2)",
    ),
}


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a spec; numbers, true, false and none are read as such."""
    name, _, rest = spec.partition(":")
    options: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise MethodError(f"{spec!r}: {item!r} is not option=value")
        options[key.strip()] = _value(text.strip())
    return name, options


def split_specs(text: str) -> list[str]:
    """Specs of a comma-separated list: `rembo:d=2,k=4,bo` is two, since `k=4` is no name."""
    specs: list[str] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        if "=" in item and ":" not in item and specs:
            specs[-1] += f",{item}"
        else:
            specs.append(item)
    return specs


def check_rival(spec: str) -> None:
    """Raise MethodError if the rival is unknown, not installed or has no such option."""
    name, options = parse_spec(spec)
    if name in PEERS:
        _, allowed = _peer_class(name)
    else:
        if name not in METHODS:
            raise MethodError(
                f"rival {name!r} is not known; choose one of raybo's methods "
                f"({', '.join(METHODS)}) or of the peers ({', '.join(PEERS)})"
            )
        allowed = ["preset", *option_names(method_class(name, options.get("preset", "default")))]
    for option in options:
        if option not in allowed:
            takes = ", ".join(allowed) or "no options"
            raise MethodError(f"rival {name!r} has no option {option!r}; it takes {takes}")


def installed() -> list[str]:
    """Names of the peers whose package is there."""
    return [name for name, peer in PEERS.items() if find_spec(peer.package) is not None]


def build_rival(
    spec: str, space: AnySpace, seed: int = 0, evaluations: int = 100, centre: bool = False
) -> Rival:
    """Tuner of the given spec, ready to be asked.

    Parameters
    ----------
    spec
        Name and options.
    space
        What to search.
    seed
        Same seed and same losses, same configs.
    evaluations
        Length of the run, for the tuners that plan ahead.
    centre
        Whether the first config is the centre of the space.
    """
    check_rival(spec)
    name, options = parse_spec(spec)
    rival: Rival
    if name in PEERS:
        rival = _peer_class(name)[0](space, seed, evaluations, **PEERS[name].fixed, **options)
    else:
        rival = OwnMethod(space, Optimizer(space, name, seed=seed, **options))
    return CentreFirst(rival, centre_config(space)) if centre else rival


def centre_config(space: AnySpace) -> Config:
    """Config at the centre of the unit cube."""
    if not space.dense:
        raise BenchmarkError(
            f"a box of {space.dim:,} dimensions has no centre config; start anywhere instead"
        )
    return space.decode(np.full(space.dim, 0.5))


@dataclass
class OwnMethod:
    """A method of raybo, through its Optimizer."""

    space: AnySpace
    optimizer: Optimizer
    _pending: dict[str, int] = field(default_factory=dict, init=False)

    def ask(self) -> Config:
        """Next config to evaluate."""
        trial = self.optimizer.ask()
        self._pending[self._key(trial.config)] = trial.number
        return trial.config

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluated config."""
        number = self._pending.pop(self._key(config), None)
        if number is None:
            self.optimizer.add(config, loss)
        else:
            self.optimizer.tell(number, loss)

    def _key(self, config: Config) -> str:
        return json.dumps(self.space.to_json(config))


@dataclass
class CentreFirst:
    """A rival whose first config is given."""

    rival: Rival
    first: Config
    _asked: bool = field(default=False, init=False)

    def ask(self) -> Config:
        """Return the given config, then what the rival asks for."""
        if self._asked:
            return self.rival.ask()
        self._asked = True
        return self.first

    def tell(self, config: Config, loss: float) -> None:
        """Pass on an evaluated config."""
        self.rival.tell(config, loss)


def _peer_class(name: str) -> tuple[type[Any], list[str]]:
    """Class of a peer, and the names of its options."""
    peer = PEERS[name]
    if find_spec(peer.package) is None:
        raise MethodError(
            f"rival {name!r} needs the package {peer.package!r}, which is not installed; "
            f"{peer.install}"
        )
    module, _, cls_name = peer.path.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages' own imports
        cls = getattr(importlib.import_module(module), cls_name)
    taken = {"space", "seed", "evaluations", *peer.fixed}
    return cls, [f.name for f in dataclasses.fields(cls) if f.init and f.name not in taken]


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
