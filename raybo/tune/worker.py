"""Worker: who computes suggestions, one at a time, off Tune's loop.

An actor that takes no CPUs, on the node of the driver if possible: Tune's loop must not wait for
a Gaussian process, nor share an interpreter lock with it. Where there is no Ray, and for methods
without a model, this process computes suggestions at once; the first ones too, where they are
known without the method: the actor gets ready meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raybo.space.design import sobol_point
from raybo.tune.suggester import Answer, Search, Suggester, SuggesterActor

logger = logging.getLogger(__name__)

MODEL_FREE = ("random", "sobol")  # as fast here as anywhere

# While fewer than two values are known these propose the points of a Sobol sequence, by default.
SOBOL_FIRST = ("bo", "addtree")

_PATIENCE = 600.0  # seconds after which a process that computes a suggestion is given up
_MAX_DEATHS = 3  # of the process, in a row, before its suggestion is replaced


class Worker:
    """The suggestion in the making, and who makes it.

    Parameters
    ----------
    search
        What is searched, and how.
    history
        Gives all trials as JSON, for a process that knows nothing yet.
    """

    def __init__(self, search: Search, history: Callable[[], list[dict[str, Any]]]) -> None:
        self._search = search
        self._history = history
        self._updates: list[dict[str, Any]] | None = None  # None: not even the history was sent
        self._call = (0, 0)  # number of the suggestion, and its haste
        self._answer: Answer | None = None
        self._inline: Suggester | None = None
        self._actor: Any = None
        self._ref: Any = None
        self._began = 0.0
        self._deaths = 0
        if not self.knows_first:
            self.start()

    def changed(self, update: dict[str, Any]) -> None:
        """Note a trial, as JSON, that the suggester has to hear of."""
        if self._updates is not None:
            self._updates.append(update)

    @property
    def knows_first(self) -> bool:
        """Whether the first suggestions are known without the method; its process may wait."""
        # Options may be wrong, and points of a finite space may have been tried: the method knows.
        search = self._search
        endless = search.space.dense and search.space.cardinality is None
        return search.method in SOBOL_FIRST and not search.options and endless

    def start(self) -> None:
        """Start the process, unless it runs or is not needed."""
        if self._actor is None and self._search.method not in MODEL_FREE and ray.is_initialized():
            here = ray.get_runtime_context().get_node_id()
            actor: Any = SuggesterActor
            self._actor = actor.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=True)
            ).remote(self._search)
            self._updates = None

    def begin(self, number: int, haste: int) -> None:
        """Begin to compute trial `number`."""
        self._call, self._answer, self._ref = (number, haste), None, None
        self._deaths = 0
        self._send()

    def fill(self, number: int) -> None:
        """Make trial `number` one that fills the space."""
        self._call, self._ref = (number, 0), None
        self._answer = self._space_filling()

    def poll(self, seconds: float | None) -> Answer | None:
        """Return the suggestion, waiting for it so many seconds (None: until it is there)."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._answer is None:
            left = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
            if ray.is_initialized():
                self._look(max(left, 0.0))
            else:  # shut down since; ray.wait would start another
                self._send()
            if deadline is not None and time.monotonic() >= deadline:
                break
        return self._answer

    def _send(self) -> None:
        """Hand the current number to whoever computes it."""
        if self._search.method in MODEL_FREE or not ray.is_initialized():
            self._compute_here()
            return
        try:
            self.start()
            updates, self._updates = self._take_updates(), []
            self._ref = self._actor.suggest.remote(updates, *self._call)
            self._began = time.monotonic()
        except exceptions.RayError as error:
            self._lost(error)

    def _take_updates(self) -> list[dict[str, Any]]:
        return self._history() if self._updates is None else self._updates

    def _compute_here(self) -> None:
        if self._inline is None:
            self._inline, self._updates = Suggester(self._search), None
        updates, self._updates = self._take_updates(), []
        try:
            self._answer = self._inline.suggest(updates, *self._call)
        except Exception as error:  # noqa: BLE001  (in suggest, any error would end the whole run)
            self._inline = None
            self._replace(repr(error))

    def _look(self, seconds: float) -> None:
        try:
            ready, _ = ray.wait([self._ref], timeout=seconds)
            if ready:
                self._answer = ray.get(self._ref)
            elif time.monotonic() - self._began > _PATIENCE:
                ray.kill(self._actor)
                self._actor = None
                self._replace(f"no answer in {_PATIENCE:.0f} s")
        except exceptions.RayTaskError as error:
            # The study may have stopped anywhere inside: begin with a new one.
            self._actor = None
            self._replace(str(error))
        except exceptions.RayError as error:
            self._lost(error)

    def _lost(self, error: Exception) -> None:
        """Start another process, or do without."""
        self._actor, self._ref = None, None
        self._deaths += 1
        if self._deaths >= _MAX_DEATHS:
            self._replace(f"its process died {self._deaths} times ({error})")
            return
        logger.warning("the process that computes suggestions was lost (%s): another", error)
        self._send()

    def _replace(self, problem: str) -> None:
        logger.warning(
            "suggestion %d fills the space, since the method failed: %s", self._call[0], problem
        )
        self._answer = self._space_filling()

    def _space_filling(self) -> Answer:
        space, seed, number = self._search.space, self._search.seed, self._call[0]
        if space.dense:
            config = space.decode(sobol_point(space, number, seed))
        else:
            config = space.draw(np.random.default_rng([seed, number]))
        if self._search.snap is not None:
            config = dict(self._search.snap(config))
        return Answer(space.to_json(config))
