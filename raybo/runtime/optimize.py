"""optimize: starts a study on Ray, follows it, and returns its Result."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raybo import __version__
from raybo.methods.base import Method
from raybo.methods.registry import build_method, describe_method
from raybo.result import Result
from raybo.runtime.arguments import (
    check_folder,
    check_limits,
    check_name,
    check_objective,
    check_resources,
    check_same_study,
    checked_points,
    checked_values,
    explain_unknown,
    put,
)
from raybo.runtime.cluster import connect, default_workers, most_workers
from raybo.runtime.code import code_hash, import_path, is_changed
from raybo.runtime.driver import Callback, Driver, checked_callbacks
from raybo.runtime.evaluations.dispatch import n_processes
from raybo.runtime.evaluations.evaluate import Work, is_async, takes_resume
from raybo.runtime.proposals.kept import is_plain
from raybo.runtime.proposals.proposer import Search, opening
from raybo.runtime.resume import reached, resume_hint
from raybo.runtime.session import Payload, Resources, Session, Settings
from raybo.space.any_space import AnySpace, as_space
from raybo.study.journal.compact import read_record
from raybo.study.journal.journal import timestamp
from raybo.study.journal.storage import open_store, spool_folder
from raybo.study.names import fresh_name
from raybo.study.objective import Constraints, Objective
from raybo.study.steps import Steps
from raybo.study.study import MOST_AT_ONCE, checked_seed
from raybo.views.live import make_view


@explain_unknown
def optimize(
    objective: Callable[[dict[str, Any]], Any],
    space: AnySpace | Mapping[str, Any],
    mode: str = "min",
    metric: str | None = None,
    method: str | Method = "auto",
    method_options: Mapping[str, Any] | None = None,
    max_trials: int | None = 200,
    max_seconds: float | None = None,
    target: float | None = None,
    workers: int | None = None,
    resources: Resources | None = None,
    timeout: float | None = None,
    retries: int = 1,
    seed: int | None = 0,
    storage: str | os.PathLike[str] = "runs",
    name: str | None = None,
    resume: bool = True,
    progress: bool = True,
    callbacks: Iterable[Callback] = (),
    points: Iterable[Mapping[str, Any]] = (),
    evaluated: Iterable[tuple[Mapping[str, Any], float | Mapping[str, Any]]] = (),
    max_failures: int | None = None,
    patience: int | None = None,
    constraints: Constraints | None = None,
    max_steps: int | None = None,
    stop_early: bool = False,
    over: str = "steps",
) -> Result:
    """Optimise `objective` over `space` on a Ray cluster and return the result.

    Parameters
    ----------
    objective
        Takes a config and returns a number, or a dict with the metric in it; the other entries are
        kept with the trial. It may be a generator that yields such results, or call
        `raybo.report`, at each step of a training. One with an argument `resume` that gives the
        paths of checkpoints (`yield loss, path`) goes on from the last of them after a crash or an
        early stop, with `resume=path`. It runs in worker processes. What it captures
        is sent to each node once and shared by the workers there, so captured arrays are
        read-only. An `async def`, with or without `yield`, is for evaluations that wait for
        something else (a job, a service, a subprocess): hundreds of them share a process.
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
        `runtime_env`, ..., or a callable of the config that returns them. Default: one CPU. For
        an async objective, what it reserves for a process of them.
    timeout, retries
        Seconds that an evaluation may take; how often to try again after a failure that a second
        attempt may avoid (raybo/runtime/evaluations/failures.py has the table).
    seed
        The same seed and the same results, in the same order, give the same trials; with one
        worker these are the trials of `Optimizer`. None is any seed.
    storage, name, resume
        Folder or URI where studies are kept; name of this one (made up if None). With `resume` a
        study of that name is continued, also a finished one that gets a larger `max_trials`.
    progress
        Whether to show the progress of the study.
    callbacks
        Functions of a trial, or objects with `on_trial(trial)`, called for each trial that ends,
        when it is in the journal and at most once: a driver that is killed leaves out those that
        it had not called back; `result.trials` has them all. For a paused trial they are called
        when it has finished, at the latest when the study ends. A callback that raises
        StopIteration ends the study when the running trials have finished; one that raises
        another error is not called again.
    points, evaluated
        Configs to evaluate first; pairs of a config and its known result, a number or a dict as
        the objective returns it, which count as data but not towards `max_trials`.
    max_failures, patience
        Failed trials after which the study ends with an error (by default when the first trials
        all fail: 5 or one per worker, ten times as many where some config may work); trials
        without a better value after which it ends.
    constraints
        Bounds of other entries of the result, such as `{"latency": (None, 10.0)}`; None is no
        bound. Where they are kept is learnt, and the best trial keeps all of them.
    max_steps, stop_early, over
        Number of steps after which a trial that reports is complete; the last value is its value.
        With `stop_early` trials that are worse than most at the same step are stopped before, and
        the model learns from the curves of all; one with a checkpoint goes on when it is among
        the better ones after all. With `over="instances"` the steps are instances or folds, the
        same for all trials; their mean is the value of a trial, and one that is surely worse than
        the best is stopped.

    Returns
    -------
    Result
        Also after Ctrl-C or SIGTERM, which waits for the running trials.

    Raises
    ------
    KeyboardInterrupt
        After a second Ctrl-C, which stops at once.
    StudyError
        When the arguments, or the study of that name, do not fit.
    StudyFailed
        When all trials fail, or the method does.
    JournalError
        When the journal is damaged, cannot be written, or belongs to another driver.
    """
    check_objective(objective)
    space = as_space(space)
    goal = Objective(mode, metric, constraints or {})
    limits: dict[str, Any] = {
        "max_trials": max_trials,
        "max_seconds": max_seconds,
        "target": target,
        "workers": workers,
        "timeout": timeout,
        "retries": retries,
        "max_failures": max_failures,
        "patience": patience,
    }
    check_limits(**limits)
    steps = Steps(max_steps, stop_early, over)
    functions = checked_callbacks(callbacks)
    first, known = checked_points(points), checked_values(evaluated, goal)
    for config in (*first, *(config for config, _, _ in known)):
        space.check_allowed(config)
    point_list = tuple(space.to_json(config) for config in first)
    given = tuple(
        {"config": space.to_json(config), "value": value, "extra": extra}
        for config, value, extra in known
    )
    storage = str(storage) if "://" in str(storage) else str(Path(storage).absolute())
    named, name = name is not None, fresh_name() if name is None else name
    check_name(name)
    check_folder(storage)
    with make_view(progress) as view:
        view.phase("loading the method")
        built = build_method(method, space, method_options)
        store = open_store(storage, name)
        record = store.record()
        seed = checked_seed(seed, record.header.get("seed"))
        header: dict[str, Any] = {
            "name": name,
            "space": space.definition(),
            "method": describe_method(built),
            "lanes": built.lanes,
            "mode": mode,
            "metric": metric,
            "constraints": {name: list(bounds) for name, bounds in goal.constraints.items()},
            "max_steps": max_steps,
            "over": over,
            "seed": seed,
            "objective": import_path(objective),
            "raybo": __version__,
            "created": timestamp(),
        }
        check_same_study(record, header, store.location, resume)
        n_ended, code = record.n_ended, code_hash(objective)
        if is_changed(record.session.get("code"), code):
            view.message(
                f"study {name!r}: the code of the objective has changed since its last session; "
                f"if its values cannot be compared with those of the {n_ended} trials so far, "
                "choose another name"
            )
        done = None
        more = given or point_list or record.may_promote
        if max_trials is not None and n_ended >= max_trials and not more:
            done = f"has its {max_trials} trials already", f"max_trials={2 * max_trials}"
        if target is not None and (best := reached(record, target)) is not None:
            done = f"has reached target={target:g} already, with {best:g}", "a better target"
        if done:
            view.message(f"study {name!r} {done[0]}: nothing to do ({done[1]} goes on)")
            return Result.from_record(record, space, store.location)
        view.phase("starting Ray")
        search = Search(space, built, goal, seed)
        n_first = 0 if record.entries or given else workers or MOST_AT_ONCE
        with ThreadPoolExecutor(1) as aside:  # a design needs scipy, which takes as long to load
            designed = aside.submit(opening, search, point_list, n_first)
            connect()
        resources = {"num_cpus": 1} if resources is None else resources
        coroutines = is_async(objective)
        check_resources(resources, coroutines)
        most = most_workers(resources)
        if workers is None:
            limits["workers"] = default_workers(resources)
        elif workers > most and not coroutines:
            view.message(
                f"workers={workers}, but the cluster has room for {most} evaluations at a time: "
                "the others wait"
            )
        view.phase("starting the study")
        session_id = uuid.uuid4().hex
        session = Session(
            id=session_id,
            storage=storage,
            spool=str(spool_folder().absolute()),
            holder={"driver": os.getpid(), "host": socket.gethostname(), "session": session_id},
            header=header,
            settings=Settings(resources=resources, **limits, **asdict(steps)),
            code=code,
            resume_hint=resume_hint(name, storage, header["objective"], named),
            points=point_list,
            given=given,
            opening=tuple(t for t in designed.result() if t.number < limits["workers"]),
            processes=n_processes(limits["workers"], most) if coroutines else 0,
            resumes=takes_resume(objective),
        )
        folder = None if "://" in storage else str(store.folder)
        work = Work(objective, space, goal, folder, steps)
        n_lent = session.lanes if is_plain(search) else 0
        driver = Driver(session, space, view, functions, len(record.order), n_lent)
        try:
            payload = Payload(
                put((session, space, goal), "the search space", (session, space)),
                put(work, "the objective", objective),
                put(search, "the method", built),
            )
            driver.follow(payload)
        finally:
            driver.close()
    # From the folder of the journal, complete even where its last upload to a URI failed.
    return Result.from_record(read_record(store.folder), space, store.location)
