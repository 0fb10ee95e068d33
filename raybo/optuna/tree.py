"""The space of an Optuna study, as its finished trials show it.

An objective of Optuna asks for parameters as it runs and declares nothing. Which of them exist
under which choice is read from the trials: a parameter that only some trials have belongs to the
categorical parameter whose value decides it, if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from raybo.space.parameters import Categorical, Choice
from raybo.space.space import Space

Params = Mapping[str, Any]  # of a trial, by name
Branches = Mapping[int, "Level"]
Level = Mapping[str, Branches]  # parameters by name, each with what its values bring along


@dataclass(frozen=True)
class Tree:
    """Distributions by name, and the levels of the tree that they form.

    In configs of raybo a categorical value is its index, and a choice is {index: parameters}.
    """

    distributions: Mapping[str, BaseDistribution]
    level: Level

    @classmethod
    def of(cls, distributions: Mapping[str, BaseDistribution], trials: Sequence[Params]) -> Tree:
        """Return the tree of some parameters; those that fit nowhere are left out."""
        return cls(distributions, _level(sorted(distributions), trials, distributions))

    @property
    def names(self) -> list[str]:
        """Names of all parameters that are part of the tree."""
        return sorted(_names(self.level))

    @property
    def space(self) -> Space:
        """The space of raybo."""
        return Space(self._parameters(self.level))

    def config(self, params: Params) -> dict[str, Any]:
        """Return raybo's config for the parameters of a trial; KeyError if one is missing."""
        return self._config(params, self.level)

    def params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of Optuna, in its internal representation, for a config."""
        return self._params(config, self.level)

    def _parameters(self, level: Level) -> dict[str, Any]:
        return {name: self._parameter(name, branches) for name, branches in level.items()}

    def _parameter(self, name: str, branches: Branches) -> Any:
        distribution = self.distributions[name]
        if not isinstance(distribution, CategoricalDistribution):
            return distribution
        indices = range(len(distribution.choices))
        if not branches:
            return Categorical(indices)
        return Choice({str(k): self._parameters(branches[k]) for k in indices})

    def _config(self, params: Params, level: Level) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for name, branches in level.items():
            value, distribution = params[name], self.distributions[name]
            if isinstance(distribution, CategoricalDistribution):
                value = int(distribution.to_internal_repr(value))
            config[name] = value
            if branches:
                config[name] = {str(value): self._config(params, branches[value])}
        return config

    def _params(self, config: Mapping[str, Any], level: Level) -> dict[str, Any]:
        params: dict[str, Any] = {}
        for name, branches in level.items():
            params[name] = config[name]
            if branches:
                [(branch, inside)] = config[name].items()
                params[name] = int(branch)
                params |= self._params(inside, branches[int(branch)])
        return params


def shared_distributions(
    trials: Sequence[Mapping[str, BaseDistribution]],
) -> dict[str, BaseDistribution]:
    """Return the distributions that are the same in all trials that have them.

    Those of a single value are left out: there is nothing to search.
    """
    found: dict[str, BaseDistribution] = {}
    changing = set()
    for distributions in trials:
        for name, distribution in distributions.items():
            if found.setdefault(name, distribution) != distribution:
                changing.add(name)
    return {n: d for n, d in sorted(found.items()) if n not in changing and not d.single()}


def _level(
    names: Sequence[str], trials: Sequence[Params], distributions: Mapping[str, BaseDistribution]
) -> Level:
    """Parameters that all trials have, and below them those that only some of them have."""
    common = [name for name in names if all(name in params for params in trials)]
    rest = [name for name in names if name not in common]
    below: dict[str, list[str]] = {name: [] for name in common}
    for name in rest:
        gate = _gate(name, common, trials, distributions)
        if gate is not None:
            below[gate].append(name)
    return {
        name: _branches(name, inside, trials, distributions) if inside else {}
        for name, inside in below.items()
    }


def _gate(
    name: str,
    common: Sequence[str],
    trials: Sequence[Params],
    distributions: Mapping[str, BaseDistribution],
) -> str | None:
    """The parameter that decides whether trials have `name`: alone, or as the first of some."""
    partly = None
    for gate in common:
        if isinstance(distributions[gate], CategoricalDistribution):
            having = {_index(p, gate, distributions) for p in trials if name in p}
            lacking = {_index(p, gate, distributions) for p in trials if name not in p}
            if not having & lacking:
                return gate
            if partly is None and lacking - having:
                partly = gate
    return partly


def _branches(
    gate: str,
    names: Sequence[str],
    trials: Sequence[Params],
    distributions: Mapping[str, BaseDistribution],
) -> Branches:
    branches = {}
    for k in range(len(distributions[gate].choices)):
        chosen = [params for params in trials if _index(params, gate, distributions) == k]
        inside = [name for name in names if any(name in params for params in chosen)]
        branches[k] = _level(inside, chosen, distributions)
    return branches


def _index(params: Params, gate: str, distributions: Mapping[str, BaseDistribution]) -> int:
    return int(distributions[gate].to_internal_repr(params[gate]))


def _names(level: Level) -> set[str]:
    inside = [_names(below) for branches in level.values() for below in branches.values()]
    return set(level).union(*inside)
