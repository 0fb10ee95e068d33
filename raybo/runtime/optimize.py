"""optimize: starts a study on Ray, follows it, and returns its Result."""

from __future__ import annotations

import functools
import io
import math
import os
import pickle
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import ray

from raybo import __version__
from raybo.errors import StudyError
from raybo.methods.base import Method
from raybo.methods.registry import build_method, describe_method
from raybo.report.live import make_view
from raybo.result import Result
from raybo.runtime.cluster import check_resources, connect, default_workers, driver_node
from raybo.runtime.driver import Callback, Driver, start_actor
from raybo.runtime.evaluations.evaluate import Work, evaluate_remotely
from raybo.runtime.proposals.proposer import Search
from raybo.runtime.service import CoordinatorActor
from raybo.runtime.session import Plan, Resources, Settings
from raybo.space.any_space import AnySpace, as_space
from raybo.space.definition import difference
from raybo.study.journal.journal import timestamp
from raybo.study.journal.record import Record
from raybo.study.journal.storage import Store, open_store, spool_folder
from raybo.study.names import fresh_name, import_path
from raybo.study.objective import Objective, finite_number
from raybo.study.trial import decode


def optimize(
    objective: Callable[[dict[str, Any]], Any],
    space: AnySpace | Mapping[str, Any],
    mode: str = "min",
    metric: str | None = None,
    method: str | Method = "bo",
    method_options: Mapping[str, Any] | None = None,
    max_trials: int | None = 200,
    max_seconds: float | None = None,
    target: float | None = None,
    workers: int | None = None,
    resources: Resources | None = None,
    timeout: float | None = None,
    retries: int = 1,
    seed: int = 0,
    storage: str | os.PathLike[str] = "runs",
    name: str | None = None,
    resume: bool = True,
    progress: bool = True,
    callbacks: Iterable[Callback] = (),
    points: Iterable[Mapping[str, Any]] = (),
    evaluated: Iterable[tuple[Mapping[str, Any], float]] = (),
) -> Result:
    """Optimise `objective` over `space` on a Ray cluster, and return what was found.

    Parameters
    ----------
    objective
        Takes a config and returns a number, or a dict with the metric in it; its other entries are
        kept with the trial. It runs in worker processes; what it captures is sent to each
        node once and shared by its workers, so that captured arrays are read-only.
    space
        `Space`, `Box`, or a dict of parameters.
    mode, metric
        "min" or "max"; the entry of the result to optimise.
    method, method_options
        Name of a method and its options, or a method object.
    max_trials, max_seconds, target
        Limits: trials in all, failed ones included; seconds of this call, after which no
        trial is started and the running ones are waited for; a value at which to stop at once.
    workers
        Evaluations in flight; by default what the free resources of the cluster allow.
    resources
        For one evaluation, passed to Ray: `num_cpus`, `num_gpus`, `memory`, `resources`,
        `runtime_env`, ..., or a callable of the config that returns them. Default: one CPU.
    timeout, retries
        Seconds that an evaluation may take; how often to try again after a fault that may pass
        (the table is in raybo/runtime/evaluations/failures.py).
    seed
        The same seed and the same results, in the same order, give the same trials.
    storage, name, resume
        Folder or URI where studies are kept; name of this one (made up if None). With `resume`, a
        study of that name is continued, also a finished one that is given a larger `max_trials`.
    progress
        Show how far the study is.
    callbacks
        Functions of a trial, or objects with `on_trial(trial)`, called for each trial that ends.
    points, evaluated
        Configs to evaluate first; pairs of a config and its known value, which count as data
        but not towards `max_trials`.

    Returns
    -------
    Result
        Also after Ctrl-C: once waits for the running trials, twice stops now.

    Raises
    ------
    StudyError
        When the arguments, or the study of that name, do not fit.
    StudyFailed
        When all trials fail alike, or the method does.
    JournalError
        When the journal is damaged, cannot be written, or belongs to another driver.
    """
    space = as_space(space)
    goal = Objective(mode, metric)
    built = build_method(method, space, method_options)
    storage = storage if "://" in str(storage) else str(Path(storage).absolute())
    resources = {"num_cpus": 1} if resources is None else resources
    _check_limits(max_trials, max_seconds, target, workers, timeout, retries)
    name = fresh_name() if name is None else name
    store = open_store(str(storage), name)
    header: dict[str, Any] = {
        "name": name,
        "space": space.definition(),
        "method": describe_method(built),
        "lanes": built.lanes,
        "mode": mode,
        "metric": metric,
        "seed": seed,
        "objective": import_path(objective),
        "raybo": __version__,
        "created": timestamp(),
    }
    record = Record.from_contents(store.read())
    _check_same(record, header, store, resume)
    point_list = tuple(space.to_json(point) for point in points)
    given = tuple((space.to_json(c), finite_number(v, "evaluated: it is")) for c, v in evaluated)

    connect()
    _check_options(resources)
    check_resources(resources)
    count = default_workers(resources) if workers is None else workers
    session = uuid.uuid4().hex
    plan = Plan(
        name=name,
        storage=str(storage),
        spool=str(spool_folder().absolute()),
        session=session,
        who={"driver": os.getpid(), "host": socket.gethostname(), "session": session},
        header=header,
        settings=Settings(max_trials, max_seconds, target, count, resources, timeout, retries),
        lanes=built.lanes,
        points=point_list,
        given=given,
    )
    parcel = [
        _put((plan, space, goal), "the search space", (plan, space)),
        _put(Work(objective, space, goal), "the objective", objective),
        _put(Search(space, built, goal, seed), "the method", built),
    ]
    decode_trial = functools.partial(decode, space=space)
    start = functools.partial(start_actor, CoordinatorActor, plan, driver_node())

    with make_view(progress) as view:
        driver = Driver(
            start, parcel, decode_trial, view, callbacks, len(record.order), _resume_line(plan)
        )
        try:
            driver.follow()
        finally:
            driver.close()
    answer = driver.answer
    trials = driver.trials + [decode(item, space) for item in answer["pending"]]
    return Result(
        name=name,
        location=store.location,
        mode=mode,
        metric=metric,
        method=header["method"],
        space=space,
        trials=sorted(trials, key=lambda trial: trial.number),
        elapsed=answer["seconds"],
        stop=answer["stop"],
        use=answer["snapshot"].use,
        lanes=built.lanes,
    )


def _check_limits(
    max_trials: int | None,
    max_seconds: float | None,
    target: float | None,
    workers: int | None,
    timeout: float | None,
    retries: int,
) -> None:
    if max_trials is None and max_seconds is None and target is None:
        raise StudyError("the study would never end; give max_trials, max_seconds or target")
    positive = {
        "max_trials": max_trials,
        "max_seconds": max_seconds,
        "workers": workers,
        "timeout": timeout,
    }
    for name, value in positive.items():
        if value is not None and not value > 0:
            raise StudyError(f"{name} must be positive, got {value!r}")
    if target is not None and math.isnan(target):
        raise StudyError("target must be a number, got nan")
    if retries < 0:
        raise StudyError(f"retries must be 0 or more, got {retries!r}")


def _check_options(resources: Resources) -> None:
    if callable(resources):
        return
    try:
        evaluate_remotely.options(**resources)
    except (TypeError, ValueError) as error:
        raise StudyError(f"resources: Ray refuses {resources!r}: {error}") from error


def _check_same(record: Record, header: Mapping[str, Any], store: Store, resume: bool) -> None:
    """Raise unless the study is new, or may be continued with these arguments."""
    old = record.header
    if not old:
        return
    name = header["name"]
    if old["name"] != name:
        raise StudyError(
            f"the folder of study {name!r} holds the study {old['name']!r}: choose another name"
        )
    if not resume:
        raise StudyError(
            f"study {name!r} exists in {store.location} and resume is False; choose another "
            "name, remove the folder, or continue it with resume=True"
        )
    changes = difference(old["space"], header["space"])
    for key in ("method", "mode", "metric", "seed"):
        if old[key] != header[key]:
            changes.append(f"{key}: was {old[key]!r}, now {header[key]!r}")
    if changes:
        raise StudyError(
            f"study {name!r} in {store.location} was begun with other arguments ("
            + "; ".join(changes)
            + "); call it with the old ones to continue it, or choose another name and pass its "
            "results as evaluated="
        )


def _put(value: Any, what: str, culprit: Any) -> Any:
    """Reference to `value` in the object store; refuses what cannot be sent to another process."""
    try:
        return ray.put(value)
    except (TypeError, pickle.PicklingError, AttributeError, RecursionError) as error:
        found: Any = ray.util.inspect_serializability(culprit, print_file=io.StringIO())[1]
        names = sorted({_name_of(failure) for failure in found}) or [repr(culprit)]
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise StudyError(
            f"{what} cannot be sent to the workers: {', '.join(names[:3])} cannot be pickled "
            f"({reason}); create it inside the function, or load it from a file there"
        ) from error


def _name_of(failure: Any) -> str:
    """Name of what cannot be pickled; Ray's report has had two shapes."""
    path = getattr(failure, "path", None) or (getattr(failure, "name", "?"),)
    return f"{path[-1]} (a {type(failure.obj).__name__})"


def _resume_line(plan: Plan) -> str:
    storage = os.path.relpath(plan.storage) if "://" not in plan.storage else plan.storage
    extra = "" if storage == "runs" else f" --storage {storage}"
    return (
        f"resume with: raybo.optimize(..., name={plan.name!r}, storage={storage!r})  "
        f"or  raybo resume {plan.name}{extra}"
    )
