"""Remote evaluation of one config. Runs in the workers, hence loads no torch."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import ray

from raybo.errors import ObjectiveError
from raybo.runtime.evaluations.failures import failure_of_exception, failure_of_result
from raybo.runtime.evaluations.plain_json import plain_extra
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective

_FETCH_SECONDS = 600.0  # for the objective and its data to arrive on a node


@dataclass(frozen=True)
class Work:
    """What every evaluation needs: put into the object store once, read once per process."""

    function: Callable[[dict[str, Any]], Any]
    space: AnySpace
    objective: Objective


def evaluate(work: Work, config: Mapping[str, Any]) -> dict[str, Any]:
    """Outcome of one config (in JSON): `value` and `extra`, or `failure`; `started`, `seconds`.

    Whatever the objective does short of ending the process is in the outcome, as plain data: an
    exception that cannot be pickled, or a result that is huge, never travels.
    """
    started, clock = time.time(), time.perf_counter()
    outcome: dict[str, Any]
    try:
        value, extra = work.objective.parse(work.function(work.space.from_json(config)))
        outcome = {"value": value, "extra": plain_extra(extra)}
    except ObjectiveError as error:
        outcome = {"failure": asdict(failure_of_result(str(error)))}
    except (Exception, SystemExit) as error:  # noqa: BLE001  (any fault of the user's code)
        outcome = {"failure": asdict(failure_of_exception(error))}
    return {**outcome, "started": started, "seconds": time.perf_counter() - clock}


@ray.remote(max_retries=0)
def evaluate_remotely(
    parcel: list[Any], attempt: str, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Evaluate in a worker; tell the coordinator that it has begun, and where."""
    work = _unpack(parcel[0])
    parcel[1].started.remote(attempt, _node(), os.getpid())
    return evaluate(work, config)


@functools.lru_cache(maxsize=1)  # the last study's objective; a worker process serves many trials
def _unpack(ref: ray.ObjectRef[Work]) -> Work:
    work: Work = ray.get(ref, timeout=_FETCH_SECONDS)
    return work


@functools.cache
def _node() -> str:
    return str(ray.get_runtime_context().get_node_id())
