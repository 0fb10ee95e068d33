"""Every example runs with a small budget on the test run's Ray cluster, and does what it shows.

An example is run as a script, in this process: it finds the cluster that is already there.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.solvers.lp_solve import libraries

EXAMPLES = {path.stem: path for path in (Path(__file__).parents[1] / "examples").glob("*.py")}
TRIALS = {"ask_tell": 2, "resume": 2}  # of others one: what models propose is tested elsewhere
# What each prints last about its result, and the file it writes.
SHOWN = {
    "async_solver": (r"best value ([\d.]+) \(min\)", None),
    "ask_tell": (r"best value ([\d.]+) at \{'a': .*\}, 6 trials", None),  # 2, 1 known, 3 running
    "checkpoints": (r"(\d+) trainings were paused and went on", None),
    "configure_solver": (r"best value ([\d.]+) \(min\)", "configure_solver.html"),
    "early_stopping": (r"accuracy of the best network: ([\d.]+)", "early_stopping.html"),
    "high_dimensional": (r"gap to the optimum: ([\d.]+)", None),
    "prune_network": (r"best value ([\d.]+) \(max\)", "prune_network.html"),
    "ray_tune": (r"best loss ([\d.]+) with \{'lr'", "ray_tune.html"),
    "resume": (r"extended: 2 trials, best ([\d.]+)", "resume.html"),
    "train_network": (r"accuracy of the best network: ([\d.]+)", "train_network.html"),
}


def n_trials(name: str) -> int:
    """Trials with which an example is run here."""
    return TRIALS.get(name, 1)


def run_example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an example as a script, in `folder`, with a small budget."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES[name]), "--trials", str(n_trials(name))])
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a user's Python warns; it does not raise
        runpy.run_path(str(EXAMPLES[name]), run_name="__main__")


# Every worker first solves the instance itself, to know the optimum: half a minute each.
SLOW = ("configure_solver",)


@pytest.mark.ray
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in sorted(EXAMPLES)],
)
def test_example_runs(
    name: str,
    ray_cluster: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name == "configure_solver":
        try:
            libraries()
        except DatasetError as error:
            pytest.skip(str(error))
    run_example(name, tmp_path, monkeypatch)
    line, report = SHOWN[name]
    printed = capsys.readouterr().out
    found = re.search(line, printed)
    assert found, printed
    assert 0.0 <= float(found[1]) < 1000.0
    if name in ("train_network", "prune_network"):
        assert float(found[1]) > 0.1  # ten digits: better than a guess
    if name == "resume":
        assert "half-way: 1 trials" in printed
    if report == "ray_tune.html":
        assert (tmp_path / report).read_text().count("<tr>") == n_trials(name)
    elif report:
        text = (tmp_path / report).read_text()
        assert re.search(rf"\b{n_trials(name)}\b", text)
        assert "<h1" in text
    journals = list(tmp_path.glob("runs/*/journal.jsonl"))
    for journal in journals:
        events = [json.loads(row)["event"]["kind"] for row in journal.read_text().splitlines()]
        ends = ("done", "failed", "stopped_early", "paused")
        assert sum(map(events.count, ends)) >= n_trials(name)
    assert bool(journals) == (name not in ("ask_tell", "ray_tune"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_fits_a_screen(name: str) -> None:
    assert len(EXAMPLES[name].read_text().splitlines()) <= 60
