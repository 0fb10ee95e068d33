"""The user's code: finds an objective by its path, and brings its modules to the workers."""

from __future__ import annotations

import functools
import hashlib
import importlib
import logging
import os
import pickle
import socket
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from raybo.bytecode import code_text
from raybo.errors import StudyError
from raybo.runtime.timeouts import PROBE_SECONDS

logger = logging.getLogger(__name__)


def load_objective(path: str, folder: Path) -> Any:
    """Return the callable at `path`, MODULE:FUNCTION; modules in `folder` come first.

    Raises
    ------
    StudyError
        When there is no such module or attribute, the import fails, or it is not callable.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise StudyError(
            f"{path!r} is not of the form MODULE:FUNCTION, such as train:objective for the "
            "function objective in train.py"
        )
    module_name = _dotted(module_name)
    found: Any = _import(module_name, folder)
    for part in name.split("."):
        if not hasattr(found, part):
            there = [k for k, v in vars(found).items() if callable(v) and not k.startswith("_")]
            raise StudyError(
                f"{module_name} has no {name!r}; it has {', '.join(there[:8]) or 'no functions'}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise StudyError(f"{path} is a {type(found).__name__}, not a function of a config")
    return found


def is_defined_in(path: str, folder: Path) -> bool:
    """Whether `load_objective` gets from `path` what a module in `folder` defines.

    Imports that module, and only if it is there. A function that it has imported from elsewhere
    does not count: the name `train:subprocess.call` is no function of train.py.
    """
    name = _dotted(path.partition(":")[0])
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    file = folder.joinpath(*name.split("."))
    if not file.with_suffix(".py").is_file() and not (file / "__init__.py").is_file():
        return False
    return getattr(load_objective(path, folder), "__module__", None) == name


def _dotted(name: str) -> str:
    return name.removesuffix(".py").strip("/").replace("/", ".")


def import_path(function: Any) -> str | None:
    """Return the MODULE:FUNCTION from which `load_objective` gets `function`, or None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if found is function else None


def code_hash(function: Any) -> str | None:
    """Return a hash of what `function` does, None where it cannot be seen.

    Comments, names of local variables and the place in a file do not count, nor do functions that
    it calls. Versions of Python compile differently, so theirs is part of the answer.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        function = getattr(type(function), "__call__", None)  # noqa: B004  (its code is wanted)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{version}:{hashlib.sha256(code_text(code).encode()).hexdigest()[:16]}"


def is_changed(old: str | None, new: str | None) -> bool:
    """Whether two answers of `code_hash` are known to be of different code."""
    same_python = old and new and old.partition(":")[0] == new.partition(":")[0]
    return bool(same_python) and old != new


def _import(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    except Exception as error:
        lacking = error.name if isinstance(error, ModuleNotFoundError) else None
        if lacking and f"{name}.".startswith(f"{lacking}."):
            raise StudyError(
                f"there is no module {name!r} in {folder}, nor is one installed; run this in the "
                "folder that holds it"
            ) from error
        raise StudyError(
            f"module {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def share_folder(folder: Path, objective: Any) -> None:
    """Join or start Ray so that its workers can use `objective`, whose code lies in `folder`.

    Ray puts the current folder of the driver on the path of every worker. That is enough on one
    machine, in a folder that all nodes share, and under `ray job submit --working-dir`. Where
    another machine does not have the folder, the modules that were imported from it are sent
    with the objective, by value. Modules that it imports only when it is called are not: install
    these on the cluster, or submit a job.
    """
    # Imported here: a wrong path must not cost the seconds that ray takes.
    from raybo.runtime.cluster import connect  # noqa: PLC0415

    connect()
    modules = _modules_in(folder)
    if modules and not _is_everywhere(str(modules[0].__file__)):
        send_by_value(modules, objective)


def send_by_value(modules: list[ModuleType], objective: Any) -> None:
    """Send the code of `modules` with the objective, unless it holds what cannot be pickled."""
    import ray  # noqa: PLC0415  (slow to import)

    cloudpickle: Any = ray.cloudpickle
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        cloudpickle.dumps(objective)
    except (TypeError, pickle.PicklingError, AttributeError, RecursionError) as error:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
        logger.warning(
            "the objective cannot be sent to the workers (%s); they must be able to import it: "
            "use a folder that all nodes share, or ray job submit --working-dir .",
            error,
        )


def _is_everywhere(file: str) -> bool:
    """Whether another machine of the cluster has `file`; one is asked for all."""
    import ray  # noqa: PLC0415  (slow to import)

    here = socket.gethostname()
    list_nodes: Any = ray.nodes
    nodes = [n for n in list_nodes() if n["Alive"] and n["NodeManagerHostname"] != here]
    if not nodes:
        return True
    affinity: Any = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    there = affinity(nodes[0]["NodeID"], soft=False)
    ask = ray.remote(num_cpus=0, scheduling_strategy=there)(os.path.isfile)
    try:
        return bool(ray.get(ask.remote(file), timeout=PROBE_SECONDS))
    except ray.exceptions.RayError:  # a node that does not answer: by value is the safe way
        return False


def _modules_in(folder: Path) -> list[ModuleType]:
    """Return the user's imported modules: their files lie in `folder`, and not in a package."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name == "__main__" or name.partition(".")[0] == "raybo":
            continue
        path = Path(file)
        if path.is_relative_to(folder) and "site-packages" not in path.parts:
            found.append(module)
    return found
