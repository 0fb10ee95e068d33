from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
import ray

from raybo.benchmarks import run
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.run import (
    append_record,
    cell_of,
    list_tasks,
    main,
    read_records,
    run_cell,
    run_cells,
    single_thread,
)
from raybo.benchmarks.tables.base import Block, Cell, Published, Task
from raybo.benchmarks.tables.registry import TASKS, get_task
from raybo.errors import MethodError

CELLS = [Cell(p, "random", seed, 5) for p in ("branin", "jenatton") for seed in (0, 1)]
TASK = Task(
    "small",
    "a task for the tests",
    (Block(("branin",), ("random", "sobol"), 6),),
    seeds=2,
    reference="random",
    cost="nothing",
    quantity="regret",
    published=(Published("branin", "random", 6, 1.5, 0.5), Published("branin", "other", 6, 2.5)),
)


def test_a_record_holds_every_value_and_time():
    record = run_cell(Cell("gaussian-20", "random", 3, 4, centre=True))
    assert record["values"][0] == 1.0  # the centre, in the objective's own units
    assert len(record["values"]) == len(record["seconds"]) == 4
    assert (record["mode"], record["optimum"]) == ("max", 1.0)
    assert cell_of(json.loads(json.dumps(record))) == Cell("gaussian-20", "random", 3, 4, True)


def test_finished_cells_are_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "results.jsonl"
    run_cells(CELLS[:2], path, local=True, progress=False)
    ran = []

    def spy(cell, progress):
        ran.append(cell)
        return run_cell(cell, progress)

    monkeypatch.setattr(run, "run_cell", spy)
    records = run_cells(CELLS, path, local=True, progress=False)
    assert ran == CELLS[2:]
    assert [cell_of(record) for record in records] == CELLS
    assert run_cells(CELLS, path, local=True, progress=False) == records
    assert ran == CELLS[2:]


def test_a_resumed_file_equals_one_written_at_once(tmp_path):
    for name, parts in (("a", [CELLS]), ("b", [CELLS[:1], CELLS])):
        for part in parts:
            run_cells(part, tmp_path / name, local=True, progress=False)
    a, b = (
        [(cell_of(r), r["values"]) for r in read_records(tmp_path / name)] for name in ("a", "b")
    )
    assert a == b


def test_a_torn_last_line_is_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    run_cells(CELLS[:2], path, local=True, progress=False)
    path.write_bytes(path.read_bytes()[:-30])
    assert len(read_records(path)) == 1
    assert len(run_cells(CELLS[:2], path, local=True, progress=False)) == 2
    assert len(path.read_text().splitlines()) == 2


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"problem": "branin"}\n')
    with pytest.raises(BenchmarkError, match=r"results\.jsonl:1: not a benchmark record"):
        read_records(path)
    append_record(path, {"more": 1})
    assert len(path.read_text().splitlines()) == 2


def test_an_unknown_rival_is_refused_before_anything_runs(tmp_path):
    path = tmp_path / "results.jsonl"
    with pytest.raises(MethodError, match="'bohb' is not known"):
        run_cells([*CELLS, Cell("branin", "bohb", 0, 5)], path, local=True, progress=False)
    assert not path.exists()


def test_main_prints_the_table_and_writes_the_figure(tmp_path, capsys):
    results, figure = tmp_path / "results.jsonl", tmp_path / "curves.html"
    records = main(TASK, results=results, figure=figure, local=True, progress=False)
    assert len(records) == 4
    shown = capsys.readouterr().out
    assert "a task for the tests" in shown
    assert "1.5 ± 0.5" in shown
    assert str(figure.name) in shown
    assert figure.stat().st_size > 100_000


def test_main_takes_other_methods_seeds_and_lengths(tmp_path, capsys):
    records = main(
        TASK, "sobol", 1, evaluations=3, results=tmp_path / "r", local=True, progress=False
    )
    assert [cell_of(record) for record in records] == [Cell("branin", "sobol", 0, 3)]
    assert "sobol" in capsys.readouterr().out


def test_cells_finish_one_seed_before_the_next():
    cells = list(get_task("proposal").cells(["bo"]))
    assert [cell.seed for cell in cells] == [0] * 5 + [1] * 5 + [2] * 5
    assert all(cell.centre and cell.evaluations == 100 for cell in cells)


def test_some_problems_of_a_task_can_be_chosen(tmp_path, capsys):
    task = replace(TASK, blocks=(Block(("branin", "hartmann6"), ("sobol",), 4),), seeds=1)
    results = tmp_path / "r"
    records = main(task, problems="hartmann6", results=results, local=True, progress=False)
    assert [record["problem"] for record in records] == ["hartmann6"]
    assert "branin" not in capsys.readouterr().out
    with pytest.raises(BenchmarkError, match="no problem 'levy-20'; it has branin, hartmann6"):
        main(task, problems="levy-20", results=results, local=True, progress=False)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_complete(name):
    task = get_task(name)
    cells = list(task.cells(seeds=1))
    assert len({cell.key for cell in cells}) == len(cells)
    assert task.reference in task.rivals
    assert {p.problem for p in task.published} <= set(task.problems)
    longest = {cell.problem: cell.evaluations for cell in cells}
    assert all(p.evaluations <= longest[p.problem] for p in task.published)
    assert (task.name, task.source, task.cost) in set(list_tasks())


def test_an_unknown_task_lists_those_there_are():
    with pytest.raises(BenchmarkError, match="'rembo-table2' is not known; there are proposal"):
        get_task("rembo-table2")


def test_single_thread_starts_the_program_again_only_when_needed(monkeypatch):
    calls = []
    monkeypatch.setattr(os, "execve", lambda *arguments: calls.append(arguments))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    single_thread()
    [(_, _, environment)] = calls
    for variable in run.THREAD_VARIABLES:
        assert environment[variable] == "1"
        monkeypatch.setenv(variable, "1")
    single_thread()
    assert len(calls) == 1


@pytest.mark.ray
def test_cells_run_as_ray_tasks_and_failures_do_not_stop_the_others(tmp_path):
    started = not ray.is_initialized()
    path = tmp_path / "results.jsonl"
    cells = [Cell("branin", "random", 0, 5), Cell("branin-1e9", "sobol", 0, 5), CELLS[2]]
    try:
        with pytest.raises(BenchmarkError, match="1 of 3 runs failed; the first: sobol on branin"):
            run_cells(cells, path, progress=False)
    finally:
        if started:
            ray.shutdown()
    done = {cell_of(record) for record in read_records(path)}
    assert done == {cells[0], cells[2]}
