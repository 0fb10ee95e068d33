"""Proposer: proposes the trials of one lane. ProposerActor is its Ray actor.

The Study of a proposer is a copy: each call brings the trials that it does not know yet, and a new
proposer is sent all trials of the lane.
"""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray

from raybo.errors import RayboError
from raybo.lazy import load_libraries
from raybo.methods.base import FULL, Effort, Method, lane_of
from raybo.methods.registry import METHODS, build_method, describe_method
from raybo.runtime.proposals.pacing import LONGEST_CALL
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective
from raybo.study.study import Study
from raybo.study.trial import State, TrialRecord, decode, encode

# That the proposals of an opening may take in each lane; scipy's part is loaded in them.
OPENING_SECONDS = 10.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
RECENT_PROPOSALS = 5  # their median predicts the next, although a few of them fit a model


@dataclass(frozen=True)
class Search:
    """What a proposer searches, and how; a method given by its name is built by the proposer."""

    space: AnySpace
    method: str | Method
    objective: Objective
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of a method given by its name
    snap: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None  # see Study


@dataclass(frozen=True)
class Call:
    """What a proposer is asked for."""

    updates: Sequence[TrialRecord]  # trials that are new to the proposer or have changed
    dropped: Sequence[int]  # proposals that will not be evaluated; unknown ones are ignored
    numbers: Sequence[int]  # trials to propose
    effort: Effort = FULL
    seconds: float = LONGEST_CALL  # that it may go on after the first proposal


@dataclass(frozen=True)
class Proposals:
    """What a proposer answers."""

    trials: list[TrialRecord]
    seconds: float  # that they took
    error: RayboError | None = None  # what ended them early


def opening(search: Search, points: Sequence[Any], n: int) -> tuple[TrialRecord, ...]:
    """Propose those of the first n trials that are not the user's points, as proposers would.

    Before the first result no method has a model: workers can start on these while proposers
    load what models need. There are fewer where proposals take long, and none by a method that
    is not one of raybo's: it belongs into a process that may be lost.
    """
    method = build_method(search.method, search.space, search.options)
    if describe_method(method)["name"] not in METHODS:
        return ()
    trials = [TrialRecord(number, config) for number, config in enumerate(points)]
    of_lanes: dict[int, list[int]] = {}
    for number in range(len(points), n):
        of_lanes.setdefault(lane_of(number, method.lanes), []).append(number)
    made: list[TrialRecord] = []
    for lane, numbers in of_lanes.items():
        known = [trial for trial in trials if lane_of(trial.number, method.lanes) == lane]
        made += Proposer(search).propose(Call(known, (), numbers, FULL, OPENING_SECONDS)).trials
    return tuple(sorted(made, key=lambda trial: trial.number))


class Proposer:
    """One Study, kept up to date by its caller."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._study: Study | None = None  # made by the first call, which reports what is wrong
        self._recent: deque[float] = deque(maxlen=RECENT_PROPOSALS)  # seconds of proposals

    def propose(self, call: Call) -> Proposals:
        """Bring the Study up to date, then propose the trials that the call asks for.

        Where proposals take long the answer holds only the first few, and at least one: they need
        not wait for the others. The first may have fitted the model for all, so only the time
        after it counts.
        """
        trials: list[TrialRecord] = []
        start = time.perf_counter()
        try:
            study = self._updated_study(call)
            start = last = first = time.perf_counter()
            for asked in study.ask_many(call.numbers, call.effort):
                first_of_all = not trials
                trials += [encode(trial, study.space) for trial in asked]
                last, before = time.perf_counter(), last
                self._recent.append(last - before)
                first = last if first_of_all else first
                if last + statistics.median(self._recent) > first + call.seconds:
                    break
        except RayboError as error:
            return Proposals(trials, time.perf_counter() - start, error)
        return Proposals(trials, time.perf_counter() - start)

    def _updated_study(self, call: Call) -> Study:
        if self._study is None:
            search = self._search
            method = build_method(search.method, search.space, search.options)
            self._study = Study(search.space, method, search.objective, search.seed, search.snap)
        study = self._study
        for number in call.dropped:
            known = study.trials.get(number)
            if known is not None and known.state is State.PENDING:
                study.drop(number)
        for record in call.updates:
            known = study.trials.get(record.number)
            if known is None:
                study.add(decode(record, study.space))
            else:
                study.settle(record)
        return study


def keep_freed_memory() -> None:
    """Have this process keep the memory that its arrays free, where the C library is glibc.

    Otherwise every large array is new memory of the system: a fit to 500 rows takes 1.5 times as
    long, and a thousand slots wait (`raybo bench scale --only slots`).
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the largest that it takes
        library.mallopt(_M_TRIM_THRESHOLD, 256 << 20)  # a dozen matrices of 1,500 rows


@ray.remote(num_cpus=0, max_restarts=0)
class ProposerActor:
    """A Proposer in another process: of a Search given now, or later by `begin`."""

    def __init__(self, search: Search | None = None) -> None:
        keep_freed_memory()
        self._proposer: Any = None
        if search is not None:
            self.begin(search)

    def begin(self, search: Search) -> None:
        """Serve another study from now on."""
        self._proposer = Proposer(search)
        self.load(search)

    def load(self, search: Search) -> None:
        """Load what the models of a study need, ahead of `begin` or in it."""
        if getattr(search.method, "reads_data", True):
            load_libraries()

    def rest(self) -> None:
        """Forget the study."""
        self._proposer = None

    def propose(self, call: Call) -> Proposals:
        """See Proposer."""
        answer: Proposals = self._proposer.propose(call)
        return answer


def start_proposer(spread: bool, search: Any = None) -> Any:
    """Start a proposer, on another node than others of its study if possible where `spread`."""
    actor: Any = ProposerActor
    return actor.options(scheduling_strategy="SPREAD" if spread else "DEFAULT").remote(search)
