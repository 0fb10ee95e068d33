"""How benchmark programs start and print."""

from __future__ import annotations

import os
import sys

from rich.console import Console

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_FILE_WIDTH = 150  # columns: the widest table fits


def single_thread() -> None:
    """Restart this program with one thread for the numerical libraries, unless it has one.

    numpy and torch read the variables when they are loaded: setting them now would be too late.
    """
    if all(os.environ.get(name) == "1" for name in THREAD_VARIABLES):
        return
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def wide_console() -> Console:
    """Return a console as wide as the terminal, or wide enough for any table in a file."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_WIDTH)
