"""`raybo dashboard` on a study that goes on: a real server, asked over HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from raybo import Float, Space
from raybo.cli import main
from raybo.study.journal.journal import Journal
from raybo.study.outcome import Outcome
from raybo.views.optuna_mirror import Mirror

SPACE = Space({"lr": Float(1e-4, 1.0, log=True)})


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "runs" / "net")
    method = {"name": "random", "options": {}}
    header = {"name": "net", "space": SPACE.definition(), "method": method, "mode": "min"}
    more = {"metric": "loss", "seed": 0, "objective": "m:f", "raybo": "0", "created": 1.7e9}
    journal.append({"kind": "header", **header, **more})
    add_trial(journal, 0, 0.5)
    yield journal
    journal.close()


def add_trial(journal: Journal, number: int, value: float) -> None:
    journal.append({"kind": "asked", "number": number, "config": {"lr": 0.1 * value}, "memo": {}})
    span = {"started": 1.7e9, "finished": 1.7e9 + 1}
    done = {"value": value, "extra": {}, "attempts": 1}
    journal.append({"kind": "done", "number": number, **done, **span})


def test_a_paused_trial_appears_when_it_has_ended(journal: Journal, tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage, folder = optuna.storages.InMemoryStorage(), tmp_path / "runs"
    journal.append(
        {"kind": "asked", "number": 1, "config": {"lr": 0.2}},
        {"kind": "report", "number": 1, "steps": [[3, 0.9]], "checkpoint": [3, "a.pt"]},
        {"kind": "paused", "number": 1},
    )
    mirror = Mirror(optuna, storage, Outcome.load("net", folder), live=True)
    (study,) = optuna.get_all_study_names(storage)
    mirrored = optuna.load_study(study_name=study, storage=storage)
    assert [t.state.name for t in mirrored.trials] == ["COMPLETE"]
    Mirror(optuna, optuna.storages.InMemoryStorage(), Outcome.load("net", folder))  # an export
    journal.append({"kind": "promoted", "number": 1}, {"kind": "done", "number": 1, "value": 0.25})
    mirror.add(Outcome.load("net", folder))
    assert [t.value for t in mirrored.trials] == [0.5, 0.25]
    journal.append(
        {"kind": "asked", "number": 2, "config": {"lr": 0.3}},
        {"kind": "report", "number": 2, "steps": [[3, 0.9]], "checkpoint": [3, "b.pt"]},
        {"kind": "paused", "number": 2},
        {"kind": "stopped", "reason": "enough", "outcome": "max_trials", "error": None},
    )
    mirror.add(Outcome.load("net", folder))
    assert [t.state.name for t in mirrored.trials] == ["COMPLETE", "COMPLETE", "PRUNED"]


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def values_shown(port: int) -> list[float]:
    """Values of the trials that the dashboard knows; none while it does not answer yet."""
    address = f"http://127.0.0.1:{port}/api/studies"
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            studies = json.load(answer)["study_summaries"]
        (study,) = [s for s in studies if s["study_name"] == "net"]
        with urllib.request.urlopen(f"{address}/{study['study_id']}?after=0", timeout=5) as answer:
            return [v for t in json.load(answer)["trials"] for v in t.get("values", [])]
    except OSError:
        return []


def test_trials_appear_as_they_finish(journal: Journal, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "raybo", "dashboard", "net", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--storage", str(tmp_path / "runs")], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().strip() == f"http://127.0.0.1:{port}/"
            shown: list[list[float]] = []
            for expected in ([0.5], [0.5, 0.25]):
                deadline = time.monotonic() + 60
                while values_shown(port) != expected and time.monotonic() < deadline:
                    time.sleep(0.2)
                shown.append(values_shown(port))
                if len(shown) == 1:
                    add_trial(journal, 1, 0.25)
            assert shown == [[0.5], [0.5, 0.25]]
        finally:
            server.kill()


def test_without_the_extra_it_says_what_to_install(
    journal: Journal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    with pytest.raises(SystemExit):
        main(["dashboard", "net", "--storage", str(tmp_path / "runs")])
    assert "pip install 'raybo[dashboard]'" in capsys.readouterr().err
