"""Backend: what a coordinator needs from the cluster; here from Ray, in tests from anything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

import ray
from ray import exceptions

from raybo.runtime.evaluations.evaluate import evaluate_remotely
from raybo.runtime.evaluations.failures import Failure, failure_of_ray
from raybo.runtime.proposals.proposer import ProposerActor

logger = logging.getLogger(__name__)

PROPOSAL_SECONDS = 1800.0  # a proposer silent for longer is replaced


class ProposerLost(Exception):  # noqa: N818  (an event, answered by starting another)
    """The proposer of a lane died; another one, which knows nothing yet, takes its place."""


class ProposerFailed(Exception):  # noqa: N818  (carries the method's own error)
    """The method raised an error that is not one of raybo's."""


class Backend(Protocol):
    """Proposers and evaluations somewhere else."""

    async def propose(self, lane: int, *call: Any) -> dict[str, Any]:
        """Answer of the proposer of a lane to a call of Proposer.propose."""

    def submit(self, attempt: str, config: Any, resources: Mapping[str, Any]) -> Any:
        """Start an evaluation; returns its handle."""

    async def outcome(self, handle: Any) -> dict[str, Any] | Failure:
        """Outcome of an evaluation, as `evaluate` returns it, or why there is none."""

    def cancel(self, handle: Any) -> None:
        """End an evaluation by force."""

    async def dead_nodes(self) -> set[str]:
        """Ids of the nodes known to be dead."""


class RayBackend:
    """Evaluations are tasks with Ray's retries off; each lane has an actor.

    Parameters
    ----------
    work, search
        References to the `Work` of the evaluations and the `Search` of the proposers.
    me
        Handle of the coordinator, to which a worker says that it has begun.
    lanes
        Number of proposers; several are spread over the nodes.
    """

    def __init__(self, work: Any, search: Any, me: Any, lanes: int) -> None:
        self._parcel = [work, me]
        self._search = search
        self._strategy = "SPREAD" if lanes > 1 else "DEFAULT"
        self._proposers: dict[int, Any] = {}
        self._resources: Mapping[str, Any] | None = None
        self._task: Any = None

    async def propose(self, lane: int, *call: Any) -> dict[str, Any]:
        """Answer of the proposer of a lane, which is started on first use."""
        if lane not in self._proposers:
            actor: Any = ProposerActor
            options = {"scheduling_strategy": self._strategy}
            self._proposers[lane] = actor.options(**options).remote(self._search)
        try:
            ref = self._proposers[lane].propose.remote(*call)
            async with asyncio.timeout(PROPOSAL_SECONDS):
                answer: dict[str, Any] = await ref
        except exceptions.RayTaskError as error:
            raise ProposerFailed(str(error)) from None
        except (exceptions.RayError, TimeoutError) as error:
            logger.warning("the proposer of lane %d was lost (%s): starting another", lane, error)
            ray.kill(self._proposers.pop(lane))
            raise ProposerLost(type(error).__name__) from None
        return answer

    def submit(self, attempt: str, config: Any, resources: Mapping[str, Any]) -> Any:
        """Start a task."""
        if resources is not self._resources:  # seldom: making the options takes a while
            self._resources = resources
            options = {"name": "raybo trial", **resources, "max_retries": 0}
            self._task = evaluate_remotely.options(**options)
        return self._task.remote(self._parcel, attempt, config)

    async def outcome(self, handle: Any) -> dict[str, Any] | Failure:
        """Outcome of a task. Its wait has no limit of its own: the coordinator cancels it."""
        try:
            outcome: dict[str, Any] = await handle
        except exceptions.RayError as error:
            return failure_of_ray(error)
        failure = outcome.get("failure")
        return outcome if failure is None else {**outcome, "failure": Failure(**failure)}

    def cancel(self, handle: Any) -> None:
        """End a task by force: its worker process is killed."""
        ray.cancel(handle, force=True)

    async def dead_nodes(self) -> set[str]:
        """Nodes that the cluster has given up."""
        nodes = await asyncio.to_thread(ray.nodes)
        return {node["NodeID"] for node in nodes if not node["Alive"]}
