"""optimize: starts a study on Ray, follows it, and returns its Result."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from raybo import __version__
from raybo.methods.base import Method
from raybo.methods.registry import build_method, describe_method
from raybo.report.live import make_view
from raybo.result import Result
from raybo.runtime.arguments import check_limits, check_resources, check_same_study, put
from raybo.runtime.cluster import connect, default_workers
from raybo.runtime.code import import_path
from raybo.runtime.driver import Callback, Driver
from raybo.runtime.evaluations.evaluate import Work
from raybo.runtime.proposals.proposer import Search
from raybo.runtime.resume import resume_line
from raybo.runtime.session import Payload, Resources, Session, Settings
from raybo.space.any_space import AnySpace, as_space
from raybo.study.journal.journal import read_journal, timestamp
from raybo.study.journal.record import Record
from raybo.study.journal.storage import open_store, spool_folder
from raybo.study.names import fresh_name
from raybo.study.objective import Objective, finite_number


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
    """Optimise `objective` over `space` on a Ray cluster and return the result.

    Parameters
    ----------
    objective
        Takes a config and returns a number, or a dict with the metric in it; the other entries are
        kept with the trial. It runs in worker processes. What it captures is sent to each node
        once and shared by the workers there, so captured arrays are read-only.
    space
        `Space`, `Box`, or a dict of parameters.
    mode, metric
        "min" or "max"; the entry of the result to optimise.
    method, method_options
        Name of a method and its options, or a method object.
    max_trials, max_seconds, target
        Limits: trials in all, failed ones included; seconds of this call, after which no trial is
        started and the running ones are waited for; a value at which to stop at once.
    workers
        Evaluations at a time; by default what the free resources of the cluster allow.
    resources
        What Ray reserves for one evaluation: `num_cpus`, `num_gpus`, `memory`, `resources`,
        `runtime_env`, ..., or a callable of the config that returns them. Default: one CPU.
    timeout, retries
        Seconds that an evaluation may take; how often to try again after a failure that a second
        attempt may avoid (raybo/runtime/evaluations/failures.py has the table).
    seed
        The same seed and the same results, in the same order, give the same trials.
    storage, name, resume
        Folder or URI where studies are kept; name of this one (made up if None). With `resume` a
        study of that name is continued, also a finished one that gets a larger `max_trials`.
    progress
        Whether to show the progress of the study.
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
        When all trials fail, or the method does.
    JournalError
        When the journal is damaged, cannot be written, or belongs to another driver.
    """
    space = as_space(space)
    goal = Objective(mode, metric)
    built = build_method(method, space, method_options)
    check_limits(max_trials, max_seconds, target, workers, timeout, retries)
    storage = str(storage) if "://" in str(storage) else str(Path(storage).absolute())
    name = fresh_name() if name is None else name
    store = open_store(storage, name)
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
    check_same_study(record, header, store.location, resume)
    point_list = tuple(space.to_json(point) for point in points)
    given = tuple((space.to_json(c), finite_number(v, "evaluated: it is")) for c, v in evaluated)

    connect()
    resources = {"num_cpus": 1} if resources is None else resources
    check_resources(resources)
    workers = default_workers(resources) if workers is None else workers
    session_id = uuid.uuid4().hex
    session = Session(
        id=session_id,
        storage=storage,
        spool=str(spool_folder().absolute()),
        holder={"driver": os.getpid(), "host": socket.gethostname(), "session": session_id},
        header=header,
        settings=Settings(max_trials, max_seconds, target, workers, resources, timeout, retries),
        points=point_list,
        given=given,
    )
    payload = Payload(
        put((session, space, goal), "the search space", (session, space)),
        put(Work(objective, space, goal), "the objective", objective),
        put(Search(space, built, goal, seed), "the method", built),
    )
    line = resume_line(name, storage)
    with make_view(progress) as view:
        driver = Driver(session, space, payload, view, callbacks, len(record.order), line)
        try:
            driver.follow()
        finally:
            driver.close()
    # From the folder of the journal, complete even where its last upload to a URI failed.
    record = Record.from_contents(read_journal(store.folder))
    return Result.from_record(record, space, store.location)
