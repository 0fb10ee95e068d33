from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from raybo.benchmarks import run
from raybo.benchmarks.timing import proposal
from raybo.benchmarks.timing.proposal import ASKS, QUICK_ASKS, Seconds, time_ask, time_asks
from raybo.benchmarks.tuners.base import installed


def test_time_ask_is_the_mean_of_some_seconds():
    seconds = time_ask("random", 5, asks=2, problem="branin")
    assert 0 < seconds.cpu < 10
    assert 0 < seconds.wall < 10


def test_times_are_printed_with_their_ratios():
    asked = []

    def clock(spec, n, asks):
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


@pytest.mark.parametrize("peer", [name for name in installed() if name == "optuna-gp"])
def test_quick_asks_the_peers_less_often(peer):
    counts = {}

    def clock(spec, _, asks):
        counts[spec] = asks
        return Seconds(1.0, 1.0)

    console = Console(file=io.StringIO())
    time_asks(["random", peer], quick=True, console=console, sizes=(50,), clock=clock)
    assert counts == {"random": ASKS, peer: QUICK_ASKS}


def test_the_commands_pass_their_options_on(monkeypatch, tmp_path):
    calls = []
    for module in (proposal, run):
        monkeypatch.setattr(module, "single_thread", lambda: None)
        monkeypatch.setattr(module, "main", lambda *a, **k: calls.append((a, k)))
    monkeypatch.setattr(proposal, "time_asks", lambda rivals, **k: calls.append((rivals, k)))
    runner = CliRunner()
    for command, arguments in [
        (proposal.command, ["--times-only", "--quick", "--methods", "bo,random"]),
        (proposal.command, ["--seeds", "2"]),
        (run.command, ["rembo-table1", "--local", "--results", str(tmp_path / "r")]),
    ]:
        result = runner.invoke(command, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert calls[0] == (["bo", "random"], {"quick": True})
    assert calls[1][0] == ("proposal", None)
    assert calls[1][1]["seeds"] == 2
    assert calls[2][0] == ("rembo-table1",)
    assert calls[2][1]["local"] is True
