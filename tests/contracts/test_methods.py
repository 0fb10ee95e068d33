"""What every method promises: finite proposals inside the space, whatever the data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raybo.acquisition.maximizers.base import Acquisition, Array, Region
from raybo.acquisition.maximizers.timed import Timed
from raybo.errors import RayboError, SpaceError
from raybo.methods.base import Data, Method
from raybo.methods.registry import (
    METHODS,
    build_method,
    describe_method,
    method_class,
    option_names,
)
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer

SPACES: dict[str, AnySpace] = {
    "one": Space({"x": Float(-2, 3)}),
    "flat": Space(
        {"a": Float(0, 1), "b": Float(1e-4, 1, log=True), "c": Float(-1, 1), "n": Int(1, 9)}
    ),
    "mixed": Space({"a": Float(0, 1), "n": Int(0, 5), "k": Categorical(["u", "v", "w"])}),
    "constant": Space({"a": Float(0, 1), "b": Float(2, 2), "c": Float(0, 5)}),
    "tree": Space(
        {"a": Float(0, 1), "c": Choice({"l": {"x": Float(0, 1)}, "r": {"n": Int(1, 4)}, "z": {}})}
    ),
    "box": Box(6, 0.0, 1.0),
    "lazy": Box(10**9),
}
CHEAP = {"bock": {"inference": "map"}}  # the same code with one sample in place of many


def build(name: str, space: AnySpace) -> Method | None:
    """The method on the space, or None where it says that it takes no such space."""
    try:
        return build_method(name, space, CHEAP.get(name, {}))
    except SpaceError as error:
        if "use method" in str(error):  # it must say what to use instead
            return None
        raise


CASES = [
    pytest.param(method, id=f"{name}-{kind}")
    for name in METHODS
    for kind, space in SPACES.items()
    if (method := build(name, space)) is not None
]


def data_of(
    space: AnySpace, n: int, losses: np.ndarray, pending: int = 0, copies: bool = False
) -> Data:
    rng = np.random.default_rng(0)
    width = space.dim if space.dense else 0
    rows = space.sample(n + pending, rng) if space.dense else np.empty((n + pending, width))
    if copies and n:
        rows[:n] = rows[0]
    return Data(
        number=4 * (n + pending),
        seed=3,
        X=rows[:n],
        loss=losses,
        failed=np.zeros(n, dtype=bool),
        memos=({},) * n,
        pending=rows[n:],
        pending_memos=({},) * pending,
    )


def check(method: Method, space: AnySpace, data: Data) -> None:
    proposal = method.propose(data, np.random.default_rng(7))
    again = method.propose(data, np.random.default_rng(7))
    config = proposal.config if proposal.x is None else space.decode(proposal.x)
    repeat = again.config if again.x is None else space.decode(again.x)
    text = json.dumps(space.to_json(config))
    assert text == json.dumps(space.to_json(repeat))  # a pure function of its data
    assert space.to_json(space.from_json(json.loads(text))) == json.loads(text)
    if proposal.x is not None:
        assert np.isfinite(proposal.x).all()
        assert ((proposal.x >= 0) & (proposal.x <= 1)).all()
    assert json.loads(json.dumps(proposal.memo)) == proposal.memo


@pytest.mark.parametrize("method", CASES)
class TestMethod:
    def test_no_data(self, method: Method) -> None:
        check(method, method.space, data_of(method.space, 0, np.empty(0)))

    def test_one_datum(self, method: Method) -> None:
        check(method, method.space, data_of(method.space, 1, np.array([1.0])))

    def test_equal_losses(self, method: Method) -> None:
        check(method, method.space, data_of(method.space, 14, np.full(14, 2.5)))

    def test_equal_points(self, method: Method) -> None:
        losses = np.linspace(0, 1, 14)
        check(method, method.space, data_of(method.space, 14, losses, copies=True))

    def test_extreme_losses(self, method: Method) -> None:
        losses = np.array([1e300, -1e300, 1e-300, *np.linspace(-1, 1, 11)])
        check(method, method.space, data_of(method.space, 14, losses))

    def test_many_pending(self, method: Method) -> None:
        losses = np.sin(np.arange(14.0))
        check(method, method.space, data_of(method.space, 14, losses, pending=50))

    def test_a_study_runs_and_resumes_with_the_same_proposals(self, method: Method) -> None:
        space = method.space
        first = Optimizer(space, method, seed=5)
        for i in range(15):
            trial = first.ask()
            if i % 6 == 5:
                first.fail(trial.number, "on purpose")
            else:
                first.tell(trial.number, float(np.sin(3.0 * i)))
        first.ask()  # stays pending
        state = json.loads(json.dumps(first.state()))
        second = Optimizer.from_state(state, space=space, method=method)
        a, b = first.ask(), second.ask()
        assert space.to_json(a.config) == space.to_json(b.config)
        assert len({json.dumps(space.to_json(t.config)) for t in first.trials}) == 17


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_option_is_refused_by_name(name: str) -> None:
    with pytest.raises(RayboError, match="has no option 'flavour'"):
        build_method(name, SPACES["flat"], {"flavour": 1})


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("random", "sobol")])
@pytest.mark.parametrize("options", [{"preset": "thesis"}, {"n_init": 0}, {"n_init": "many"}])
def test_bad_values_of_common_options_are_refused(name: str, options: dict) -> None:
    with pytest.raises(RayboError, match=f"{next(iter(options))} must be"):
        method_class(name)(SPACES["one"], **options)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_rebuilt_from_its_description(name: str) -> None:
    method = build_method(name, SPACES["one"])
    described = json.loads(json.dumps(describe_method(method)))
    assert described["name"] == name
    assert build_method(name, SPACES["one"], described["options"]) == method


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RayboError, match="'annealing' is not known; choose one of random, sobol"):
        build_method("annealing", SPACES["one"])


TIMED = [name for name in METHODS if "seconds" in option_names(method_class(name))]


@pytest.mark.parametrize("name", TIMED)
def test_more_time_is_more_searches_and_the_least_is_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Optimizer(SPACES["box"], method=name, seconds=1e-9)
    for _ in range(40):
        trial = study.ask()
        study.tell(trial.number, float(np.square(trial.config["x"]).sum()))
    calls: list[float] = []
    search = Timed.__call__

    def counted(self: Timed, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        def one(*args: Any) -> Array:
            calls.append(self.seconds)
            return self.search(*args)

        return search(replace(self, search=one), f, region, rng)

    monkeypatch.setattr(Timed, "__call__", counted)
    for seconds in (1e-9, 2.0):
        build_method(name, SPACES["box"], {"seconds": seconds}).propose(
            study._study._data(40, 0), np.random.default_rng(7)
        )
    assert calls.count(1e-9) == 1
    assert calls.count(2.0) > 1
