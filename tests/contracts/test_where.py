"""What a space allows is all that is ever proposed, by any method."""

from __future__ import annotations

from typing import Any

import pytest

from raybo.methods.registry import METHODS
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from tests.contracts.test_methods import accepted

UNIT = Float(0, 1)
SPACES = {
    "half": Space({"a": UNIT, "b": UNIT}, where=lambda c: c["a"] <= c["b"]),
    "a hundredth": Space({"a": UNIT, "b": UNIT}, where="abs(a - b) < 0.005"),
    "a ten-thousandth": Space({"a": UNIT, "b": UNIT}, where="abs(a - b) < 5e-5"),
    "integers": Space({"a": Int(0, 20), "b": Int(0, 20)}, where="a + b == 10"),
    "shares": Space({f"s{i}": UNIT for i in range(5)}, where="sum(s0, s1, s2, s3, s4) <= 1"),
    "list": Space(
        {"a": Float(1e-3, 1, log=True), "b": UNIT},
        where=[{"a": (i + 1) / 40, "b": i * 7 % 40 / 39} for i in range(40)],
    ),
    "listed branches": Space(
        {"n": Int(1, 9), "c": Choice({"svd": {"rank": Int(1, 9)}, "none": {}})},
        where=[{"n": n, "c": {"svd": {"rank": 10 - n}}} for n in range(1, 10)]
        + [{"n": n, "c": {"none": {}}} for n in (2, 5, 9)],
    ),
    "tree": Space(
        {"n": Int(1, 9), "c": Choice({"svd": {"rank": Int(1, 9)}, "l1": {"t": UNIT}})},
        where="c.svd.rank < n and c.l1.t < n / 20",
    ),
}
# Some methods on all spaces; of the others each has its turn at one of the sets of floats, and
# `make slow` has the rest. A published one, which is slower, on one space.
EVERYWHERE = ("auto", "random", "sobol")
FLOATS = ("half", "a hundredth", "a ten-thousandth", "shares", "list")
PAPER = {"addtree": "tree", "rembo": "half", "addgp": "shares", "rpp": "shares"}
SLOW = ("bock", "bo")  # with preset "paper": seconds for a proposal


def cases() -> list[Any]:
    found = []
    for place, (name, presets) in enumerate(METHODS.items()):
        rest = {kind for kind in FLOATS if kind != FLOATS[place % len(FLOATS)]}
        for preset in presets:
            options: dict[str, Any] = {} if name in ("random", "sobol") else {"n_init": 2}
            if preset == "paper":
                options |= {"preset": "paper"} | ({"seconds": 0.02} if name == "egp" else {})
            if name == "bock":
                options["inference"] = "map"
            kinds = list(SPACES) if preset == "default" else [PAPER.get(name, "half")]
            if preset == "paper":
                slow = set(kinds) if name in SLOW else set()
            else:
                slow = set() if name in EVERYWHERE else rest
            found += [
                pytest.param(
                    name,
                    options,
                    SPACES[kind],
                    id=f"{name}-{preset}-{kind}",
                    marks=[pytest.mark.slow] if kind in slow else [],
                )
                for kind in kinds
                if accepted(name, options, SPACES[kind])
            ]
    return found


def total(config: Any) -> float:
    """Sum of all numbers of a config."""
    return sum(total(v) if isinstance(v, dict) else float(v) for v in config.values())


@pytest.mark.parametrize(("name", "options", "space"), cases())
def test_every_proposal_is_allowed_and_new(
    name: str, options: dict[str, Any], space: Space
) -> None:
    # Least outside of what is allowed, where a search that forgets the condition would go.
    study = Optimizer(space, name, seed=3, **options)
    for _ in range(2):
        trials = [study.ask(), study.ask()]
        for trial in trials:
            assert space.allows(trial.config)
            study.tell(trial.number, -total(trial.config))
    assert len({str(trial.config) for trial in study.trials}) == 4


def test_the_best_point_on_the_edge_of_what_is_allowed_is_found() -> None:
    study = Optimizer(Space({"a": UNIT, "b": UNIT}, where="a ** 2 + b ** 2 <= 0.5"), "bo", seed=1)
    for _ in range(20):
        trial = study.ask()
        study.tell(trial.number, -trial.config["a"] - trial.config["b"])
    assert study.best is not None
    assert study.best.value == pytest.approx(-1.0, abs=1e-3)
