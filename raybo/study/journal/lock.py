"""Lock: one writer per journal."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raybo.errors import JournalError

_RETRY = 0.1  # seconds between two tries to get the lock
_PATIENCE = 1.0  # seconds to wait even for a holder that looks alive: it may be closing


class Lock:
    """An flock on a file that names its holder, and the epoch that fences off older holders.

    Waits up to `wait` seconds while the holder looks as if it were about to end: its driver is
    gone (a killed driver's actors live on for a moment) or it is an earlier life of this session.
    """

    def __init__(self, path: Path, who: Mapping[str, Any], wait: float) -> None:
        self.path = path
        self._who = {"pid": os.getpid(), "host": socket.gethostname(), **who}
        self._epoch: int | None = None
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        began = time.monotonic()
        while not self._try():
            holder = read_holder(path)
            patience = min(wait, _PATIENCE) if _is_live(holder, self._who) else wait
            if time.monotonic() - began >= patience:
                os.close(self._fd)
                self._fd = -1
                raise JournalError(_held(path, holder))
            time.sleep(_RETRY)
        self.last_epoch = int(read_holder(path).get("epoch", 0))

    def claim(self, epoch: int) -> None:
        """Write the new holder and its epoch into the file."""
        self._epoch = epoch
        text = json.dumps({**self._who, "since": time.time(), "epoch": epoch}).encode()
        os.pwrite(self._fd, text, 0)
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
        """Let others have the lock; the file stays, for its epoch."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: the epoch alone keeps order
            return True
        return True


def read_holder(path: Path) -> dict[str, Any]:
    """Last known holder of a lock: pid, host, since, epoch; empty when there is none."""
    try:
        holder = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock now, as far as this machine can tell."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def process_is_alive(pid: int) -> bool:
    """Whether a process of this machine exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_live(holder: Mapping[str, Any], who: Mapping[str, Any]) -> bool:
    """Whether waiting for `holder` is in vain: another session whose driver is alive."""
    if "driver" not in holder or holder.get("session") == who.get("session"):
        return False
    return holder.get("host") == who["host"] and process_is_alive(int(holder["driver"]))


def _name(holder: Mapping[str, Any]) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(holder.get("since", 0))))
    pid = holder.get("driver", holder.get("pid", "unknown"))
    return f"pid {pid} on {holder.get('host', 'an unknown host')} since {since}"


def _held(path: Path, holder: Mapping[str, Any]) -> str:
    name = path.parent.name
    return (
        f"study {name!r} is being run by {_name(holder)}; wait until it ends, use another name, "
        f"or follow it with `raybo status {name}` (lock: {path})"
    )
