from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import ray

from raybo.benchmarks import run
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.results import read_finished
from raybo.benchmarks.run import run_cell, run_cells, run_task
from raybo.benchmarks.tables.base import Block, Cell, Published, Task
from raybo.benchmarks.tuners.registry import build_tuner
from raybo.errors import MethodError
from raybo.space.parameters import Float
from raybo.space.space import Space

CELLS = [Cell(p, "random", seed, 5) for p in ("branin", "jenatton") for seed in (0, 1)]
FAILING = Cell("branin-1e9", "sobol", 0, 5)  # sobol refuses a billion dimensions
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


def run_here(cells, path):
    return run_cells(cells, path, jobs=1, progress=False)


def test_a_run_holds_every_value_and_time():
    cell = Cell("gaussian-20", "random", 3, 4, centre=True)
    done = run_cell(cell)
    assert done.cell == cell
    assert done.values[0] == 1.0  # the centre, in the units of the objective
    assert len(done.values) == len(done.seconds) == 4
    assert (done.mode, done.optimum) == ("max", 1.0)


def noisy_branin(name):
    """Branin, and draws that add up to 100: far more than its values differ by."""
    exact = get_problem(name)
    return replace(exact, draw=lambda config, rng: exact.objective(config) + 100 * rng.random())


def test_a_noisy_problem_tells_draws_and_records_what_deploying_gives(monkeypatch):
    monkeypatch.setattr(run, "get_problem", noisy_branin)
    done = run_cell(Cell("branin", "random", 3, 25))
    exact = run_branin_without_noise(25)
    noise = np.array(done.values) - exact
    assert np.all((noise > 0) & (noise < 100))
    assert [entry.evaluations for entry in done.deployed] == [20, 25]
    for n, luckiest, recommended in done.deployed:  # random search has no model to ask
        assert luckiest == recommended == pytest.approx(exact[np.argmin(done.values[:n])])


def run_branin_without_noise(n):
    tuner, problem = (
        build_tuner("random", get_problem("branin").space, 3, n),
        get_problem("branin"),
    )
    return np.array([problem.objective(tuner.ask()) for _ in range(n)])


def test_noise_depends_on_seed_and_evaluation_and_not_on_the_tuner(monkeypatch):
    monkeypatch.setattr(
        run,
        "get_problem",
        lambda _: replace(get_problem("branin"), draw=lambda config, rng: rng.random()),
    )
    one, other, next_seed = (
        run_cell(Cell("branin", tuner, seed, 4)).values
        for tuner, seed in (("random", 0), ("sobol", 0), ("random", 1))
    )
    assert one == other
    assert len({*one, *next_seed}) == 8


def test_noise_repeats_no_draw_of_the_tuner(monkeypatch):
    space = Space({"x": Float(0, 1)})
    draws = replace(
        get_problem("branin"),
        build_space=lambda: space,
        draw=lambda config, rng: config["x"] - rng.random(),
    )
    monkeypatch.setattr(run, "get_problem", lambda _: draws)
    assert np.all(np.abs(run_cell(Cell("line", "random", 0, 50)).values) > 1e-6)


def test_finished_cells_are_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    run_here(CELLS[:2], path)
    ran = []

    def spy(cell):
        ran.append(cell)
        return run_cell(cell)

    monkeypatch.setattr(run, "run_cell", spy)
    runs = run_here(CELLS, path)
    assert ran == CELLS[2:]
    assert [r.cell for r in runs] == CELLS
    assert run_here(CELLS, path) == runs
    assert ran == CELLS[2:]


def test_a_continued_file_equals_one_written_at_once(tmp_path):
    for name, parts in (("a", [CELLS]), ("b", [CELLS[:1], CELLS])):
        for part in parts:
            run_here(part, tmp_path / name)
    a, b = ([(r.cell, r.values) for r in read_finished(tmp_path / name)] for name in "ab")
    assert a == b


def test_an_unknown_tuner_is_refused_before_anything_runs(tmp_path):
    path = tmp_path / "results.jsonl"
    with pytest.raises(MethodError, match="'bohb' is not known"):
        run_here([*CELLS, Cell("branin", "bohb", 0, 5)], path)
    assert not path.exists()


def test_a_task_prints_its_table_and_writes_the_figure(tmp_path, capsys):
    results, figure = tmp_path / "results.jsonl", tmp_path / "curves.html"
    runs = run_task(TASK, results=results, figure=figure, jobs=1, progress=False)
    assert len(runs) == 4
    shown = capsys.readouterr().out
    assert "a task for the tests" in shown
    assert "1.5 ± 0.5" in shown
    assert str(figure.name) in shown
    assert figure.stat().st_size > 100_000


def test_a_task_takes_other_methods_seeds_and_lengths(tmp_path, capsys):
    runs = run_task(
        TASK,
        "sobol",
        2,
        first_seed=7,
        evaluations=3,
        results=tmp_path / "r",
        jobs=1,
        progress=False,
    )
    assert [r.cell for r in runs] == [Cell("branin", "sobol", seed, 3) for seed in (7, 8)]
    assert "sobol" in capsys.readouterr().out


def test_some_problems_of_a_task_can_be_chosen(tmp_path, capsys):
    task = replace(TASK, blocks=(Block(("branin", "hartmann6"), ("sobol",), 4),), seeds=1)
    results = tmp_path / "r"
    runs = run_task(task, problems="hartmann6", results=results, jobs=1, progress=False)
    assert [r.cell.problem for r in runs] == ["hartmann6"]
    assert "branin" not in capsys.readouterr().out
    with pytest.raises(BenchmarkError, match="no problem 'levy-20'; it has branin, hartmann6"):
        run_task(task, problems="levy-20", results=results, jobs=1, progress=False)


def check_that_one_failure_stops_no_other(path, jobs):
    with pytest.raises(BenchmarkError, match="1 of 2 runs failed; the first: sobol on branin-1e9"):
        run_cells([FAILING, CELLS[0]], path, jobs=jobs, progress=False)
    assert [r.cell for r in read_finished(path)] == CELLS[:1]


def test_a_failure_in_this_process_stops_no_other(tmp_path):
    check_that_one_failure_stops_no_other(tmp_path / "results.jsonl", jobs=1)


def test_cells_run_in_processes_and_a_failure_stops_no_other(tmp_path):
    check_that_one_failure_stops_no_other(tmp_path / "results.jsonl", jobs=2)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_cells_run_as_ray_tasks_and_a_failure_stops_no_other(tmp_path):
    check_that_one_failure_stops_no_other(tmp_path / "results.jsonl", jobs=None)


def test_cells_ask_ray_for_a_share_of_a_gpu_that_must_exist(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "connect", lambda: None)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0})
    with pytest.raises(BenchmarkError, match="vgg-pruning needs a GPU, and this cluster has none"):
        run_cells([Cell("vgg-pruning", "random", 0, 1)], tmp_path / "r.jsonl", progress=False)
