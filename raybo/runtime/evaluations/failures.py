"""Failure: why an attempt at a trial failed, and whether to try again.

A failure that is transient, lost, of the setup or an interrupt says nothing about the config, and
the models leave it out; the others are evidence of where trials fail.

Cause        What happened                                          Tried again
exception    the objective raised                                   no: most errors repeat
transient    it raised an OSError (network, files, disk)            up to `retries` times
interrupt    it raised a KeyboardInterrupt                          no
result       it returned no finite number                           no: it would again
metric       it returned a dict without the metric                  no: it would again
crash        the worker process died: exit, signal, native crash    up to `retries` times
memory       Ray's memory monitor killed the worker, or it raised   up to `retries` times
             a MemoryError or ran out of GPU memory
timeout      it ran longer than `timeout`                           no: it would again
lost         the node died or was taken away, a coordinator or      up to MAX_LOSSES times
             driver was restarted, or the process died that many
             coroutines shared
setup        the task could not be started: runtime environment,    no: it would again
             resources
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ray import exceptions

MAX_LOSSES = 10  # a trial lost this often probably kills the node or coordinator itself
REASON_CHARS = 300  # a reason is one line of a table
TRACEBACK_CHARS = 2000

_RETRIED = ("transient", "crash", "memory")
_NOT_THE_USERS = (
    str(Path(__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


@dataclass(frozen=True)
class Failure:
    """One failed attempt."""

    cause: str  # see the table above
    reason: str
    kind: str  # equal for failures that are probably the same fault
    traceback: str = ""

    @property
    def lost(self) -> bool:
        """Whether the attempt was lost through no fault of the trial."""
        return self.cause == "lost"

    def allows_retry(self, errors: int, losses: int, retries: int) -> bool:
        """Whether to try again, after `errors` failed and `losses` lost attempts before this."""
        if self.lost:
            return losses < MAX_LOSSES
        return self.cause in _RETRIED and errors < retries


def failure_of_exception(error: BaseException) -> Failure:
    """Return the failure of an objective that raised `error`."""
    cause = _cause_of(error)
    name, where = type(error).__name__, _where(error)
    text = " ".join(_text(error).split())
    reason = f"{name}: {text}" if text else name
    tail = "".join(traceback.format_exception(error))[-TRACEBACK_CHARS:]
    place = f" ({where})" if where else ""
    return Failure(cause, shorten(reason) + place, f"{name} at {where}", printable(tail))


def failure_of_loading(error: BaseException, trace: str = "") -> Failure:
    """Return the failure of a worker that could not load the objective, or run it at all."""
    name = type(error).__name__
    reason = f"the worker could not run the trial: {name}: {_last_line(error)}"
    if "ModuleNotFoundError" in reason:
        reason += "; give the workers the module, say by resources={'runtime_env': ...}"
    trace = trace or "".join(traceback.format_exception(error))
    return Failure("exception", shorten(reason), name, printable(trace[-TRACEBACK_CHARS:]))


def failure_of_result(message: str) -> Failure:
    """Return the failure of an objective that returned no finite number."""
    return Failure("result", shorten(message), "no finite number")


def failure_of_metric(message: str) -> Failure:
    """Return the failure of an objective that returned a dict without the metric."""
    return Failure("metric", shorten(message), "metric")


def failure_of_timeout(timeout: float) -> Failure:
    """Return the failure of an attempt that took too long."""
    return Failure("timeout", f"timeout after {timeout:g} s", "timeout")


def failure_of_node(node: str) -> Failure:
    """Return the failure of an attempt whose node is dead."""
    return Failure("lost", f"node {node[:8]} was lost", "lost node")


def failure_of_setup(message: str) -> Failure:
    """Return the failure of an attempt that could not be started."""
    return Failure("setup", shorten(message), shorten(message))


def failure_of_ray(error: BaseException) -> Failure:
    """Return the failure of an attempt whose Ray task ended with `error`."""
    match error:
        case exceptions.RayTaskError():  # first: it also inherits from the user's exception
            cause = error.cause if isinstance(error.cause, BaseException) else error
            return failure_of_loading(cause, str(error))
        case exceptions.OutOfMemoryError():
            return Failure("memory", "out of memory: Ray's monitor killed the worker", "memory")
        case exceptions.WorkerCrashedError() | exceptions.ActorDiedError():
            return Failure(
                "crash",
                "worker process died: killed (SIGKILL), crashed (SIGSEGV) or exited by itself",
                "worker process died",
            )
        case exceptions.RuntimeEnvSetupError():
            return failure_of_setup(f"the runtime environment failed: {_last_line(error)}")
        case exceptions.TaskUnschedulableError() | exceptions.ActorUnschedulableError():
            return failure_of_setup(f"the resources cannot be had: {_last_line(error)}")
        case exceptions.NodeDiedError():
            return Failure("lost", "the node died", "lost node")
    return Failure("lost", shorten(f"{type(error).__name__}: {_last_line(error)}"), "lost")


def failure_of_process(
    error: BaseException, others: int, culprits: Sequence[int], blocked: bool
) -> Failure:
    """Return the failure of an attempt whose process has died with `error`.

    There were attempts at `others` other trials in it; it was killed for those of `culprits`,
    or because a coroutine had `blocked` it.
    """
    if blocked:
        text = f"a coroutine blocked its process, which it shared with {others} other trials"
    elif culprits:
        text = f"its process was ended, since trial {culprits[0]} did not end when cancelled"
    elif "its node has died" in str(error):
        text = "the node died"
    elif others:
        text = f"its process died, and with it attempts at {others} other trials"
    else:
        return failure_of_ray(error)
    return Failure("lost", text, "lost process")


def shorten(text: str) -> str:
    """Return `text` cut to one line of a table."""
    text = printable(text)
    return text if len(text) <= REASON_CHARS else text[: REASON_CHARS - 3] + "..."


def printable(text: str) -> str:
    """Return `text` fit for UTF-8: a file name in an OSError may hold lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cause_of(error: BaseException) -> str:
    # By name, for torch, jax and cupy: none of them is imported here.
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return "memory"
    if isinstance(error, KeyboardInterrupt):
        return "interrupt"
    return "transient" if isinstance(error, OSError) else "exception"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (the user's own __str__ may raise anything)
        return "its text cannot be shown"


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _where(error: BaseException) -> str:
    """Return file and line of the innermost frame in the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    if not users:
        return ""
    return f"{Path(users[-1].filename).name}:{users[-1].lineno}"
