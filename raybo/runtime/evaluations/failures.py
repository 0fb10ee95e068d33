"""Why an attempt failed, in words a person understands, and whether to try again.

Cause        What happened                                          Tried again
exception    the objective raised                                   no: most errors repeat
transient    it raised an OSError (network, files) or MemoryError,  up to `retries` times
             or ran out of GPU memory
result       it returned no finite number                           no: it would again
crash        the worker process died: exit, signal, native crash    up to `retries` times
memory       Ray's memory monitor killed the worker                 up to `retries` times
timeout      it ran longer than `timeout`                           no: it would again
lost         the node died or was taken away, or a coordinator or   freely, MAX_LOSSES times
             driver was restarted
setup        the task could not be started: runtime environment,    no: it would again
             resources
"""

from __future__ import annotations

import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray import exceptions

MAX_LOSSES = 10  # attempts lost through no fault of the trial, before it is given up

_NOT_THE_USERS = (
    str(Path(__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)
_COUNTED = ("transient", "crash", "memory")
_REASON_CHARS = 300  # a reason is one line of a table
_TRACEBACK_CHARS = 2000


@dataclass(frozen=True)
class Failure:
    """One failed attempt."""

    cause: str  # of the table above
    reason: str
    alike: str  # failures with the same text are the same fault
    traceback: str = ""

    @property
    def lost(self) -> bool:
        """Whether the attempt was lost through no fault of the trial."""
        return self.cause == "lost"

    def allows_retry(self, errors: int, losses: int, retries: int) -> bool:
        """Whether to try again a trial with so many failed and lost attempts behind it."""
        if self.lost:
            return losses < MAX_LOSSES
        return self.cause in _COUNTED and errors < retries


def failure_of_exception(error: BaseException) -> Failure:
    """Failure of an objective that raised `error`."""
    cause = "transient" if _is_transient(error) else "exception"
    kind, where = type(error).__name__, _where(error)
    text = " ".join(_text(error).split())
    reason = f"{kind}: {text}" if text else kind
    tail = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARS:]
    place = f" ({where})" if where else ""
    return Failure(cause, shorten(reason) + place, f"{kind} at {where}", tail)


def failure_of_result(message: str) -> Failure:
    """Failure of an objective that returned no finite number."""
    return Failure("result", shorten(message), "no finite number")


def failure_of_timeout(timeout: float) -> Failure:
    """Failure of an attempt that took too long."""
    return Failure("timeout", f"timeout after {timeout:g} s", "timeout")


def failure_of_node(node: str) -> Failure:
    """Failure of an attempt whose node is dead."""
    return Failure("lost", f"node {node[:8]} was lost", "lost node")


def failure_of_setup(message: str) -> Failure:
    """Failure of an attempt that could not be started."""
    return Failure("setup", shorten(message), shorten(message))


def failure_of_ray(error: BaseException) -> Failure:
    """Failure of an attempt whose Ray task ended with `error`."""
    match error:
        case exceptions.RayTaskError():  # first: it also inherits from the user's exception
            cause = error.cause if isinstance(error.cause, BaseException) else error
            kind = type(cause).__name__
            reason = f"the worker could not run the trial: {kind}: {_last_line(cause)}"
            if "ModuleNotFoundError" in reason:
                reason += "; give the workers the module, say by resources={'runtime_env': ...}"
            return Failure("exception", shorten(reason), kind, str(error)[-_TRACEBACK_CHARS:])
        case exceptions.OutOfMemoryError():
            return Failure("memory", "out of memory: Ray's monitor killed the worker", "memory")
        case exceptions.WorkerCrashedError():
            return Failure(
                "crash",
                "worker process died: killed (SIGKILL), crashed (SIGSEGV) or exited by itself",
                "worker process died",
            )
        case exceptions.RuntimeEnvSetupError():
            return failure_of_setup(f"the runtime environment failed: {_last_line(error)}")
        case exceptions.TaskUnschedulableError():
            return failure_of_setup(f"the resources cannot be had: {_last_line(error)}")
        case exceptions.NodeDiedError():
            return Failure("lost", "the node died", "lost node")
    return Failure("lost", shorten(f"{type(error).__name__}: {_last_line(error)}"), "lost")


def shorten(text: str) -> str:
    """`text` cut to one line of a table."""
    return text if len(text) <= _REASON_CHARS else text[: _REASON_CHARS - 3] + "..."


def _is_transient(error: BaseException) -> bool:
    # torch.OutOfMemoryError, jax and cupy alike: told by name, since none of them is imported here
    return isinstance(error, OSError | MemoryError) or "OutOfMemory" in type(error).__name__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (the user's own __str__ may raise anything)
        return "its text cannot be shown"


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _where(error: BaseException) -> str:
    """File and line of the innermost frame that is neither raybo's nor an installed package's."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    if not users:
        return ""
    return f"{Path(users[-1].filename).name}:{users[-1].lineno}"


def as_payload(failure: Failure) -> dict[str, Any]:
    """Fields of a journal event about `failure`."""
    return {
        "cause": failure.cause,
        "reason": failure.reason,
        "alike": failure.alike,
        "traceback": failure.traceback,
    }
