"""Lock: one writer per journal."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import lock_descriptor, unlock_descriptor

from raybo.errors import JournalError

_RETRY_SECONDS = 0.1  # between two attempts to get the lock
_CLOSING_SECONDS = 1.0  # to wait even for a holder whose driver is alive: it may be closing


class Lock:
    """A lock on a file that names its holder, and the epoch that fences off older holders.

    Waits up to `wait` seconds while the holder is likely to end: its driver is dead (the actors
    of a killed driver live for some seconds more), or it belongs to the same session. On a file
    system without locks it is not `exclusive`: the epoch alone keeps order.
    """

    def __init__(self, path: Path, who: Mapping[str, Any], wait: float) -> None:
        self.path = path
        self._who = {"pid": os.getpid(), "host": socket.gethostname(), **who}
        self._epoch: int | None = None
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        started = time.monotonic()
        self.exclusive = False
        while not self._try_lock():
            holder = read_holder(path)
            limit = min(wait, _CLOSING_SECONDS) if _is_live(holder, self._who) else wait
            if time.monotonic() - started >= limit:
                self.release()
                raise JournalError(_held(path, holder))
            time.sleep(_RETRY_SECONDS)
        self.last_epoch: int = read_holder(path).get("epoch", 0)

    def _try_lock(self) -> bool:
        try:
            self.exclusive = lock_descriptor(self._fd, blocking=False)
        except OSError:  # no locks here
            return True
        return self.exclusive

    def claim(self, epoch: int) -> None:
        """Write the new holder and its epoch into the file."""
        self._epoch = epoch
        text = json.dumps({**self._who, "since": time.time(), "epoch": epoch}).encode()
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.write(self._fd, text)
        os.ftruncate(self._fd, len(text))

    def check(self) -> None:
        """Raise unless this is still the newest holder."""
        holder = read_holder(self.path)
        if holder.get("epoch") == self._epoch:
            return
        if not holder:
            raise JournalError(
                f"{self.path}: removed while the study was running; do not remove the folder of a "
                "running study"
            )
        raise JournalError(
            f"{self.path}: taken over by {_name(holder)}; this writer stops, nothing it "
            "acknowledged is lost"
        )

    def release(self) -> None:
        """Release the lock; the file stays, for its epoch."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_holder(path: Path) -> dict[str, Any]:
    """Return the last known holder of a lock (pid, host, since, epoch), or an empty dict."""
    try:
        return checked_holder(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return {}


def checked_holder(holder: Any) -> dict[str, Any]:
    """Return a holder as read from a file; empty when its entries have the wrong types."""
    kinds = {"epoch": int, "driver": int, "since": int | float, "beat": int | float}
    fits = isinstance(holder, dict) and all(
        isinstance(holder.get(key, 0), kind) for key, kind in kinds.items()
    )
    return holder if fits else {}


def is_held(path: Path) -> bool:
    """Return whether somebody holds the lock now, as far as this machine can tell."""
    try:
        fd = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
    except OSError:
        return False
    try:
        free = lock_descriptor(fd, blocking=False)
        if free:
            unlock_descriptor(fd)
    except OSError:  # a file system without locks, so there is nothing to release
        return False
    finally:
        os.close(fd)
    return not free


def process_is_alive(pid: int) -> bool:
    """Return whether a process of this machine exists; on Windows, where asking ends it, True."""
    if os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_live(holder: Mapping[str, Any], who: Mapping[str, Any]) -> bool:
    """Whether the holder is another session whose driver is alive."""
    if "driver" not in holder or holder.get("session") == who.get("session"):
        return False
    return holder.get("host") == who["host"] and process_is_alive(holder["driver"])


def _name(holder: Mapping[str, Any]) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.get("since", 0)))
    pid = holder.get("driver", holder.get("pid", "unknown"))
    return f"pid {pid} on {holder.get('host', 'an unknown host')} since {since}"


def _held(path: Path, holder: Mapping[str, Any]) -> str:
    name = path.parent.name
    return (
        f"study {name!r} is being run by {_name(holder)}; wait until it ends, use another name, "
        f"or follow it with `raybo status {name}` (lock: {path})"
    )
