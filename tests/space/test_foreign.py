"""Domains of Ray Tune and distributions of Optuna in a Space."""

from __future__ import annotations

from typing import Any

import optuna.distributions as od
import pytest
from ray import tune

from raybo import Categorical, Choice, Float, Int, Space
from raybo.errors import SpaceError


@pytest.mark.parametrize(
    ("entry", "parameter"),
    [
        (tune.uniform(0, 2), Float(0, 2)),
        (tune.loguniform(1e-4, 1e-1), Float(1e-4, 1e-1, log=True)),
        (tune.quniform(0, 1, 0.25), Float(0, 1, step=0.25)),
        (tune.randint(1, 9), Int(1, 8)),
        (tune.lograndint(1, 9), Int(1, 8, log=True)),
        (tune.qrandint(1, 9, 2), Int(2, 8, step=2)),
        (tune.choice(["a", 2]), Categorical(["a", 2])),
        (od.FloatDistribution(0, 1), Float(0, 1)),
        (od.FloatDistribution(0.1, 1, log=True), Float(0.1, 1, log=True)),
        (od.FloatDistribution(0, 1, step=0.5), Float(0, 1, step=0.5)),
        (od.IntDistribution(1, 9, log=True), Int(1, 9, log=True)),
        (od.CategoricalDistribution(["a", 2]), Categorical(["a", 2])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_domain_becomes_the_parameter_with_its_values(entry: Any, parameter: Any) -> None:
    assert Space({"p": entry}) == Space({"p": parameter})
    inside = Choice({"on": {"p": entry}, "off": {}})
    assert Space({"c": inside}) == Space({"c": Choice({"on": {"p": parameter}, "off": {}})})


@pytest.mark.parametrize(
    "entry", [tune.randn(), tune.choice([{"k": 1}, {}]), tune.sample_from(lambda _: 1)]
)
def test_a_domain_without_a_parameter_is_refused_with_what_to_write(entry: Any) -> None:
    with pytest.raises(SpaceError, match=r"'p': expected a Float.* write for instance raybo\."):
        Space({"p": entry})
