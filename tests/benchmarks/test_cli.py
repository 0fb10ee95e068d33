from __future__ import annotations

import importlib

import click
import pytest

from raybo.benchmarks import cli
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.results import read_finished
from raybo.benchmarks.tables.base import Cell
from raybo.benchmarks.tables.registry import TASKS
from raybo.benchmarks.terminal import THREAD_VARIABLES

EXTRA = {"tune-throughput": "hyperopt"}  # packages that a program imports when it starts


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")


def test_the_list_names_every_table_and_program(capsys):
    cli.main(["--list"])
    shown = capsys.readouterr().out
    assert [name for name in (*TASKS, *cli.PROGRAMS) if name not in shown] == []


@pytest.mark.parametrize("name", cli.PROGRAMS)
def test_every_program_has_a_command(name):
    if name in EXTRA:
        pytest.importorskip(EXTRA[name], reason=f"needs {EXTRA[name]}")
    module = importlib.import_module(cli.PROGRAMS[name][0])
    assert isinstance(module.command, click.Command)


def test_an_unknown_name_says_where_the_names_are():
    with pytest.raises(BenchmarkError, match="no benchmark 'rembo-table9'; `raybo bench --list`"):
        cli.main(["rembo-table9"])


def test_a_table_runs_on_chosen_seeds_without_ray(tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    arguments = "rembo-table1 --methods random --seeds 2 --first-seed 11 --evaluations 3 --jobs 1"
    with pytest.raises(SystemExit) as ended:  # as every click command ends
        cli.main([*arguments.split(), "--no-progress", "--results", str(path)])
    assert ended.value.code == 0
    cells = [run.cell for run in read_finished(path)]
    assert cells == [Cell("branin-25", "random", seed, 3) for seed in (11, 12)]
    assert "random" in capsys.readouterr().out
