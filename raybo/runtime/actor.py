"""CoordinatorActor: the Ray actor of a coordinator.

A process that is handed its handle imports this module, every worker among them: what only the
coordinator needs is imported where it is made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from raybo.errors import StudyError
from raybo.runtime.timeouts import FETCH_SECONDS

if TYPE_CHECKING:
    from raybo.runtime.coordinator import Command, Coordinator, News
    from raybo.runtime.session import Payload
    from raybo.study.trial import Batch


@ray.remote(num_cpus=0, max_restarts=0)
class CoordinatorActor:
    """A Coordinator, made by the first poll from the payload that each poll brings.

    The driver starts it again, not Ray: when memory runs short, Ray's monitor first kills what Ray
    could restart, so a restartable coordinator would die for the evaluation that needs the memory.
    """

    def __init__(self, holder: Mapping[str, Any]) -> None:
        self._holder = holder
        self._lent: Sequence[Any] = ()
        self._coordinator: Coordinator | None = None
        self._opening = asyncio.Lock()
        self._raylet = os.getppid()  # Ray's own process on this node, which started this one

    async def lend(self, proposers: Sequence[Any]) -> None:
        """Take proposers of the driver, before the first poll."""
        self._lent = proposers

    async def poll(  # noqa: D102
        self, after: int, wait: float, command: Command, payload: Payload, elapsed: float
    ) -> News:
        async with self._opening:
            if self._coordinator is None:
                self._coordinator = await self._make(payload, elapsed)
        news = await self._coordinator.poll(after, wait, command)
        return replace(news, orphaned=os.getppid() != self._raylet)

    async def _make(self, payload: Payload, elapsed: float) -> Coordinator:
        from raybo.runtime.backend import RayBackend  # noqa: PLC0415
        from raybo.runtime.coordinator import Coordinator  # noqa: PLC0415
        from raybo.runtime.writer import open_journal  # noqa: PLC0415

        try:
            async with asyncio.timeout(FETCH_SECONDS):
                session, space, objective = await payload.session
        except ray.exceptions.RaySystemError as error:
            raise StudyError(
                f"the space cannot be read in another process: {str(error).splitlines()[-1]}; a "
                "function in where= must stand in the script itself, or in a module that is "
                "installed"
            ) from None
        me = ray.get_runtime_context().current_actor
        search, lent = payload.search, self._lent
        backend = RayBackend(session, payload.work, search, lent, me, self._started)
        return Coordinator(session, open_journal(session), backend, space, objective, elapsed)

    async def loading(self, attempt: str, node: str, pid: int) -> None:  # noqa: D102
        if self._coordinator is not None:
            self._coordinator.loading(attempt, node, pid)

    async def started(self, attempt: str, node: str, pid: int) -> None:  # noqa: D102
        self._started(attempt, node, pid)

    async def report(self, attempt: str, batch: Batch) -> bool:  # noqa: D102
        return self._coordinator is None or await self._coordinator.report(attempt, batch)

    def _started(self, attempt: str, node: str, pid: int) -> None:
        if self._coordinator is not None:
            self._coordinator.started(attempt, node, pid)

    async def holder(self) -> dict[str, Any]:  # noqa: D102
        coordinator = self._coordinator
        seconds = 0.0 if coordinator is None else coordinator.seconds_since_poll
        return {**self._holder, "seconds_since_poll": seconds}
