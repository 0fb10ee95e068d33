"""Tune's domains give the values of Ray's own sampler, bound for bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune
from ray.tune.search.sample import Categorical as Grid
from ray.tune.search.sample import Domain, Float

from raybo.errors import SpaceError
from raybo.space.parameters import Categorical, Int
from raybo.tune.space.domains import Multiples, Pick, Scalar, scalar, signature

FINITE = {
    "quniform": tune.quniform(-1.0, 2.0, 0.1),
    "quniform_int_bounds": tune.quniform(0, 10, 2),
    "qloguniform": tune.qloguniform(0.1, 2.0, 0.1),
    "randint": tune.randint(-3, 4),
    "randint_one": tune.randint(5, 6),
    "qrandint": tune.qrandint(1, 10, 3),
    "qrandint_aligned": tune.qrandint(2, 8, 2),
    "qrandint_by_one": tune.qrandint(1, 5),
    "qrandint_half": tune.qrandint(0, 20, 2.5),
    "lograndint": tune.lograndint(1, 30),
    "qlograndint": tune.qlograndint(3, 40, 4),
    "qlograndint_by_one": tune.qlograndint(2, 9, 1),
}
CONTINUOUS = {
    "uniform": tune.uniform(-5, 10),
    "loguniform": tune.loguniform(1e-5, 1e-1),
    "randn": tune.randn(10, 2),
    "bare_float": Float(0.0, 1.0),
}
CHOICES = {
    "strings": tune.choice(["a", "b"]),
    "mixed": tune.choice([1, 2.5, "a", True, None]),
    "numbers": tune.choice([64, 16, 32]),
    "lists": tune.choice([[1, 2], [3], (1, 2)]),
    "dicts": tune.choice([{"a": 1}, {"a": 2}]),
}


def scalar_of(domain: Domain) -> Scalar:
    return scalar(*signature(domain))


def sampled(domain: Domain, n: int = 4000) -> list:
    values = domain.sample(size=n, random_state=np.random.default_rng(0))
    return [domain.cast(v) for v in values]


@pytest.mark.parametrize("name", FINITE)
def test_finite_domain_has_exactly_the_values_of_the_sampler(name: str) -> None:
    domain = scalar_of(FINITE[name])
    assert isinstance(domain, Multiples)
    shown = [domain.show(k) for k in range(domain.first, domain.last + 1)]
    drawn = sampled(FINITE[name])
    # np.exp(np.log(2)) is below 2, so that Ray's log sampler can, rarely, miss its lower bound.
    drawn = [v for v in drawn if v >= FINITE[name].lower]
    assert sorted(set(drawn)) == sorted(shown)
    assert {type(v) for v in drawn} == {type(v) for v in shown}


@pytest.mark.parametrize("name", FINITE | CONTINUOUS)
def test_sampled_values_are_read_and_shown_again(name: str) -> None:
    domain = (FINITE | CONTINUOUS)[name]
    ours = scalar_of(domain)
    for value in sampled(domain, 200):
        inner = ours.read(value)
        assert ours.parameter.contains(inner)
        again = ours.show(inner)
        assert type(again) is type(value)
        assert again == (pytest.approx(value, rel=1e-9) if name == "randn" else value)


@given(u=st.floats(0, 1), name=st.sampled_from(sorted(FINITE | CONTINUOUS)))
def test_every_position_decodes_into_the_domain(u: float, name: str) -> None:
    domain = (FINITE | CONTINUOUS)[name]
    ours = scalar_of(domain)
    value = ours.show(ours.parameter.decode(u))
    assert domain.is_valid(value)
    assert math.isfinite(value)
    if name in ("uniform", "loguniform"):
        assert domain.lower <= value < domain.upper


def test_upper_bound_of_a_continuous_domain_is_accepted_and_never_suggested() -> None:
    ours = scalar_of(tune.uniform(0, 1))
    assert ours.read(1.0) == 1.0
    assert ours.show(1.0) == math.nextafter(1.0, 0.0)
    assert scalar_of(tune.uniform(2, 2)).show(2.0) == 2.0


@given(value=st.floats(-9, 9))
def test_normal_domain_goes_by_the_cumulative_probability(value: float) -> None:
    ours = scalar_of(tune.randn(1.0, 2.0))
    inner = ours.read(value)
    assert inner == pytest.approx(0.5 * math.erfc((1.0 - value) / (2.0 * math.sqrt(2.0))))


def test_normal_domain_is_searched_without_its_infinite_ends() -> None:
    ours = scalar_of(tune.randn(1.0, 2.0))
    assert ours.show(0.0) == 1.0 - 9.0
    assert ours.show(1.0) == 1.0 + 9.0
    assert ours.read(1e6) == 1.0


def test_quantised_normal_gives_multiples() -> None:
    ours = scalar_of(tune.qrandn(0.0, 1.0, 0.25))
    values = {ours.show(u) for u in np.linspace(0, 1, 500)}
    assert all((v / 0.25).is_integer() for v in values)
    assert values <= {k * 0.25 for k in range(-18, 19)}


@pytest.mark.parametrize("name", CHOICES)
def test_choice_keeps_the_objects_themselves(name: str) -> None:
    values = CHOICES[name].categories
    ours = scalar_of(CHOICES[name])
    for value in values:
        assert ours.show(ours.read(value)) is value
    assert ours.parameter.cardinality == len(values)


def test_numbers_of_a_choice_keep_their_order_and_two_do_not_need_one() -> None:
    ours = Pick((64, 16, 32))
    assert isinstance(ours.parameter, Int)
    assert [ours.show(k) for k in range(3)] == [16, 32, 64]
    assert isinstance(Pick((1, 2)).parameter, Categorical)
    assert isinstance(Pick((1, 1.0, 2)).parameter, Categorical)
    assert isinstance(Pick((1, 2, True)).parameter, Categorical)


def test_repeated_values_of_a_choice_count_once() -> None:
    assert Pick(("a", "b", "a")).parameter.cardinality == 2


def test_choice_reads_what_numpy_or_json_made_of_its_values() -> None:
    assert Pick((16, 32, 64)).read(np.int64(32)) == 1
    assert Pick(((3, 3), (5, 5))).read([5, 5]) == 1
    with pytest.raises(SpaceError, match="True is not one of 1, 2"):
        Pick((1, 2)).read(True)


@pytest.mark.parametrize(
    ("domain", "value", "words"),
    [
        (tune.uniform(0, 1), 1.5, "outside"),
        (tune.uniform(0, 1), "x", "expected a number"),
        (tune.uniform(0, 1), True, "expected a number"),
        (tune.uniform(0, 1), math.nan, "expected a number"),
        (tune.randint(0, 5), 5, "outside 0 .. 4"),
        (tune.randint(0, 5), 2.5, "not a multiple of 1"),
        (tune.qrandint(1, 10, 3), 4, "not a multiple of 3"),
        (tune.choice(["a"]), "b", "not one of 'a'"),
    ],
)
def test_value_outside_its_domain_is_refused(domain: Domain, value: object, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        scalar_of(domain).read(value)


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (tune.sample_from(lambda _: 1), "sample_from is a function.*compute the value in the"),
        (Grid([1]).grid(), "grid_search.*use tune.choice"),
        (tune.randint(5, 5), "no values: the upper bound is not included"),
        (tune.qrandint(4, 5, 3), "no values: no multiple of 3"),
        (tune.choice([]), "at least one value"),
    ],
)
def test_domain_that_cannot_be_searched_is_refused(domain: Domain, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        scalar_of(domain).parameter.check()
