"""Backend: what a coordinator needs from a cluster. RayBackend gets it from Ray."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import ray
from ray import exceptions

from raybo.runtime.evaluations.dispatch import Dispatch, Job
from raybo.runtime.evaluations.evaluate import Evaluation, evaluate_remotely
from raybo.runtime.evaluations.evaluator import EvaluatorActor, Order
from raybo.runtime.evaluations.failures import Failure, failure_of_ray
from raybo.runtime.proposals.proposer import Call, Proposals, start_proposer
from raybo.runtime.session import Session
from raybo.runtime.timeouts import FETCH_SECONDS, PROPOSAL_SECONDS
from raybo.study.trial import Checkpoint

logger = logging.getLogger(__name__)


class ProposerLost(Exception):  # noqa: N818  (an event, answered by starting another)
    """The proposer of a lane died; the next call goes to a new one, which knows no trials."""


class ProposerFailed(Exception):  # noqa: N818  (carries the method's own error)
    """The method raised an error that is not one of raybo's."""


class Backend(Protocol):
    """Proposers and evaluations somewhere else."""

    async def propose(self, lane: int, call: Call) -> Proposals:
        """Return the answer of the proposer of a lane."""

    def submit(
        self,
        attempt: str,
        config: Any,
        resources: Mapping[str, Any],
        begin: Checkpoint | None = None,
    ) -> Any:
        """Start an evaluation, from a checkpoint if one is given, and return its handle."""

    async def evaluation(self, handle: Any) -> Evaluation | Failure:
        """Return an evaluation when it has ended, or why there is none."""

    def cancel(self, handle: Any) -> None:
        """End an evaluation by force."""

    async def end(self, handle: Any) -> bool:
        """Cancel an evaluation that takes too long; return whether that is its own doing.

        If it is not, `evaluation` returns how it was lost.
        """

    async def dead_nodes(self) -> set[str]:
        """Return the ids of the nodes known to be dead."""

    async def close(self) -> None:
        """Return when the evaluations that were cancelled have had time to end."""


class RayBackend:
    """Evaluations are tasks with Ray's retries off, or coroutines in evaluators.

    Each lane has a proposer actor: one that the driver has lent, or a new one.

    Parameters
    ----------
    session
        The session to run.
    work, search
        References to the `Work` of the evaluations and the `Search` of the proposers.
    lent
        Proposers of the driver.
    coordinator
        Its handle, for the workers to say that an attempt starts and what it reports.
    started
        Is told that an attempt at a coroutine starts: which, on which node, in which process.
    """

    def __init__(
        self,
        session: Session,
        work: Any,
        search: Any,
        lent: Iterable[Any],
        coordinator: Any,
        started: Callable[[str, str, int], None],
    ) -> None:
        settings = session.settings
        # A worker waits until the coordinator knows of its attempt if the time of that is limited.
        self._payload = [work, coordinator, settings.timeout is not None]
        self._search = search
        self._spread = session.lanes > 1
        self._lent = list(lent)
        self._proposers: dict[int, Any] = {}
        self._resources: Mapping[str, Any] | None = None
        self._task: Any = None
        self._dispatch: Dispatch | None = None
        resources: Any = settings.resources
        if session.processes:
            actor: Any = EvaluatorActor
            actor = actor.options(**{"scheduling_strategy": "SPREAD", **resources})
            self._dispatch = Dispatch(
                lambda: actor.remote([work, coordinator]),
                settings.workers,
                session.processes,
                started,
            )

    async def propose(self, lane: int, call: Call) -> Proposals:
        """Return the answer of the proposer of a lane, which is started on first use."""
        if lane not in self._proposers:
            self._proposers[lane] = await self._proposer()
        try:
            async with asyncio.timeout(PROPOSAL_SECONDS):
                answer: Proposals = await self._proposers[lane].propose.remote(call)
        except exceptions.RayTaskError as error:
            raise ProposerFailed(str(error)) from None
        except (exceptions.RayError, TimeoutError) as error:
            logger.warning("the proposer of lane %d was lost (%s): starting another", lane, error)
            ray.kill(self._proposers.pop(lane))
            raise ProposerLost(type(error).__name__) from None
        return answer

    async def _proposer(self) -> Any:
        """Return a proposer that was lent and answers, else a new one."""
        while self._lent:
            actor = self._lent.pop()
            with contextlib.suppress(exceptions.RayError, TimeoutError):
                async with asyncio.timeout(FETCH_SECONDS):
                    await actor.begin.remote(self._search)
                return actor
        return start_proposer(self._spread, self._search)

    def submit(
        self,
        attempt: str,
        config: Any,
        resources: Mapping[str, Any],
        begin: Checkpoint | None = None,
    ) -> Any:
        """Start a task, or have a coroutine started."""
        if self._dispatch is not None:
            return self._dispatch.submit(Order(attempt, config, begin))
        if resources is not self._resources:  # seldom: making the options takes a while
            self._resources = resources
            options = {"name": "raybo trial", **resources, "max_retries": 0}
            self._task = evaluate_remotely.options(**options)
        return self._task.remote(self._payload, attempt, config, begin)

    async def evaluation(self, handle: Any) -> Evaluation | Failure:
        """Return the evaluation of a task; the wait has no limit, the coordinator cancels it."""
        if isinstance(handle, Job):
            return await handle.answer
        try:
            found: Evaluation = await handle
        except exceptions.RayError as error:
            return failure_of_ray(error)
        return found

    def cancel(self, handle: Any) -> None:
        """End a task by force: its worker process is killed. A coroutine is cancelled."""
        if self._dispatch is not None:
            self._dispatch.cancel(handle)
        else:
            ray.cancel(handle, force=True)

    async def end(self, handle: Any) -> bool:
        """Cancel an evaluation that takes too long; return whether that is its own doing.

        It may not be that of a coroutine, which others in its process may have blocked.
        """
        if self._dispatch is not None:
            return await self._dispatch.end(handle)
        self.cancel(handle)
        return True

    async def close(self) -> None:
        """Return when the coroutines that were cancelled have ended."""
        if self._dispatch is not None:
            await self._dispatch.close()

    async def dead_nodes(self) -> set[str]:
        """Return the nodes that the cluster has given up."""
        nodes = await asyncio.to_thread(ray.nodes)
        return {node["NodeID"] for node in nodes if not node["Alive"]}
