"""Proposers kept from one study to the next, which then need not wait until torch is imported.

They belong to the driver, and end with it. A study borrows some; its coordinator gives each the
Search of that study, which replaces all that the proposer knew.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray import exceptions

from raybo.runtime.proposals.proposer import Search, start_proposer
from raybo.runtime.timeouts import KEEP_SECONDS, REST_SECONDS

# Packages whose modules are not edited while a driver runs.
_FIXED = {"raybo", "numpy", *sys.stdlib_module_names}


@dataclass(frozen=True)
class Borrowed:
    """A proposer, and a reference that is ready when its process has started."""

    actor: Any
    started: Any


class _Plain(pickle.Pickler):
    """Refuses classes, their objects and functions that are not of the fixed packages."""

    def reducer_override(self, value: Any) -> Any:
        kind = value if hasattr(value, "__qualname__") else type(value)
        if str(kind.__module__).partition(".")[0] not in _FIXED:
            raise pickle.PicklingError(f"{kind!r} is not raybo's")
        return NotImplemented


def is_plain(search: Search) -> bool:
    """Whether a Search holds no code of the user: no method, where=, nor class of a value.

    A proposer that has imported a module of the user would not notice that it is edited.
    """
    try:
        _Plain(io.BytesIO()).dump(search)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return False
    return True


class Kept:
    """The proposers of this process that no study uses."""

    def __init__(self) -> None:
        self._waiting: list[Borrowed] = []
        self._cluster: tuple[str, str] | None = None  # on which they wait
        self._lock = threading.Lock()  # studies may run in several threads
        self._timer: threading.Timer | None = None

    def take(self, n: int) -> list[Borrowed]:
        """Return n proposers; new ones where fewer wait."""
        with self._lock:
            waiting = self._waiting if self._cluster == _cluster() else []
            taken, self._waiting = waiting[:n], waiting[n:]
        new = [start_proposer(spread=n > 1) for _ in range(n - len(taken))]
        return taken + [Borrowed(actor, actor.__ray_ready__.remote()) for actor in new]

    def give_back(self, borrowed: Sequence[Borrowed]) -> None:
        """Keep those that have nothing to do, or only start, for KEEP_SECONDS; end the others."""
        if not borrowed:
            return
        answers = [proposer.actor.rest.remote() for proposer in borrowed]
        ray.wait(answers, num_returns=len(answers), timeout=REST_SECONDS)
        for proposer, answer in zip(borrowed, answers, strict=True):
            if _has_come(answer) or not ray.wait([proposer.started], timeout=0)[0]:
                self._keep(proposer)
            else:
                ray.kill(proposer.actor)

    def clear(self) -> None:
        """End all."""
        with self._lock:
            if ray.is_initialized() and self._cluster == _cluster():
                for proposer in self._waiting:
                    ray.kill(proposer.actor)
            self._waiting = []

    def _keep(self, proposer: Borrowed) -> None:
        with self._lock:
            if self._cluster != _cluster():
                self._cluster, self._waiting = _cluster(), []
            self._waiting.append(proposer)
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(KEEP_SECONDS, self.clear)
            self._timer.daemon = True
            self._timer.start()


kept = Kept()


def _cluster() -> tuple[str, str]:
    """Return what changes when this process leaves a cluster and joins it again, or another."""
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_job_id()


def _has_come(answer: Any) -> bool:
    """Whether an answer is there, and no error."""
    try:
        ray.get(answer, timeout=0)
    except exceptions.RayError:
        return False
    return True
