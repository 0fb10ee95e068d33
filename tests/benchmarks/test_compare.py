from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import wilcoxon

from raybo.benchmarks.compare import curve, print_table, summarize, wilcoxon_worse
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tables.base import Block, Published, Task
from tests.helpers.benchmarks import run_of

TASK = Task(
    "synthetic",
    "made up",
    (Block(("valley",), ("good", "bad"), 4),),
    seeds=6,
    reference="good",
    cost="nothing",
    quantity="regret",
    published=(
        Published("valley", "good", 2, 0.7),
        Published("valley", "good", 4, 0.5, 0.1),
        Published("valley", "theirs", 4, 0.9),
    ),
)


@pytest.fixture
def runs():
    return [
        run_of("valley", tuner, seed, values, optimum=1.0, seconds=0.1 * (seed + 1))
        for seed in range(6)
        for tuner, values in (
            ("good", [5.0, 3.0, 4.0, 2.0 + seed / 10]),
            ("bad", [5.0, 4.0, 4.5, 3.0 + seed]),
        )
    ]


def test_curve_is_the_best_so_far_in_the_objectives_units():
    np.testing.assert_array_equal(curve(run_of("valley", "a", 0, [5.0, 3.0, 4.0])), [5, 3, 3])
    best = curve(run_of("valley", "a", 0, [0.2, 0.5, 0.3], mode="max"))
    np.testing.assert_array_equal(best, [0.2, 0.5, 0.5])
    regret = curve(run_of("valley", "a", 0, [0.2, 0.5, 0.3], mode="max", optimum=1.0), "regret")
    np.testing.assert_allclose(regret, [0.8, 0.5, 0.5])
    with pytest.raises(BenchmarkError, match="optimum of 'valley' is not known"):
        curve(run_of("valley", "a", 0, [1.0], optimum=None), "regret")


def test_summary_has_quartiles_times_and_the_papers_numbers(runs):
    rows = {(row.tuner, row.evaluations): row for row in summarize(runs, TASK)}
    good = rows["good", 4]
    ends = 1.0 + np.arange(6) / 10
    quartiles = (good.quarter, good.median, good.three_quarters)
    assert quartiles == pytest.approx(tuple(np.quantile(ends, [0.25, 0.5, 0.75])))
    assert good.mean == pytest.approx(ends.mean())
    assert good.seconds == pytest.approx(0.35)
    assert (good.paper, good.paper_spread, good.seeds) == (0.5, 0.1, 6)
    assert good.worse is None
    assert rows["theirs", 4].seeds == 0
    assert rows["theirs", 4].paper == 0.9
    assert rows["good", 2].median == pytest.approx(2.0)  # a paper's earlier number


def test_p_value_is_scipys(runs):
    rows = {(row.tuner, row.evaluations): row for row in summarize(runs, TASK)}
    best_bad = np.minimum(4.0, 3.0 + np.arange(6))
    difference = best_bad - (2.0 + np.arange(6) / 10)
    expected = wilcoxon(difference, alternative="greater").pvalue
    assert rows["bad", 4].worse == pytest.approx(expected)
    assert expected < 0.05


def test_p_value_of_ties_and_of_no_common_seed():
    assert wilcoxon_worse({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}) == 1.0
    assert wilcoxon_worse({0: 1.0}, {1: 2.0}) is None


def test_the_table_shows_all_rows_and_marks_the_best(runs):
    console = Console(file=io.StringIO(), width=160)
    print_table(summarize(runs, TASK), TASK, console)
    shown = console.file.getvalue()
    for text in ("valley", "good", "bad", "theirs", "0.5 ± 0.1", "1.25", "made up", "regret"):
        assert text in shown
