"""Suggester: the study behind a searcher, in the process that computes suggestions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray

from raybo.errors import RayboError, SpaceExhausted
from raybo.methods.base import Method
from raybo.methods.registry import build_method
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective
from raybo.study.study import Study
from raybo.study.trial import State, Trial, TrialRecord, decode

Snap = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Search:
    """What is searched, and how."""

    space: AnySpace
    method: str | Method
    options: Mapping[str, Any]
    mode: str
    seed: int
    snap: Snap | None = None  # config of what is really evaluated, where the space cannot tell


@dataclass(frozen=True)
class Answer:
    """A suggestion, config in JSON; or none, and why."""

    config: Any = None
    memo: dict[str, Any] = field(default_factory=dict)
    exhausted: str | None = None  # every point has been tried
    refused: tuple[str, str] | None = None  # class and message of an error of raybo: bad settings


class Suggester:
    """One Study, kept up to date by its caller: a copy, which a new process gets anew."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._open: int | None = None  # asked, and not known to be in use
        self._refused: tuple[str, str] | None = None
        try:
            method = build_method(search.method, search.space, search.options)
        except RayboError as error:
            self._refused = (type(error).__name__, str(error))
            return
        self._study = Study(search.space, method, Objective(search.mode), search.seed)

    def suggest(self, updates: Sequence[Mapping[str, Any]], number: int, haste: int = 0) -> Answer:
        """Learn of changed trials, in JSON, then propose trial `number`.

        The trial proposed before is forgotten unless it is among the updates.
        """
        if self._refused is not None:
            return Answer(refused=self._refused)
        if self._open is not None:
            self._study.drop(self._open)
            self._open = None
        for update in updates:
            self._learn(update)
        try:
            trial = self._study.ask(number, haste)
        except SpaceExhausted as error:
            return Answer(exhausted=str(error))
        if self._search.snap is not None:
            self._study.drop(number)
            config = self._search.snap(trial.config)
            trial = self._study.add(Trial(number, config, memo=trial.memo))
        self._open = number
        return Answer(self._study.space.to_json(trial.config), trial.memo)

    def _learn(self, update: Mapping[str, Any]) -> None:
        number, known = update["number"], self._study.trials.get(update["number"])
        if "config" not in update:  # stopped before it was evaluated
            if known is not None and known.state is State.PENDING:
                self._study.drop(number)
            return
        trial = decode(TrialRecord.from_json(update), self._study.space)
        if known is None:
            self._study.add(trial)
        else:
            known.state, known.value, known.reason = trial.state, trial.value, trial.reason


@ray.remote(num_cpus=0, max_restarts=0)
class SuggesterActor:
    """A Suggester in a process of its own."""

    def __init__(self, search: Search) -> None:
        self._suggester = Suggester(search)

    def suggest(self, *call: Any) -> Answer:
        """See Suggester."""
        return self._suggester.suggest(*call)
