"""Auto: shares follow predictions, members share all data, noise does not choose the config."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from raybo.errors import MethodError, SurrogateError
from raybo.methods.auto.assumptions import ASSUMPTIONS
from raybo.methods.auto.default import MEMBERS, Auto, members_of, view_of
from raybo.methods.auto.shares import LATEST, SWITCH, shares
from raybo.methods.base import Data
from raybo.methods.bins.default import Bins
from raybo.methods.bins.partition import MEMO
from raybo.methods.bo.default import Bo
from raybo.methods.local.default import Local
from raybo.space.box import Box
from raybo.space.design import design_size
from raybo.space.parameters import Categorical, Choice, Float
from raybo.space.space import Space
from raybo.space.vector import Binned, Embedded
from raybo.study.optimizer import Optimizer
from raybo.study.study import Study
from tests.helpers.data import data_of


def told(*results: tuple[dict[str, list[float]], float], **marks: Any) -> Data:
    """Data whose memos hold what members expected, and the losses that came."""
    data = data_of(Box(1, 0, 1), len(results), np.array([loss for _, loss in results]))
    return replace(data, memos=tuple({"expected": expected, **marks} for expected, _ in results))


def test_a_result_weighs_members_by_the_densities_they_gave_to_it() -> None:
    found = shares(["a", "b"], told(({"a": [1.0, 1.0], "b": [2.0, 0.5]}, 1.0)))
    a, b = norm(1.0, 1.0).pdf(1.0), norm(2.0, 0.5).pdf(1.0)
    assert found["a"] == pytest.approx((1 - SWITCH) * a / (a + b) + SWITCH / 2)
    assert sum(found.values()) == pytest.approx(1.0)


def test_no_member_starves_and_old_mistakes_are_forgotten() -> None:
    wrong = ({"a": [0.0, 1.0], "b": [1e9, 1e-9]}, 0.0)
    right = ({"a": [1.0, 1.0], "b": [0.0, 1.0]}, 0.0)
    assert shares(["a", "b"], told(*[wrong] * 30))["b"] == pytest.approx(SWITCH / 2)
    assert shares(["a", "b"], told(*[wrong] * 30, *[right] * 30))["b"] > 0.8


def test_only_predictions_of_what_was_evaluated_count() -> None:
    wrong = ({"a": [0.0, 1.0], "b": [9.0, 1.0]}, 0.0)
    even = {"a": 0.5, "b": 0.5}
    assert shares(["a", "b"], told(wrong, replaced=True)) == even
    assert shares(["a", "b"], replace(told(wrong), spread=np.array([0.3]))) == even  # unfinished
    assert shares(["a", "c"], told(wrong)) == {"a": 0.5, "c": 0.5}  # c was no member then
    assert shares(["a", "b"], told()) == even


def test_results_beyond_all_expectation_and_deviations_of_zero_are_weighed() -> None:
    found = shares(["a", "b"], told(({"a": [0.0, 1e-9], "b": [0.0, 1e-9]}, 1e300)))
    assert found == {"a": 0.5, "b": 0.5}
    found = shares(["a", "b"], told(({"a": [1.0, 0.0], "b": [1.0, 1.0]}, 1.0)))
    assert found["a"] > 0.9


def test_thousands_of_results_count_by_the_latest() -> None:
    old = [({"a": [0.0, 1.0], "b": [1.0, 1.0]}, 0.0)] * LATEST
    new = [({"a": [1.0, 1.0], "b": [0.0, 1.0]}, 0.0)] * LATEST
    both = shares(["a", "b"], told(*old, *new))
    assert both["b"] == pytest.approx(shares(["a", "b"], told(*new))["b"], abs=1e-6)


def run(space: Any, f: Any, n: int, **options: Any) -> Study:
    study = Study(space, Auto(space, **options), seed=3)
    for _ in range(n):
        trial = study.ask()
        study.tell(trial.number, f(study.space.encode(trial.config)))
    return study


def test_the_member_whose_assumption_holds_proposes_most() -> None:
    """One column of eight matters: scales of their own hold, one scale for all does not."""
    study = run(Box(8, 0, 1), lambda u: math.sin(9 * u[3]) + u[3], 30)
    share = list(study.trials.values())[-1].memo["shares"]
    assert share["bo"] > 0.7
    proposed = Counter(t.memo.get("member") for t in study.trials.values())
    assert proposed["bo"] > proposed["local"] > 0


def test_members_learn_from_all_results_and_note_for_themselves() -> None:
    space = Box(3, 0, 1)
    study = run(space, lambda u: float(((u - 0.4) ** 2).sum()), 16)
    data = study.data(16)
    for name, kind in (("bo", Bo), ("local", Local)):
        view = view_of(name, kind(space, n_init=1), data)
        assert len(view.gp.X) == 16
        assert np.array_equal(view.data.X, data.X)
        fits = [memo["fitted"] for memo in view.data.memos if "fitted" in memo]
        assert fits == sorted(fits)
        assert len(fits) < 16  # not at every proposal


def test_what_was_expected_is_noted_for_every_member() -> None:
    """And is about right: half of the results are within two deviations."""
    study = run(Box(2, 0, 1), lambda u: float(((u - 0.4) ** 2).sum()), 14)
    noted = [t for t in study.trials.values() if "expected" in t.memo]
    assert len(noted) == 14 - design_size(2)
    for name in Auto(Box(2, 0, 1)).methods:
        pairs = np.array([t.memo["expected"][name] for t in noted])
        errors = np.abs(pairs[:, 0] - [t.value for t in noted])
        assert np.median(errors / pairs[:, 1]) < 2.0


def test_what_is_expected_of_a_result_includes_its_noise() -> None:
    """A config of a noisy study, tried often: its mean is known, its next result is not."""
    space, rng = Box(1, 0, 1), np.random.default_rng(0)
    study = run(space, lambda u: 0.1 * u[0] + rng.standard_normal(), 60)
    last = list(study.trials.values())[-1]
    assert min(deviation for _, deviation in last.memo["expected"].values()) > 0.5


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (Box(3), ("bo", "local")),
        (Space({"a": Float(0, 1), "b": Categorical(["x", "y"])}), ("bo", "local")),
        (Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})}), ("addtree", "bo")),
    ],
)
def test_the_space_decides_who_takes_part(space: Any, names: tuple[str, ...]) -> None:
    assert members_of(space) == names
    assert tuple(Auto(space).methods) == names


def test_a_box_without_columns_is_left_to_bins_with_its_lanes() -> None:
    auto = Auto(Box(10**9))
    assert isinstance(auto.only, Bins)
    assert auto.lanes == auto.only.lanes
    trial = Optimizer(Box(10**9), "auto").ask()
    assert MEMO in trial.memo


def test_a_study_of_a_huge_box_that_rembo_began_goes_on() -> None:
    """As auto did before: its points are embedded, and say nothing of bins."""
    before = Optimizer(Box(10**9), "rembo", seed=3)
    for _ in range(14):
        trial = before.ask()
        before.tell(trial, float(np.sum(trial.config["x"][:3] ** 2)))
    state = before.state()
    state["method"] = {"name": "auto", "options": {}}
    after = Optimizer.from_state(state)
    for _ in range(14):
        trial = after.ask()
        after.tell(trial, float(np.sum(trial.config["x"][:3] ** 2)))
    assert [type(t.config["x"].source) for t in after.trials] == [Embedded] * 14 + [Binned] * 14
    assert after.best is not None


def test_members_can_be_named() -> None:
    assert tuple(Auto(Box(3), members=("egp",)).methods) == ("egp",)
    with pytest.raises(MethodError, match=r"members must be one of .*got 'tpe'"):
        Auto(Box(3), members=("bo", "tpe"))


def test_every_member_has_its_assumption_in_words() -> None:
    assert ASSUMPTIONS.keys() == MEMBERS.keys()


def test_a_member_whose_model_fails_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Local, data: Any) -> Any:
        raise SurrogateError("no model today")

    monkeypatch.setattr(Local, "model", fail)
    study = run(Box(2, 0, 1), lambda u: float(u.sum()), 8)
    assert "proposed without local: no model today" in caplog.text
    assert list(study.trials.values())[-1].memo["shares"] == {"bo": 1.0}


def test_the_recommended_config_is_not_the_luckiest() -> None:
    """Noise of 0.3 on a bowl: the best value is luck, the recommended config near the bottom."""
    gaps = []
    for seed in range(3):
        opt, rng = Optimizer({"x": Float(0, 1)}, seed=seed), np.random.default_rng(seed)
        for _ in range(30):
            trial = opt.ask()
            opt.tell(trial, 4 * (trial.config["x"] - 0.3) ** 2 + 0.3 * rng.standard_normal())
        found = opt.recommend()
        assert found is not None
        assert found.deviation is not None
        assert opt.best is not None
        assert found.expected > opt.best.value  # which it takes for luck
        gaps.append(abs(found.config["x"] - 0.3))
    assert np.mean(gaps) < 0.15


def test_a_recommended_config_keeps_the_constraints() -> None:
    opt = Optimizer({"x": Float(0, 1)}, constraints={"size": (None, 0.5)})
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, -trial.config["x"], extra={"size": trial.config["x"]})
    found = opt.recommend()
    assert found is not None
    assert found.config["x"] <= 0.5


def test_without_a_model_the_best_trial_is_recommended() -> None:
    opt = Optimizer({"x": Float(0, 1)}, "random")
    assert opt.recommend() is None
    for value in (3.0, 1.0, 2.0):
        opt.tell(opt.ask(), value)
    found = opt.recommend()
    assert found is not None
    assert (found.expected, found.deviation, found.trial.number) == (1.0, None, 1)


def test_a_view_does_not_change_the_data() -> None:
    study = run(Box(2, 0, 1), lambda u: float(u.sum()), 8)
    data = study.data(8)
    before = replace(data, cache={})
    view_of("bo", Bo(Box(2, 0, 1)), data)
    assert replace(data, cache={}).memos == before.memos
