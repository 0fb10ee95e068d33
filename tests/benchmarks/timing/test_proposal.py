from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from raybo.benchmarks.results import read_finished
from raybo.benchmarks.tables.base import Cell
from raybo.benchmarks.terminal import THREAD_VARIABLES
from raybo.benchmarks.timing.proposal import (
    ASKS,
    QUICK_ASKS,
    Seconds,
    command,
    time_ask,
    time_asks,
)


def test_time_ask_is_the_mean_over_the_asks():
    ticks = iter([Seconds(100.0, 10.0), Seconds(103.0, 11.0)])
    seconds = time_ask("random", 5, asks=2, problem="branin", now=lambda: next(ticks))
    assert seconds == Seconds(1.5, 0.5)
    assert next(ticks, None) is None


def test_times_are_printed_with_their_ratios():
    asked = []

    def clock(spec, n, asks, _):
        asked.append((spec, n, asks))
        factor = 3 if spec == "sobol" else 1
        return Seconds(n / 1000 * factor, n / 2000 * factor**2)

    console = Console(file=io.StringIO(), width=150)
    times = time_asks(["random", "sobol"], console=console, sizes=(50, 200), clock=clock)
    assert times["sobol", 200].wall == pytest.approx(0.6)
    assert asked[2:] == [(spec, n, ASKS) for n in (50, 200) for spec in ("random", "sobol")]
    shown = console.file.getvalue()
    assert "sobol / random (CPU)" in shown
    assert "600.0" in shown
    assert "3.0 (9.0)" in shown


def test_quick_asks_the_peers_less_often():
    pytest.importorskip("optuna", reason="needs optuna")
    counts = {}

    def clock(spec, _, asks, __):
        counts[spec] = asks
        return Seconds(1.0, 1.0)

    console = Console(file=io.StringIO())
    time_asks(["random", "optuna-gp"], quick=True, console=console, sizes=(50,), clock=clock)
    assert counts == {"random": ASKS, "optuna-gp": QUICK_ASKS}


def test_the_command_measures_times_and_then_values(monkeypatch, tmp_path):
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    results = tmp_path / "results.jsonl"
    arguments = "--methods random,sobol --seeds 1 --evaluations 3 --problems levy-20 --results"
    done = CliRunner().invoke(command, [*arguments.split(), str(results)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "sobol / random (CPU)" in done.output
    cells = [run.cell for run in read_finished(results)]
    assert cells == [Cell("levy-20", name, 0, 3, centre=True) for name in ("random", "sobol")]
    results.unlink()
    done = CliRunner().invoke(command, ["--times-only", "--methods", "random"])
    assert done.exit_code == 0, done.output
    assert not results.exists()
