"""Proposer: an actor around one Study, which proposes the trials of one lane.

Its state is a copy: the coordinator sends what it does not know yet with each call, and a new
proposer gets all trials of the lane.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray

from raybo.errors import RayboError
from raybo.methods.base import Method
from raybo.runtime.proposals.pacing import LONGEST_CALL
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective
from raybo.study.study import Study
from raybo.study.trial import State, TrialRecord, decode


@dataclass(frozen=True)
class Search:
    """What a proposer searches, and how."""

    space: AnySpace
    method: Method
    objective: Objective
    seed: int


class Proposer:
    """One Study, kept up to date by its caller; configs go in and out as JSON."""

    def __init__(self, search: Search) -> None:
        self._study = Study(search.space, search.method, search.objective, search.seed)
        self._recent: deque[float] = deque(maxlen=5)  # seconds of proposals; few of them fit

    def propose(
        self,
        updates: Sequence[TrialRecord],
        drop: Sequence[int],
        numbers: Sequence[int],
        haste: int = 0,
    ) -> dict[str, Any]:
        """Learn of `updates`, forget the proposals `drop`, propose `numbers`.

        Where those take long, the call ends after the first few. What counts is what follows the
        first, which may have fitted the model for all of them.

        Returns
        -------
        dict
            `items`: number, config and memo of each proposal, at least one; `seconds` that they
            took; `error`: class and message of the error of raybo that ended them early, or None.
        """
        for number in drop:
            self._study.drop(number)
        for update in updates:
            self._learn(update)
        began = time.perf_counter()
        ready: list[float] = []  # when each proposal was
        items: list[tuple[int, Any, dict[str, Any]]] = []
        error = None
        try:
            for number in numbers:
                if ready and ready[-1] + statistics.median(self._recent) > ready[0] + LONGEST_CALL:
                    break
                trial = self._study.ask(number, haste)
                items.append((number, self._study.space.to_json(trial.config), trial.memo))
                ready.append(time.perf_counter())
                self._recent.append(ready[-1] - (ready[-2] if len(ready) > 1 else began))
        except RayboError as problem:
            error = (type(problem).__name__, str(problem))
        return {"items": items, "seconds": time.perf_counter() - began, "error": error}

    def _learn(self, update: TrialRecord) -> None:
        trial = decode(update, self._study.space)
        known = self._study.trials.get(trial.number)
        if known is None:
            self._study.add(trial)
        elif known.state is State.PENDING and trial.state is State.DONE:
            self._study.tell(trial.number, trial.value)
        elif known.state is State.PENDING and trial.state is State.FAILED:
            self._study.fail(trial.number, trial.reason or "")


@ray.remote(num_cpus=0, max_restarts=0)
class ProposerActor:
    """A Proposer in a process of its own."""

    def __init__(self, search: Search) -> None:
        self._proposer = Proposer(search)

    def propose(self, *call: Any) -> dict[str, Any]:
        """Propose trials; see Proposer."""
        return self._proposer.propose(*call)
