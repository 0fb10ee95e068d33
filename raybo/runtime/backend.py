"""Backend: what a coordinator needs from a cluster. RayBackend gets it from Ray."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

import ray
from ray import exceptions

from raybo.runtime.evaluations.evaluate import Evaluation, evaluate_remotely
from raybo.runtime.evaluations.failures import Failure, failure_of_ray
from raybo.runtime.proposals.proposer import Call, Proposals, ProposerActor
from raybo.runtime.timeouts import PROPOSAL_SECONDS
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

    async def dead_nodes(self) -> set[str]:
        """Return the ids of the nodes known to be dead."""


class RayBackend:
    """Evaluations are tasks with Ray's retries off; each lane has a proposer actor.

    Parameters
    ----------
    work, search
        References to the `Work` of the evaluations and the `Search` of the proposers.
    coordinator
        Its handle, for the workers to say that an attempt starts.
    confirm
        Whether a worker waits until the coordinator knows that its attempt starts.
    lanes
        Number of proposers; several are spread over the nodes.
    """

    def __init__(
        self, work: Any, search: Any, coordinator: Any, confirm: bool, lanes: int
    ) -> None:
        self._payload = [work, coordinator, confirm]
        self._search = search
        self._strategy = "SPREAD" if lanes > 1 else "DEFAULT"
        self._proposers: dict[int, Any] = {}
        self._resources: Mapping[str, Any] | None = None
        self._task: Any = None

    async def propose(self, lane: int, call: Call) -> Proposals:
        """Return the answer of the proposer of a lane, which is started on first use."""
        if lane not in self._proposers:
            actor: Any = ProposerActor
            options = {"scheduling_strategy": self._strategy}
            self._proposers[lane] = actor.options(**options).remote(self._search)
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

    def submit(
        self,
        attempt: str,
        config: Any,
        resources: Mapping[str, Any],
        begin: Checkpoint | None = None,
    ) -> Any:
        """Start a task."""
        if resources is not self._resources:  # seldom: making the options takes a while
            self._resources = resources
            options = {"name": "raybo trial", **resources, "max_retries": 0}
            self._task = evaluate_remotely.options(**options)
        return self._task.remote(self._payload, attempt, config, begin)

    async def evaluation(self, handle: Any) -> Evaluation | Failure:
        """Return the evaluation of a task; the wait has no limit, the coordinator cancels it."""
        try:
            found: Evaluation = await handle
        except exceptions.RayError as error:
            return failure_of_ray(error)
        return found

    def cancel(self, handle: Any) -> None:
        """End a task by force: its worker process is killed."""
        ray.cancel(handle, force=True)

    async def dead_nodes(self) -> set[str]:
        """Return the nodes that the cluster has given up."""
        nodes = await asyncio.to_thread(ray.nodes)
        return {node["NodeID"] for node in nodes if not node["Alive"]}
