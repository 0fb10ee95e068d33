"""Suggestions: when the next suggestion is computed, and which results it has seen.

A suggestion is started when Tune first asks for it, and sees all results known by then. While it
is computed Tune goes on: it keeps one trial waiting beside those that run, or asks again shortly.

The process that computes suggestions starts with the first question, beside the first trials.
Where the points of the initial design are known without the method, they do not wait for it. The
next one does: one more point that fills the space costs more than a wait of seconds.

With short trials that would leave workers idle. So where trials take under SHORT_SECONDS on
average (by the `time_total_s` of their results) and two or more are live, the next suggestion is
started as soon as one is handed out, with reduced effort if need be. By the time Tune asks for it,
it may lack results: if more than half as many as trials are live, it is started again. If it is
not ready, Tune waits up to SHORT_SECONDS, as for the first one, whose process loads torch: of
several actors without a next trial Tune keeps one, and may run one trial at a time from then on.

All of this depends on Tune's calls and their results alone, not on the time that computing takes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raybo.methods.base import FULL, Effort
from raybo.runtime.deaths import Deaths
from raybo.runtime.proposals.lane import Unsent
from raybo.runtime.proposals.pacing import affordable_effort
from raybo.runtime.proposals.proposer import (
    Call,
    Proposals,
    Proposer,
    ProposerActor,
    Search,
)
from raybo.runtime.timeouts import PROPOSAL_SECONDS
from raybo.space.design import design_point, design_size
from raybo.study.trial import TrialRecord, encode
from raybo.tune.trials import Trials

logger = logging.getLogger(__name__)

WAIT_SECONDS = 0.05  # that Tune's loop may wait for a suggestion while long trials are live
LOOK_SECONDS = 1.0  # between two looks whether Ray still runs, in a longer wait
SHORT_SECONDS = 10.0  # for longer trials, waiting for a suggestion costs about a percent

MODEL_FREE = ("random", "sobol")  # computed in this process: as fast as anywhere
# By default the initial designs of these, of `design_size` points and until two values are known,
# are points of a Sobol sequence.
SOBOL_FIRST = ("auto", "bo", "addtree")


class Computer(Protocol):
    """Computes one suggestion at a time."""

    @property
    def knows_next(self) -> bool:
        """Whether the next suggestion is known without the method."""

    def changed(self, number: int) -> None:
        """Note a trial that is new or has changed."""

    def dropped(self, number: int) -> None:
        """Note a trial that was removed before it was evaluated."""

    def compute(self, number: int, effort: Effort) -> None:
        """Start to compute the suggestion for trial `number`."""

    def fill(self, number: int) -> None:
        """Suggest a space-filling point for trial `number`."""

    def poll(self, seconds: float | None) -> Proposals | None:
        """Return the suggestion, waiting at most `seconds` for it (None: until it is there)."""


@dataclass
class _Next:
    """The suggestion that is being computed, or is ready."""

    number: int
    n_seen: int  # results that it has seen
    asked: bool  # whether Tune has asked for it: from then on it is not started again


class Suggestions:
    """The suggestions for the trials of a searcher."""

    def __init__(self, computer: Computer, trials: Trials) -> None:
        self._computer = computer
        self._trials = trials
        self._next: _Next | None = None

    @property
    def next_number(self) -> int | None:
        """Number of the suggestion that is being computed, if there is one."""
        return None if self._next is None else self._next.number

    def changed(self, number: int) -> None:
        """Note a trial that is new or has changed."""
        self._computer.changed(number)

    def dropped(self, number: int) -> None:
        """Note a trial that was removed before it was evaluated."""
        self._computer.dropped(number)

    def ask(self) -> TrialRecord | None:
        """Return the next suggestion; None while it is not ready and trials are live.

        Raises
        ------
        RayboError
            SpaceExhausted, or the error with which the method refused its options or the space.
        """
        self._ask_for_next()
        wait = WAIT_SECONDS if self._short_seconds is None else SHORT_SECONDS
        answer = self._computer.poll(wait if self._trials.live else None)
        if answer is None:
            return None
        self._next = None
        if answer.error is not None:
            raise answer.error
        return answer.trials[0]

    def prepare(self) -> None:
        """Start the suggestion after the one just handed out, if trials are short."""
        ahead = self._short_seconds is not None and len(self._trials.live) > 1
        if ahead and not self._computer.knows_next:
            self._start(self._trials.take_number(), asked=False)

    @property
    def _short_seconds(self) -> float | None:
        """What trials take; None where that is long, or not known."""
        seconds = self._trials.mean_seconds
        return seconds if seconds is not None and seconds < SHORT_SECONDS else None

    def _ask_for_next(self) -> None:
        if self._next is None:
            self._start(self._trials.take_number(), asked=True)
            return
        missing = self._trials.n_finished - self._next.n_seen
        if not self._next.asked and missing > (len(self._trials.live) + 1) // 2:
            self._start(self._next.number, asked=True)
        self._next.asked = True

    def _start(self, number: int, asked: bool) -> None:
        trials = self._trials
        self._next = _Next(number, trials.n_finished, asked)
        seconds = trials.mean_seconds
        rate = 0.0 if seconds is None else len(trials.live) / max(seconds, 1e-3)
        if self._computer.knows_next:
            self._computer.fill(number)
        else:
            self._computer.compute(number, affordable_effort(rate))


class BackgroundProposer:
    """A Proposer off Tune's loop, which must not wait for a model nor share its interpreter lock.

    It is an actor that takes no CPUs, on the node of the driver if possible. Where there is no
    Ray, and for methods without a model, suggestions are computed in this process, at once. Where
    the proposer fails, a space-filling point is suggested: an exception would end the whole run.
    """

    def __init__(self, search: Search, trials: Trials) -> None:
        self._search = search
        self._trials = trials
        self._unsent = Unsent()
        self._number, self._effort = 0, FULL
        self._answer: Proposals | None = None
        self._here: Proposer | None = None
        self._actor: Any = None
        self._ref: Any = None
        self._since = 0.0  # when the call was sent
        self._deaths = Deaths()
        self._start()

    @property
    def knows_next(self) -> bool:
        """Whether the next suggestion is a point of an initial design known without the method."""
        # Options may be wrong, and points of a finite space may have been tried: the method knows.
        search, trials = self._search, self._trials
        endless = search.space.dense and search.space.cardinality is None
        known = search.method in SOBOL_FIRST and not search.options and endless
        return known and (trials.n_values < 2 or len(trials.by_number) < self._design)

    @property
    def _design(self) -> int:
        return design_size(self._search.space.dim)

    def _start(self) -> None:
        """Start the process, unless it runs or is not needed."""
        if self._actor is None and not self._is_local():
            node = ray.get_runtime_context().get_node_id()
            affinity = NodeAffinitySchedulingStrategy(node, soft=True)
            actor: Any = ProposerActor
            self._actor = actor.options(scheduling_strategy=affinity).remote(self._search)
            self._here, self._unsent = None, Unsent(self._trials.by_number)

    def changed(self, number: int) -> None:
        """Note a trial that is new or has changed."""
        self._unsent.change(number)

    def dropped(self, number: int) -> None:
        """Note a trial that was removed before it was evaluated."""
        self._unsent.drop(number)

    def compute(self, number: int, effort: Effort) -> None:
        """Start to compute the suggestion for trial `number`."""
        # With less than full effort methods wait for the values of the whole design.
        self._effort = FULL if self._trials.n_values < self._design else effort
        self._number, self._answer, self._ref = number, None, None
        self._send()

    def fill(self, number: int) -> None:
        """Suggest a space-filling point for trial `number`."""
        self._number, self._ref = number, None
        self._answer = self._space_filling()

    def poll(self, seconds: float | None) -> Proposals | None:
        """Return the suggestion, waiting at most `seconds` for it (None: until it is there)."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._answer is None:
            left = LOOK_SECONDS if deadline is None else deadline - time.monotonic()
            if ray.is_initialized():
                self._look(min(max(left, 0.0), LOOK_SECONDS))
            else:  # shut down since; ray.wait would start another
                self._send()
            if deadline is not None and time.monotonic() >= deadline:
                break
        return self._answer

    def _is_local(self) -> bool:
        return self._search.method in MODEL_FREE or not ray.is_initialized()

    def _send(self) -> None:
        """Hand the suggestion to whoever computes it."""
        if self._is_local():
            self._compute_here()
            return
        try:
            self._start()
            self._ref = self._actor.propose.remote(self._call())
            self._since = time.monotonic()
        except exceptions.RayError as error:
            self._replace_process(error)

    def _call(self) -> Call:
        changed, dropped = self._unsent.take()
        trials, space = self._trials.by_number, self._search.space
        updates = [encode(trials[number], space) for number in changed]
        # The same number may have been computed before, with fewer results.
        return Call(updates, [*dropped, self._number], [self._number], self._effort)

    def _compute_here(self) -> None:
        if self._here is None:
            self._here = Proposer(self._search)
            self._unsent = Unsent(self._trials.by_number)
        try:
            self._answer = self._here.propose(self._call())
        except Exception as error:  # noqa: BLE001  (in suggest, any error would end the whole run)
            self._here = None
            self._replace_suggestion(repr(error))

    def _look(self, seconds: float) -> None:
        try:
            ready, _ = ray.wait([self._ref], timeout=seconds)
            if ready:
                self._answer = ray.get(self._ref)
                self._deaths.reset()
            elif time.monotonic() - self._since > PROPOSAL_SECONDS:
                ray.kill(self._actor)
                self._actor = None
                self._replace_suggestion(f"no answer in {PROPOSAL_SECONDS:.0f} s")
        except exceptions.RayTaskError as error:
            # Its study may have been left half changed: the next call goes to a new proposer.
            self._actor = None
            self._replace_suggestion(str(error))
        except exceptions.RayError as error:
            self._replace_process(error)

    def _replace_process(self, error: Exception) -> None:
        self._actor, self._ref = None, None
        if self._deaths.add():
            logger.warning(
                "the process that computes suggestions died (%s): starting another", error
            )
            self._send()
        else:
            self._replace_suggestion(f"its process died {self._deaths.count} times ({error})")

    def _replace_suggestion(self, problem: str) -> None:
        logger.warning(
            "suggestion %d fills the space, since the method failed: %s", self._number, problem
        )
        self._answer = self._space_filling()

    def _space_filling(self) -> Proposals:
        search, number = self._search, self._number
        config: Mapping[str, Any]
        if search.space.dense:
            config = search.space.decode(design_point(search.space, number, search.seed))
        else:
            config = search.space.draw(np.random.default_rng([search.seed, number]))
        if search.snap is not None:
            config = search.snap(config)
        return Proposals([TrialRecord(number, search.space.to_json(config))], 0.0)
