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
from raybo.study.trial import State
from tests.helpers.data import data_of
from tests.helpers.simulated import run_simulated

SPACES: dict[str, AnySpace] = {
    "one": Space({"x": Float(-2, 3)}),
    "mixed": Space(
        {"a": Float(1e-4, 1, log=True), "n": Int(0, 5), "k": Categorical(["u", "v", "w"])}
    ),
    "constant": Space({"a": Float(0, 1), "b": Float(2, 2), "c": Int(0, 50)}),
    "tree": Space(
        {"a": Float(0, 1), "c": Choice({"l": {"x": Float(0, 1)}, "r": {"n": Int(1, 4)}, "z": {}})}
    ),
    "box": Box(5, 0.0, 1.0),
    "lazy": Box(10**9),
}
# Every method under each of its presets, and the spaces on which it is tried: a default on all, a
# published one, whose proposals take up to a second, on one that exercises its own parts. A small
# design, so that few trials are enough for the model to propose.
ALL = tuple(SPACES)
SMALL: dict[str, Any] = {"n_init": 6}
PAPER = {**SMALL, "preset": "paper"}
VARIANTS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "random": ("random", {}, ALL),
    "sobol": ("sobol", {}, ALL),
    "auto": ("auto", SMALL, ALL),
    "bo": ("bo", SMALL, ALL),
    "bo-paper": ("bo", PAPER, ("constant",)),
    "rembo": ("rembo", SMALL, ALL),
    "rembo-paper": ("rembo", {**PAPER, "d": 2}, ("mixed", "lazy")),
    "bins": ("bins", SMALL, ALL),
    "addtree": ("addtree", SMALL, ALL),
    "addtree-paper": ("addtree", PAPER, ("tree",)),
    "addgp": ("addgp", SMALL, ALL),
    "addgp-paper": ("addgp", PAPER, ("mixed",)),
    "rpp": ("rpp", SMALL, ALL),
    "rpp-paper": ("rpp", PAPER, ("constant",)),
    "linear": ("linear", SMALL, ALL),
    "ridge": ("ridge", SMALL, ALL),
    "local": ("local", SMALL, ALL),
    "egp": ("egp", SMALL, ALL),
    # By its rule 0.1 s of search for each dimension, which no two runs repeat; here one search.
    "egp-paper": ("egp", {**PAPER, "seconds": 1e-6}, ("one",)),
    "bock": ("bock", SMALL, ("box",)),
    "bock-map": ("bock", {**SMALL, "inference": "map"}, ("constant", "mixed", "tree", "lazy")),
    "bock-paper": ("bock", PAPER, ("box",)),
}
SLOW = ("bock-paper",)  # a proposal takes about six seconds of processor time
N = 8  # finished trials
MODELS = [name for name in METHODS if name not in ("random", "sobol")]


def accepted(name: str, options: dict[str, Any], space: AnySpace) -> bool:
    """Whether a method takes a space; one that does not must say what to use instead."""
    try:
        build_method(name, space, options)
    except SpaceError as error:
        if "use method" in str(error):
            return False
        raise
    return True


def cases(some: bool = False, published: bool = True) -> list[Any]:
    """Every variant on all of its spaces, or quickly on some, and perhaps no published one.

    With `some` a default is tried on one or two spaces but for auto; the rest are slow.
    """
    found = []
    for place, (variant, (name, options, kinds)) in enumerate(VARIANTS.items()):
        taken = [kind for kind in kinds if accepted(name, options, SPACES[kind])]
        few = some and name != "auto" and len(taken) > 2
        quick = taken[(place + 1) % 3 :: 3] if few else taken  # addtree has the tree
        if options.get("preset") == "paper" and not published:
            quick = []
        for kind in taken:
            marks = [pytest.mark.slow] if variant in SLOW or kind not in quick else []
            found.append(
                pytest.param(name, options, SPACES[kind], id=f"{variant}-{kind}", marks=marks)
            )
    return found


def propose(method: Method, space: AnySpace, data: Data) -> str:
    """Config that a method proposes, as JSON, after checking that it belongs to the space."""
    proposal = method.propose(data, np.random.default_rng(7))
    config = proposal.config if proposal.x is None else space.decode(proposal.x)
    text = json.dumps(space.to_json(config))
    assert space.to_json(space.from_json(json.loads(text))) == json.loads(text)
    if proposal.x is not None:
        assert np.isfinite(proposal.x).all()
        assert ((proposal.x >= 0) & (proposal.x <= 1)).all()
    assert json.loads(json.dumps(proposal.memo)) == proposal.memo
    return text


def losses_of(kind: str) -> np.ndarray:
    """Losses of N trials."""
    if kind == "equal losses":
        return np.full(N, 2.5)
    if kind == "extreme losses":
        return np.array([1e300, -1e300, 1e-300, *np.linspace(-1, 1, N - 3)])
    return np.sin(np.arange(float(N)))


def propose_memo(method: Any, space: AnySpace, number: int) -> dict[str, Any]:
    """What a method notes of a point of its initial design."""
    data = data_of(space, 0, np.empty(0), number=number)
    return dict(method.propose(data, np.random.default_rng(number)).memo)


def test_every_method_and_preset_is_in_the_table() -> None:
    assert {name for name, _, _ in VARIANTS.values()} == set(METHODS)
    of_paper = {name for name, options, _ in VARIANTS.values() if options.get("preset") == "paper"}
    for name in set(METHODS) - of_paper:
        with pytest.raises(RayboError):
            build_method(name, SPACES["one"], {"preset": "paper"})


@pytest.mark.parametrize(("name", "options", "space"), cases())
class TestMethod:
    def test_no_data_and_one_datum(
        self, name: str, options: dict[str, Any], space: AnySpace
    ) -> None:
        method = build_method(name, space, options)
        propose(method, space, data_of(space, 0, np.empty(0)))
        propose(method, space, data_of(space, 1, np.ones(1)))


@pytest.mark.parametrize(("name", "options", "space"), cases(some=True, published=False))
class TestMethodWithData:
    @pytest.mark.parametrize("kind", ["equal losses", "extreme losses", "equal points"])
    def test_degenerate_data(
        self, name: str, options: dict[str, Any], space: AnySpace, kind: str
    ) -> None:
        data = data_of(space, N, losses_of(kind))
        if kind == "equal points":
            data = data_of(space, N, losses_of(kind), X=np.repeat(data.X[:1], N, axis=0))
        propose(build_method(name, space, options), space, data)


@pytest.mark.parametrize(("name", "options", "space"), cases(some=True))
class TestMethodWithPendingPoints:
    def test_a_proposal_is_a_function_of_the_data_also_with_many_pending(
        self, name: str, options: dict[str, Any], space: AnySpace
    ) -> None:
        method = build_method(name, space, options)
        proposals = {
            propose(method, space, data_of(space, N, losses_of(""), pending=50)) for _ in range(2)
        }
        assert len(proposals) == 1


@pytest.mark.parametrize(("name", "options", "space"), cases(some=True, published=False))
class TestMethodWithManyProposals:
    def test_failures_and_bounds(
        self, name: str, options: dict[str, Any], space: AnySpace
    ) -> None:
        """Half of the trials failed; then no trial has kept its bounds, and one has."""
        method, n = build_method(name, space, options), N // 2
        data = data_of(space, N, losses_of(""))
        lanes = method.lanes
        memos = [propose_memo(method, space, number * lanes) for number in range(N)]
        some = replace(
            data,
            number=N * lanes,
            X=data.X[:n],
            loss=data.loss[:n],
            memos=tuple(memos[:n]),
            failed=data.X[n:],
            failed_memos=tuple(memos[n:]),
        )
        for excess in (np.ones((n, 2)), np.linspace(-1.0, 1e300, 2 * n).reshape(n, 2)):
            propose(method, space, replace(some, excess=excess))

    def test_a_study_with_three_workers_resumes_with_the_same_proposals(
        self, name: str, options: dict[str, Any], space: AnySpace
    ) -> None:
        first = Optimizer(space, name, seed=5, **options)
        texts: list[str] = []

        def objective(config: Any) -> float:
            texts.append(json.dumps(space.to_json(config)))
            return float(np.sin(3.0 * len(texts)))

        run_simulated(first, objective, N, workers=3, fails=(2,))
        first.ask()  # stays pending
        state = json.loads(json.dumps(first.state()))
        second = Optimizer.from_state(state, space=space)
        a, b = first.ask(), second.ask()
        assert space.to_json(a.config) == space.to_json(b.config)
        assert [t.number for t in first.trials if t.state is State.FAILED] == [2]
        assert len({json.dumps(space.to_json(t.config)) for t in first.trials}) == N + 2


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_option_is_refused_by_name(name: str) -> None:
    with pytest.raises(RayboError, match="has no option 'flavour'"):
        build_method(name, SPACES["box"], {"flavour": 1})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "thesis"}, "preset .*must be .*, got 'thesis'"),
        ({"n_init": 0}, "n_init must be"),
        ({"n_init": "many"}, "n_init must be"),
    ],
)
def test_bad_values_of_common_options_are_refused(name: str, options: dict, words: str) -> None:
    with pytest.raises(RayboError, match=words):
        build_method(name, SPACES["one"], options)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_method_is_rebuilt_from_its_description(variant: str) -> None:
    name, options, kinds = VARIANTS[variant]
    space = next(SPACES[kind] for kind in kinds if accepted(name, options, SPACES[kind]))
    method = build_method(name, space, options)
    described = json.loads(json.dumps(describe_method(method)))
    assert described["name"] == name
    rebuilt = build_method(name, space, described["options"])
    assert type(rebuilt) is type(method)
    assert rebuilt == method


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RayboError, match=r"'annealing' is not known.* choose one of auto, random"):
        build_method("annealing", SPACES["one"])


TIMED = [name for name in METHODS if "seconds" in option_names(method_class(name))]


@pytest.mark.parametrize("name", TIMED)
def test_more_seconds_are_more_searches_and_the_least_is_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    search = Timed.__call__

    def counted(self: Timed, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        def one(*args: Any) -> Array:
            calls.append(self.seconds)
            return self.search(*args)

        return search(replace(self, search=one), f, region, rng)

    study = Optimizer(SPACES["box"], name, n_init=4, seconds=1e-9)
    run_simulated(study, lambda config: float(np.square(config["x"]).sum()), 6, workers=1)
    monkeypatch.setattr(Timed, "__call__", counted)
    for seconds in (1e-9, 1.0):
        method = build_method(name, SPACES["box"], {"n_init": 4, "seconds": seconds})
        Optimizer.from_state(study.state(), method=method).ask()
    assert calls.count(1e-9) == 1
    assert calls.count(1.0) > 1


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("auto", "bo", "local", "rpp")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in MODELS
        if name not in ("rembo", "bins")
    ],
)
def test_noise_does_not_make_a_random_search_of_one_that_has_come_to_a_corner(name: str) -> None:
    """The corner is the best, and in noise a model sees something to gain there again."""
    optimizer = Optimizer({"a": Float(0, 1), "b": Float(0, 1)}, name, seed=0, n_init=6)
    rng = np.random.default_rng(1)
    for _ in range(18):
        trial = optimizer.ask()
        optimizer.tell(trial.number, sum(trial.config.values()) + 0.05 * rng.normal())
    assert not any(trial.memo.get("replaced") for trial in optimizer.trials)
