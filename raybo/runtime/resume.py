"""How to go on with a study that exists."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raybo.errors import MALFORMED, JournalError, RayboError, StudyError
from raybo.runtime.code import is_defined_in, load_objective
from raybo.runtime.session import Settings
from raybo.space.definition import space_from_definition
from raybo.study.journal.record import Record
from raybo.study.outcome import best_record, load_record

_SETTINGS: dict[str, Any] = {
    "max_trials": int,
    "max_seconds": int | float,
    "target": int | float,
    "workers": int,
    "resources": dict,
    "timeout": int | float,
    "retries": int,
    "patience": int,
    "max_steps": int,
    "stop_early": bool,
    "over": str,
}


def resume_arguments(
    name: str,
    storage: str,
    changes: Mapping[str, Any],
    folder: Path,
    objective: str | None = None,
    trusts: Callable[[str], bool] = lambda _: False,
) -> dict[str, Any]:
    """Return the arguments of `optimize` that continue a study, from its journal.

    Parameters
    ----------
    name, storage
        The study, and where it is kept.
    changes
        Limits and resources that differ from those of the last session.
    folder
        Where to look for the module of the objective first.
    objective
        MODULE:FUNCTION of the objective, if not the one that the journal names.
    trusts
        Is asked, with MODULE:FUNCTION, whether to run an objective that only the journal names:
        one that no module in `folder` defines.

    Raises
    ------
    StudyError
        When there is no such study, its budget is spent, the journal cannot hold what is needed
        (an objective that cannot be imported, a method or resources that are objects), or it asks
        for what nobody has confirmed: an objective that is not trusted, a runtime environment.
    """
    record = load_record(name, storage)
    settings = {**_recorded_settings(record), **changes}
    _check_room(record, settings)
    try:
        if settings.get("resources") is None:
            raise StudyError("its resources are a function of the config, or hold objects")
        if "resources" not in changes and "runtime_env" in settings["resources"]:
            raise StudyError(
                "its journal asks for a runtime environment, which can run any program: "
                f"{settings['resources']['runtime_env']!r}; give it again if you trust it"
            )
        arguments = _recorded(record, folder, objective, trusts)
    except RayboError as error:
        raise StudyError(
            f"study {name!r}: {error}; resume it from Python with raybo.optimize(objective, "
            f"space, name={name!r}, storage={storage!r}, ...)"
        ) from error
    except MALFORMED as error:
        raise JournalError(f"study {name!r}: its header is malformed: {error!r}") from error
    return {"name": record.header["name"], "storage": storage, **arguments, **settings}


def _recorded(
    record: Record, folder: Path, objective: str | None, trusts: Callable[[str], bool]
) -> dict[str, Any]:
    header = record.header
    method = header["method"]["name"]
    if objective is None:
        objective = _trusted(header["objective"], folder, trusts)
    if ":" in method:
        raise StudyError(f"its method is an object of {method}")
    return {
        "objective": load_objective(objective, folder),
        "space": space_from_definition(header["space"]),
        "method": method,
        "method_options": header["method"]["options"],
        **{key: header[key] for key in ("mode", "metric", "seed")},
        "constraints": header.get("constraints", {}),
    }


def _recorded_settings(record: Record) -> dict[str, Any]:
    """Return the settings of the last session, checked: a journal may have been edited."""
    settings = record.session.get("settings", {})
    for key, kind in _SETTINGS.items():
        if not isinstance(settings.get(key), kind | None):
            raise JournalError(
                f"study {record.header['name']!r}: the settings of its last session have "
                f"{key}={settings[key]!r}; give it again"
            )
    known = {field.name for field in dataclasses.fields(Settings)}
    return {key: value for key, value in settings.items() if key in known}


def _trusted(path: str | None, folder: Path, trusts: Callable[[str], bool]) -> str:
    """Return the objective that a journal names, if it may be run."""
    if path is None:
        raise StudyError(
            "its objective is a lambda, or a function of a script or notebook; name it with "
            "--objective MODULE:FUNCTION"
        )
    if not is_defined_in(path, folder) and not trusts(path):
        raise StudyError(
            f"its journal names the objective {path!r}, which no module in {folder} defines; "
            "go to the folder of the module, name it with --objective MODULE:FUNCTION, or give "
            "--yes if you trust the journal"
        )
    return path


def _check_room(record: Record, settings: Mapping[str, Any]) -> None:
    """Raise when there is nothing left to do, before Ray is started for it."""
    name, target = record.header["name"], settings.get("target")
    ended, limit = record.n_ended, settings.get("max_trials")
    again = f"go on with raybo resume {shlex.quote(name)}"
    if limit is not None and ended >= limit and not record.may_promote:
        raise StudyError(
            f"study {name!r} has {ended} trials and was to have {limit}; {again} --trials "
            f"{2 * ended}"
        )
    if target is not None and (best := reached(record, target)) is not None:
        raise StudyError(
            f"study {name!r} has reached its target {target:g}, with {best:g}; {again} and a "
            "better --target"
        )


def reached(record: Record, target: float) -> float | None:
    """Return the best value of a study if it is as good as `target`."""
    best = best_record(record)
    if best is None or best.value is None or record.goal.better(target, best.value):
        return None
    return best.value


def resume_hint(
    name: str,
    storage: str,
    path: str | None,
    named: bool,
    typed: str | None = None,
    trials: int | None = None,
) -> str:
    """Return how to go on with a study, in a form that works for it.

    Parameters
    ----------
    name, storage
        The study, and where it is kept.
    path
        MODULE:FUNCTION of its objective, if the objective can be imported.
    named
        Whether the program itself gives the study this name, so that the same call resumes it.
    typed
        MODULE:FUNCTION as a user of the command line gave it.
    trials
        Larger budget that the study needs to go on.
    """
    storage = os.path.relpath(storage) if "://" not in storage else storage
    safe = path is not None and is_defined_in(path, Path.cwd())
    named_again = None if safe else typed or (path if path and not _is_beside(path) else None)
    if safe or named_again:
        options = {
            "--storage": None if storage == "runs" else storage,
            "--objective": named_again,
            "--trials": trials,
        }
        words = [str(w) for item in options.items() if item[1] is not None for w in item]
        dashes = ["--"] if name.startswith("-") else []
        return shlex.join(["raybo", "resume", *words, *dashes, name])
    call = f"raybo.optimize(..., name={name!r}, storage={storage!r})"
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return f"call it again: {call}"
    if named:
        return shlex.join(sys.orig_argv)
    return f"add name={name!r} to the call of raybo.optimize, then {shlex.join(sys.orig_argv)}"


def _is_beside(path: str) -> bool:
    """Whether the module of `path` is found only since it lies beside the script that runs."""
    module = sys.modules.get(path.partition(":")[0].partition(".")[0])
    file, folder = getattr(module, "__file__", None), sys.path[0] if sys.path else ""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or script is None or Path(script).parent.resolve() != Path(folder).resolve():
        return False
    return Path(folder).resolve() in Path(file).resolve().parents[:2]
