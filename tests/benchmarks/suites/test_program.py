from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import FAMILIES, PROBLEMS, get_problem
from raybo.benchmarks.results import Deployed, append_finished, read_finished
from raybo.benchmarks.suites import program
from raybo.benchmarks.suites.registry import SUITES, TUNERS, get_suite
from raybo.benchmarks.suites.scores import Scale, Scores
from raybo.benchmarks.tables.base import Block, Task
from raybo.benchmarks.terminal import THREAD_VARIABLES
from raybo.benchmarks.tuners.registry import check_tuner
from tests.helpers.benchmarks import run_of

SMALL = Task(
    "small",
    "a suite for the tests",
    (Block(("branin", "jenatton", "hartmann6"), ("random", "egp"), 4),),
    seeds=2,
    reference="egp",
    cost="nothing",
)


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    """Run the command on a small suite, with these arguments; its output."""
    monkeypatch.setitem(SUITES, "noisy", SMALL)
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")

    def run(*arguments, budget=4):
        path = ["--results", str(tmp_path), "--jobs", "1", "--no-progress"]
        start = ["--name", "noisy", "--budget", str(budget), *path]
        done = CliRunner().invoke(program.command, [*start, *arguments], catch_exceptions=False)
        assert done.exit_code == 0
        return done.output, read_finished(tmp_path / "suite-noisy.jsonl")

    return run


def test_a_suite_runs_what_applies_and_says_what_does_not(invoke, tmp_path):
    figure = tmp_path / "figure.html"
    shown, runs = invoke("--seeds", "2", "--reference", "egp", "--figure", str(figure))
    assert "egp does not apply to jenatton: " in shown
    pairs = {(r.cell.problem, r.cell.tuner) for r in runs}
    assert len(runs) == 10
    assert ("jenatton", "egp") not in pairs
    for text in ("after 4", "egp wins/ties/losses", "mean rank", "seconds per ask", "Wilcoxon"):
        assert text in shown
    assert "mean over problems" in figure.read_text(encoding="utf-8")


def test_a_suite_goes_on_where_it_was_and_shows_all_that_the_file_holds(invoke):
    invoke("--methods", "random", "--seeds", "1")
    shown, runs = invoke("--methods", "sobol", "--seeds", "1", "--problems", "branin")
    assert [(r.cell.problem, r.cell.tuner) for r in runs] == [
        ("branin", "random"),
        ("jenatton", "random"),
        ("hartmann6", "random"),
        ("branin", "sobol"),
    ]
    assert "sobol" in shown
    assert "jenatton" not in shown  # of the problems asked for
    shown, again = invoke("--no-run")
    assert again == runs
    assert "jenatton" in shown


def test_a_problem_that_another_suite_has_run_is_not_run_again(invoke, tmp_path):
    values = [5.0, 4.0, 3.0, 2.0]
    other = run_of("branin", "random", 0, values)
    append_finished(tmp_path / "suite-other.jsonl", other)
    shown, runs = invoke("--methods", "random", "--seeds", "1")
    assert [r.cell.problem for r in runs] == ["jenatton", "hartmann6"]
    assert "branin" in shown


def test_without_runs_of_that_length_there_is_no_table(invoke):
    assert "holds no run of noisy with 7 evaluations" in invoke("--no-run", budget=7)[0]


def test_runs_are_scored_at_the_stops_and_at_their_end():
    assert program.stops(100) == [20, 50, 100]
    assert program.stops(60) == [20, 50, 60]
    assert program.stops(10) == [10]


def test_the_luckiest_draw_stands_beside_the_recommended_config(tmp_path):
    runs = [
        run_of("p0", tuner, 0, [0.0], deployed=[Deployed(1, *pair)])
        for tuner, pair in (("one", (0.625, 0.25)), ("two", (0.5, 0.5)))
    ]
    scale = {"p0": Scale(0.0, 1.0)}
    console = Console(file=io.StringIO(), width=150)
    program.print_scores(Scores.of(runs, scale, 1), runs, scale, SMALL, "one", console)
    lines = console.file.getvalue().splitlines()
    assert next(line for line in lines if "mean, luckiest draw" in line).split()[-4:] == [
        "0.625",
        "│",
        "0.500",
        "│",
    ]
    assert next(line for line in lines if "one wins/ties/losses" in line).split()[-2] == "1/0/0"


def test_a_file_is_read_in_the_order_of_the_suite(tmp_path):
    for problem in ("hartmann6", "branin", "levy-20"):
        append_finished(tmp_path / "r", run_of(problem, "random", 0, [1.0] * 4))
    found = program.suite_runs(SMALL, read_finished(tmp_path / "r"), 4)
    assert [r.cell.problem for r in found] == ["branin", "hartmann6"]


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_names_known_problems_once(name):
    problems = get_suite(name).blocks[0].problems
    assert len(set(problems)) == len(problems) > 2
    families = tuple(f"{prefix}-" for prefix in FAMILIES)
    for problem in problems:  # those of a family and applications need packages or data
        assert problem in PROBLEMS or problem.startswith(families) or get_problem(problem)


def test_the_usual_tuners_exist():
    for spec in TUNERS:
        check_tuner(spec)


def test_an_unknown_suite_lists_those_there_are():
    with pytest.raises(BenchmarkError, match="'nosiy' is not known; there are noisy"):
        get_suite("nosiy")
