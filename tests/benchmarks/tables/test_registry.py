from __future__ import annotations

import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.tables.peers import proposal
from raybo.benchmarks.tables.registry import TASKS, get_task
from raybo.benchmarks.tuners.base import parse_spec
from raybo.benchmarks.tuners.registry import BASELINES, PEERS
from raybo.methods.registry import METHODS


def test_cells_finish_one_seed_before_the_next():
    cells = list(proposal().cells(["bo"], first_seed=4))
    assert [cell.seed for cell in cells] == [4] * 5 + [5] * 5 + [6] * 5
    assert all(cell.centre and cell.evaluations == 100 for cell in cells)


@pytest.mark.parametrize("task", [*TASKS.values(), proposal()], ids=lambda task: task.name)
def test_every_task_is_complete(task):
    cells = list(task.cells(seeds=1))
    assert len(set(cells)) == len(cells)
    assert task.reference in task.tuners
    assert {p.problem for p in task.published} <= set(task.problems)
    longest = {cell.problem: cell.evaluations for cell in cells}
    assert all(p.evaluations <= longest[p.problem] for p in task.published)
    assert {parse_spec(spec)[0] for spec in task.tuners} <= {*METHODS, *PEERS, *BASELINES}
    assert [get_problem(name).name for name in task.problems] == task.problems


def test_an_unknown_task_lists_those_there_are():
    with pytest.raises(BenchmarkError, match="'rembo-table2' is not known; there are peers-20d"):
        get_task("rembo-table2")


def test_bock_s_tables_hold_the_paper_s_numbers():
    rows = {
        (p.problem, p.evaluations): p.value
        for p in get_task("bock-table1").published
        if p.tuner == "bock:preset=paper"
    }
    assert rows["scaled-rosenbrock-20", 200] == 47.87
    assert rows["repeated-hartmann6-100", 600] == -3.16
