"""Serve optuna-dashboard for a study, finished or running, from a copy in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from raybo.errors import RayboError
from raybo.study.outcome import Outcome
from raybo.views.optuna_mirror import Mirror, import_extra

_PERIOD = 2.0  # seconds between two reads of the journal


def serve(name: str, storage: str, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Show the study until interrupted.

    Parameters
    ----------
    name, storage
        Of the study; it need not have finished.
    host, port
        Where to listen.
    announce
        Called with the address once the study has been read.

    Raises
    ------
    StudyError
        When there is no such study, or the dashboard extra is not installed.
    """
    optuna = import_extra("optuna", "the dashboard")
    dashboard = import_extra("optuna_dashboard", "the dashboard")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    memory = optuna.storages.InMemoryStorage()
    mirror = Mirror(optuna, memory, Outcome.load(name, storage), live=True)
    threading.Thread(target=_follow, args=(mirror, name, storage), daemon=True).start()
    announce(f"http://{host}:{port}/")
    dashboard.run_server(memory, host=host, port=port)


def _follow(mirror: Mirror, name: str, storage: str) -> None:
    while True:
        time.sleep(_PERIOD)
        try:
            mirror.add(Outcome.load(name, storage))
        except RayboError:  # moved, or being written: the next read may succeed
            continue
