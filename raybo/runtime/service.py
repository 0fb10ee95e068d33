"""Service: a coordinator as its actor serves it. Errors become answers, so that none is lost."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from raybo.errors import RayboError, StudyError
from raybo.runtime.backend import RayBackend
from raybo.runtime.coordinator import Coordinator
from raybo.runtime.session import Plan
from raybo.runtime.writer import Ledger
from raybo.space.any_space import AnySpace
from raybo.study.journal.journal import Journal
from raybo.study.journal.storage import open_store
from raybo.study.objective import Objective

_LOCK_SECONDS = 30.0  # a killed driver's coordinator needs some seconds to end
_FETCH_SECONDS = 60.0  # for the plan to arrive
_GATHER_SECONDS = 0.05  # news is handed over in batches: fast trials come by the hundred


class Service:
    """Opens the journal, runs the coordinator, answers the driver."""

    def __init__(self, plan: Plan, space: AnySpace, objective: Objective, backend: Any) -> None:
        self._coordinator: Coordinator | None = None
        self._run: asyncio.Task[None] | None = None
        self._error: tuple[str, str] | None = None
        self._polled = time.monotonic()
        try:
            self._coordinator = Coordinator(plan, _open_ledger(plan), backend, space, objective)
        except (RayboError, OSError) as error:
            kind = type(error).__name__ if isinstance(error, RayboError) else "JournalError"
            self._error = kind, str(error)

    async def poll(self, after: int, wait: float) -> dict[str, Any]:
        """State, and the trials acknowledged after the first `after`, as soon as there are any.

        Returns within about `wait` seconds in any case. The first call sets the study going.
        """
        self._polled = time.monotonic()
        coordinator = self._coordinator
        if coordinator is None:
            return {"items": [], "snapshot": None, "state": "failed", "error": self._error}
        if self._run is None:
            self._run = asyncio.get_running_loop().create_task(coordinator.run())
        ledger = coordinator.ledger
        if len(ledger.acknowledged) <= after and not self._run.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await ledger.changed.wait()
                await asyncio.sleep(_GATHER_SECONDS)
        ledger.changed.clear()
        return self._answer(coordinator, after)

    def _answer(self, coordinator: Coordinator, after: int) -> dict[str, Any]:
        record, stop = coordinator.ledger.record, coordinator.stop
        state, error, pending = coordinator.state, None, []
        if self._run is not None and self._run.done() and (crash := self._run.exception()):
            state = "failed"
            error = "StudyFailed", "".join(traceback.format_exception(crash))
        elif state == "failed" and stop is not None:
            error = stop.error or "StudyFailed", stop.text
        if state in ("finished", "failed"):
            pending = [replace(record.entries[n].trial) for n in record.pending]
        numbers = coordinator.ledger.acknowledged[after:]
        return {
            "items": [replace(record.entries[n].trial) for n in numbers],
            "pending": pending,
            "snapshot": coordinator.snapshot(),
            "seconds": record.seconds,
            "state": state,
            "stop": stop,
            "error": error,
        }

    def started(self, attempt: str, node: str, pid: int) -> None:
        """Note that an attempt has begun, and where."""
        if self._coordinator is not None:
            self._coordinator.pool.started(attempt, node, pid)

    def command(self, word: str) -> None:
        """Obey "drain" or "stop"."""
        if self._coordinator is not None:
            {"drain": self._coordinator.drain, "stop": self._coordinator.stop_now}[word]()

    @property
    def silent(self) -> float:
        """Seconds since the driver last polled."""
        return time.monotonic() - self._polled


@ray.remote(num_cpus=0, max_restarts=0)
class CoordinatorActor:
    """A Service in a process of its own; made again, it replays the journal and goes on.

    The driver makes it again, not Ray: when memory runs short, Ray's monitor first kills what Ray
    could restart, so a restartable coordinator would die for the evaluation that eats the memory.
    """

    def __init__(self, who: Mapping[str, Any]) -> None:
        self._who = who
        self._service: Service | None = None
        self._opening = asyncio.Lock()

    async def poll(self, after: int, wait: float, parcel: list[Any]) -> dict[str, Any]:  # noqa: D102
        async with self._opening:
            if self._service is None:
                async with asyncio.timeout(_FETCH_SECONDS):
                    plan, space, objective = await parcel[0]
                me = ray.get_runtime_context().current_actor
                backend = RayBackend(parcel[1], parcel[2], me, plan.lanes)
                self._service = Service(plan, space, objective, backend)
        return await self._service.poll(after, wait)

    async def started(self, attempt: str, node: str, pid: int) -> None:  # noqa: D102
        if self._service is not None:
            self._service.started(attempt, node, pid)

    async def command(self, word: str) -> None:  # noqa: D102
        if self._service is not None:
            self._service.command(word)

    async def who(self) -> dict[str, Any]:  # noqa: D102
        silent = 0.0 if self._service is None else self._service.silent
        return {**self._who, "silent": silent}


def _open_ledger(plan: Plan) -> Ledger:
    store = open_store(plan.storage, plan.name, Path(plan.spool))
    store.fetch(plan.who)
    ledger = Ledger(store, Journal(store.folder, plan.who, _LOCK_SECONDS))
    name = ledger.record.header.get("name", plan.name)
    if name != plan.name:
        raise StudyError(
            f"the folder of study {plan.name!r} holds the study {name!r}; choose another name"
        )
    return ledger
