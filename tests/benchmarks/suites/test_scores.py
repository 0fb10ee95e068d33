from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, wilcoxon

from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.results import Deployed
from raybo.benchmarks.suites.scores import Scale, Scores, scales
from tests.helpers.benchmarks import run_of

UNIT = Scale(0.0, 1.0)


def scores(table, n=1):
    """Scores of {tuner: (problems, seeds)} regrets, on problems p0, p1, ..."""
    runs = [
        run_of(f"p{p}", tuner, seed, [value])
        for tuner, rows in table.items()
        for p, row in enumerate(rows)
        for seed, value in enumerate(row)
    ]
    return Scores.of(runs, {r.cell.problem: UNIT for r in runs}, n)


@pytest.fixture
def three():
    rng = np.random.default_rng(0)
    good = rng.uniform(0.0, 0.5, (8, 4))
    return {"good": good, "fair": good + rng.uniform(-0.1, 0.3, (8, 4)), "bad": good + 0.4}


def test_regret_is_zero_at_the_best_and_one_at_the_median():
    scale = Scale(best=-2.0, median=4.0)
    assert [scale.regret(loss) for loss in (-2.0, 4.0, 10.0, -5.0)] == [0.0, 1.0, 2.0, -0.5]


def test_the_best_value_counts_until_the_stop():
    run = run_of("p0", "a", 3, [0.7, 0.4, 0.9, 0.1])
    for n, expected in ((1, 0.7), (3, 0.4), (4, 0.1)):
        assert Scores.of([run], {"p0": UNIT}, n).regrets == {("p0", "a"): {3: expected}}
    assert Scores.of([run], {"p0": UNIT}, 5).regrets == {}


def test_a_noisy_run_is_scored_by_what_it_recommends_without_the_noise():
    deployed = [Deployed(2, 0.6, 0.5), Deployed(3, 0.8, 0.3)]
    run = run_of("p0", "a", 0, [-9.0, -9.0, -9.0], mode="max", deployed=deployed)
    scale = {"p0": Scale(best=-1.0, median=0.0)}  # as losses: the value 1 is best
    found = Scores.of([run], scale, 3)
    assert found.regrets["p0", "a"][0] == pytest.approx(0.7)
    assert found.luckiest["p0", "a"][0] == pytest.approx(0.2)
    assert Scores.of([run], scale, 1).regrets == {}


def test_scales_use_what_is_known_and_estimate_the_rest(tmp_path):
    cache = tmp_path / "deep" / "medians.json"
    problem = get_problem("branin")
    run = run_of("branin", "a", 0, [50.0], optimum=problem.optimum)
    found = scales([run], cache)["branin"]
    values = [
        problem.objective(problem.space.decode(row))
        for row in problem.space.sample(4000, np.random.default_rng(1))
    ]
    assert found.best == pytest.approx(problem.optimum)
    assert found.median == pytest.approx(np.median(values), rel=0.1)
    stored = json.loads(cache.read_text())
    assert stored["branin"]["median"] == found.median
    cache.write_text(json.dumps({"branin": {"median": 7.0, "best": 1.0}}))
    assert scales([run], cache)["branin"].median == 7.0


def test_runs_are_scored_without_the_data_of_their_problem(tmp_path):
    cache = tmp_path / "medians.json"
    cache.write_text(json.dumps({"gone-with-its-package": {"median": 7.0}}))
    run = run_of("gone-with-its-package", "a", 0, [50.0], optimum=2.0)
    assert scales([run], cache)["gone-with-its-package"] == Scale(2.0, 7.0)


def test_without_a_known_optimum_the_best_of_all_runs_stands_for_it(tmp_path):
    cache = tmp_path / "medians.json"
    cache.write_text(json.dumps({"svm-mdrr": {"median": 7.0, "best": 1.0}}))
    runs = [run_of("svm-mdrr", "a", seed, [3.0 - seed], optimum=None) for seed in range(2)]
    assert scales(runs, cache)["svm-mdrr"] == Scale(1.0, 7.0, known=False)
    runs.append(run_of("svm-mdrr", "a", 2, [0.5], optimum=None))
    assert scales(runs, cache)["svm-mdrr"].best == 0.5


def test_means_ranks_and_tests_are_those_of_scipy(three):
    found = scores(three)
    assert found.mean("good") == pytest.approx(three["good"].mean())
    means = np.array([table.mean(axis=1) for table in three.values()])
    ranks = 1 + np.argsort(np.argsort(means, axis=0), axis=0)
    assert found.mean_ranks() == pytest.approx(dict(zip(three, ranks.mean(axis=1), strict=True)))
    assert found.friedman() == pytest.approx(friedmanchisquare(*means).pvalue)
    versus = found.versus("good", "fair")
    difference = (three["good"] - three["fair"]).ravel()
    assert (versus.wins, versus.losses) == (np.sum(difference < 0), np.sum(difference > 0))
    assert versus.p == pytest.approx(wilcoxon(difference).pvalue)


def test_the_critical_difference_is_the_one_of_the_tables():
    # Demsar (2006), section 3.2.2: four classifiers on 14 data sets, q = 2.569
    four = scores({name: np.arange(14.0)[:, None] for name in "abcd"})
    assert four.critical_difference() == pytest.approx(2.569 * np.sqrt(20 / (6 * 14)), abs=1e-3)


def test_ties_share_a_rank_and_are_neither_won_nor_lost():
    found = scores({"a": [[0.0, 0.5]], "b": [[0.0, 0.5]], "c": [[1.0, 1.0]]})
    assert found.mean_ranks() == {"a": 1.5, "b": 1.5, "c": 3.0}
    versus = found.versus("a", "b")
    assert (versus.wins, versus.ties, versus.losses, versus.p) == (0, 2, 0, 1.0)


def test_a_tuner_that_misses_a_problem_has_no_mean_and_no_rank():
    found = scores({"a": [[0.1], [0.2]], "b": [[0.3]], "c": [[0.4], [0.1]]})
    assert found.complete == ["a", "c"]
    assert found.mean("b") is None
    assert set(found.mean_ranks()) == {"a", "c"}
    versus = found.versus("a", "b")
    assert (versus.wins, versus.ties, versus.losses) == (1, 0, 0)


def test_only_common_seeds_are_compared():
    runs = [run_of("p0", "a", seed, [0.1 * seed]) for seed in range(4)]
    runs += [run_of("p0", "b", seed, [0.15]) for seed in (2, 3)]
    found = Scores.of(runs, {"p0": UNIT}, 1)
    assert found.mean_ranks() == {"a": 2.0, "b": 1.0}  # over all four a would be ahead of b
    assert found.versus("a", "b").losses == 2


def test_what_is_beyond_the_scale_is_said():
    assert scores({"a": [[0.0, 1.0]]}).beyond() == []
    below, above = scores({"a": [[-0.5, 3.0]], "b": [[2.0, 0.5]]}).beyond()
    assert "1 of 4 runs are better than the best known value" in below
    assert "2 of 4 runs are worse than the median value, the farthest a on p0 at 3" in above
