from __future__ import annotations

import numpy as np
import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.tuners import registry
from raybo.benchmarks.tuners.base import Tuner, centre_config, parse_spec, split_specs
from raybo.benchmarks.tuners.columns import Flat
from raybo.benchmarks.tuners.registry import (
    BASELINES,
    PEERS,
    Entry,
    build_tuner,
    check_tuner,
    is_installed,
    package_of,
    why_not,
)
from raybo.errors import MethodError
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space

OPTIONS = {
    "botorch": ":n_init=3,raw_samples=16,num_restarts=2",
    "turbo": ":n_init=3",
    "bo": ":n_init=3",
}
OWN = ["random", "sobol", "bo"]
FLAT_ONLY = ("botorch", "turbo", "hebo")
FEW_PER_LEAF = ("independent-gps",)  # two points in each of four leaves come first
UNSEEDED = ("hebo",)  # its evolutionary search seeds itself


def case(name):
    """Spec of a tuner; skipped, with the reason, where its package is missing."""
    missing = name not in OWN and not is_installed(name)
    reason = f"needs {package_of(name)}"
    return pytest.param(
        name + OPTIONS.get(name, ""), id=name, marks=pytest.mark.skipif(missing, reason=reason)
    )


NAMES = [*OWN, *PEERS, *BASELINES]
ALL = [case(name) for name in NAMES]
CONDITIONAL = [case(name) for name in NAMES if name not in FLAT_ONLY]
SEEDED = [case(name) for name in NAMES if name not in UNSEEDED]


def mixed_space():
    return Space(
        {
            "lr": Float(1e-3, 1.0, log=True),
            "width": Int(1, 64, log=True),
            "shift": Int(-3, 3),
            "act": Categorical(["relu", "gelu", None]),
            "drop": Float(0, 1, step=0.25),
            "constant": Float(2, 2),
        }
    )


def drive(tuner, objective, n=6):
    configs = []
    for _ in range(n):
        config = tuner.ask()
        tuner.tell(config, objective(config))
        configs.append(config)
    return configs


@pytest.mark.parametrize("spec", ALL)
def test_a_tuner_starts_at_the_centre_and_stays_in_the_space(spec):
    problem = get_problem("branin")
    tuner = build_tuner(spec, problem.space, seed=1, evaluations=12, centre=True)
    configs = drive(tuner, problem.objective)
    np.testing.assert_array_equal(np.asarray(configs[0]["x"]), [0.0, 0.0])
    rows = np.array([problem.space.encode(config) for config in configs])
    assert len(np.unique(rows, axis=0)) == 6


@pytest.mark.parametrize("spec", SEEDED)
def test_the_same_seed_gives_the_same_configs(spec):
    problem = get_problem("hartmann6")
    runs = []
    for _ in range(2):
        tuner = build_tuner(spec, problem.space, seed=5, evaluations=12, centre=True)
        runs.append([problem.space.encode(c) for c in drive(tuner, problem.objective, 5)])
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("spec", ALL)
def test_a_tuner_takes_points_it_did_not_ask_for(spec):
    problem = get_problem("branin")
    space = problem.space
    tuner = build_tuner(spec, space, seed=0, evaluations=30)
    for row in space.sample(12, np.random.default_rng(0)):
        config = space.decode(row)
        tuner.tell(config, problem.objective(config))
    space.encode(drive(tuner, problem.objective, 2)[-1])


@pytest.mark.parametrize("spec", ALL)
def test_a_tuner_searches_mixed_spaces(spec):
    space = mixed_space()
    tuner = build_tuner(spec, space, seed=0, evaluations=12, centre=True)
    for config in drive(tuner, lambda c: c["lr"] + c["width"] * c["shift"] + (c["act"] is None)):
        space.encode(config)  # an error if it is no config of the space
        assert config["constant"] == 2.0


@pytest.mark.parametrize("spec", CONDITIONAL)
def test_a_tuner_searches_conditional_spaces(spec):
    problem = get_problem("jenatton")
    tuner = build_tuner(spec, problem.space, seed=0, evaluations=12, centre=True)
    n = 10 if spec in FEW_PER_LEAF else 5  # more than its initial design
    rows = [problem.space.encode(c) for c in drive(tuner, problem.objective, n)]
    assert len(np.unique(rows, axis=0)) == n


@pytest.mark.parametrize("spec", [case(name) for name in FLAT_ONLY])
def test_a_tuner_without_conditions_refuses_them_by_name(spec):
    with pytest.raises(MethodError, match=r"cannot search 'x1/0/r8', which exists only for some"):
        build_tuner(spec, get_problem("jenatton").space)


def test_what_does_not_apply_is_known_before_a_run():
    tree, flat = get_problem("jenatton").space, get_problem("branin").space
    assert "x1" in why_not("egp", tree)
    assert why_not("egp", flat) is None
    assert why_not("addtree", tree) is None
    with pytest.raises(MethodError, match="'bohb' is not known"):
        why_not("bohb", flat)


def test_a_tuner_recommends_its_best_unless_it_has_a_rule():
    class Search:
        def ask(self):
            return {"x": 0.5}

        def tell(self, config, loss):
            pass

    class Cautious(Search):
        def recommend(self):
            return {"x": 0.25}

    tuner = Tuner(Search())
    with pytest.raises(MethodError, match="no loss has been told yet"):
        tuner.recommend()
    for x, loss in ((0.1, 3.0), (0.2, 1.0), (0.3, 2.0)):
        tuner.tell({"x": x}, loss)
    assert tuner.recommend() == tuner.luckiest == {"x": 0.2}
    assert Tuner(Cautious()).recommend() == {"x": 0.25}


def test_numbers_with_a_step_keep_their_order_for_other_tools():
    flat = Flat(mixed_space())
    drop = next(d for d in flat.dimensions if d.name == "drop")
    assert (drop.kind, drop.low, drop.high) == ("int", 0, 4)
    for index, value in enumerate((0.0, 0.25, 0.5, 0.75, 1.0)):
        config = flat.config({"drop": index, "lr": 0.1, "width": 2, "shift": 0, "act": 0})
        assert config["drop"] == value
        assert flat.values(config)["drop"] == index


@pytest.mark.skipif(not is_installed("optuna-auto"), reason="needs optuna")
@pytest.mark.parametrize(
    ("space", "first"),
    [
        ({"x": Float(0, 1), "n": Int(1, 9)}, "GPSampler"),
        ({"x": Float(0, 1), "c": Categorical(["a", "b", "c"])}, "TPESampler"),
        (get_problem("jenatton").space, "TPESampler"),
    ],
)
def test_optuna_s_rule_chooses_by_the_kind_of_the_space(space, first):
    space = space if isinstance(space, Space) else Space(space)
    search = build_tuner("optuna-auto", space, seed=0).search
    assert type(search._study.sampler).__name__ == first
    rng = np.random.default_rng(0)
    for row in space.sample(250, rng):
        search.tell(space.decode(row), float(rng.random()))
    search.ask()
    after = "CmaEsSampler" if first == "GPSampler" else first
    assert type(search._study.sampler).__name__ == after


@pytest.mark.skipif(not is_installed("turbo"), reason="needs botorch")
def test_turbo_s_region_doubles_halves_and_starts_anew():
    space = get_problem("branin").space
    tuner = build_tuner("turbo:n_init=2", space, evaluations=60).search
    region = tuner._region
    region.best = 1.0
    for k in range(10):
        region.update(0.5 - k, dim=3)
    assert region.length == 1.6
    for _ in range(4):
        region.update(0.0, dim=3)
    assert region.length == 0.8
    region.best, region.failures = 1.0, 0
    for row in space.sample(40, np.random.default_rng(0)):
        tuner.tell(space.decode(row), 1.0)
    assert tuner._regions == 2
    assert tuner._region.first == 30  # a design of 2, then 7 halvings after 4 failures each


def test_specs_hold_typed_options():
    assert parse_spec("bo") == ("bo", {})
    spec = "rembo:d=2,k=4,preset=paper,x=1e-3,warp=False,y=none"
    options = {"d": 2, "k": 4, "preset": "paper", "x": 1e-3, "warp": False, "y": None}
    assert parse_spec(spec) == ("rembo", options)
    with pytest.raises(MethodError, match="'d' is not option=value"):
        parse_spec("rembo:d")


def test_a_list_of_specs_splits_at_names_only():
    assert split_specs("rembo:d=2,k=4, bo,optuna-gp") == ["rembo:d=2,k=4", "bo", "optuna-gp"]
    assert split_specs("") == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bohb", "tuner 'bohb' is not known; choose one of raybo's methods (auto"),
        ("random:n=3", "tuner 'random' has no option 'n'; it takes preset"),
        ("absent", "needs the package 'no_such_package', which is not installed; pip install"),
    ],
)
def test_a_wrong_tuner_says_what_is_allowed(spec, message, monkeypatch):
    absent = Entry("none:None", "no_such_package")
    monkeypatch.setitem(registry._ENTRIES, "absent", absent)
    with pytest.raises(MethodError) as error:
        check_tuner(spec)
    assert message in str(error.value)


@pytest.mark.parametrize("spec", [case(name) for name in PEERS])
def test_a_wrong_option_of_a_peer_is_refused(spec):
    name, _ = parse_spec(spec)
    with pytest.raises(MethodError, match=f"tuner '{name}' has no option 'nonsense'"):
        check_tuner(f"{name}:nonsense=1")


def test_a_huge_box_has_no_centre():
    with pytest.raises(BenchmarkError, match="1,000,000,000 dimensions has no centre"):
        centre_config(Box(10**9))


def test_random_search_runs_in_a_billion_dimensions():
    problem = get_problem("branin-1e9")
    tuner = build_tuner("random", problem.space, seed=0)
    assert len(drive(tuner, problem.objective, 3)) == 3
