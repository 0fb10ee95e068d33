"""A list as `where`: only its configs are proposed, with the very numbers that were given."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from raybo.errors import SpaceError, SpaceExhausted
from raybo.space.definition import difference, space_from_definition
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer

PARAMETERS = {
    "rate": Float(1e-5, 1e-1, log=True),
    "width": Int(1, 64),
    "kind": Categorical(["a", "b", "c"]),
}


def configs(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "rate": float(10 ** rng.uniform(-5, -1)),
            "width": int(rng.integers(1, 65)),
            "kind": "abc"[rng.integers(3)],
        }
        for _ in range(n)
    ]


def test_rows_decode_to_the_very_configs_of_the_list() -> None:
    given = configs(300)
    space = Space(PARAMETERS, where=given)
    assert space.cardinality == 300
    assert list(space.points()) == given
    assert [space.decode(space.encode(config)) for config in given] == given
    anywhere = np.random.default_rng(1).random((50, 3))
    assert all(space.decode(row) in given for row in anywhere)
    assert [space.decode(row) for row in space.snap(anywhere)] == [
        space.decode(row) for row in anywhere
    ]


def test_a_row_goes_to_the_nearest_config_and_a_category_counts_as_the_whole_range() -> None:
    space = Space(
        {"x": Float(0, 1), "kind": Categorical(["a", "b", "c"])},
        where=[{"x": 0.1, "kind": "a"}, {"x": 0.9, "kind": "a"}, {"x": 0.2, "kind": "c"}],
    )
    rows = [space.encode({"x": x, "kind": kind}) for x, kind in ((0.4, "a"), (0.6, "a"), (1, "c"))]
    assert [space.decode(row)["x"] for row in rows] == [0.1, 0.9, 0.2]


def test_a_sample_has_every_config_once_as_far_as_they_go() -> None:
    space = Space(PARAMETERS, where=configs(20))
    rng = np.random.default_rng(0)
    for n, different in ((5, 5), (20, 20), (33, 20)):
        rows = space.sample(n, rng)
        assert rows.shape == (n, 3)
        assert len({row.tobytes() for row in rows}) == different


def test_equal_configs_count_once_and_numbers_of_numpy_are_numbers() -> None:
    twice = [{"x": np.float64(0.25)}, {"x": 0.5}, {"x": 0.25}]
    space = Space({"x": Float(0, 1)}, where=twice)
    assert list(space.points()) == [{"x": 0.25}, {"x": 0.5}]
    assert type(space.decode(np.array([0.2]))["x"]) is float


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([], "empty list"),
        ([{"x": 0.5}, {"x": 7}], "entry 1 of where is no config of the space: .*'x'"),
        ([{"x": 0.5, "y": 1}], "entry 0 of where"),
        (["x"], "entry 0 of where"),
        (3, "a function of the config or a list of configs, got 3"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(where: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space({"x": Float(0, 1)}, where=where)


def test_a_definition_has_the_list_and_tells_two_lists_apart() -> None:
    space = Space(
        {**PARAMETERS, "net": Choice({"deep": {"n": Int(1, 9)}, "flat": {}})},
        where=[{**config, "net": {"deep": {"n": i + 1}}} for i, config in enumerate(configs(9))],
    )
    definition = json.loads(json.dumps(space.definition()))
    assert space_from_definition(definition) == space
    assert space_from_definition(definition, to_search=False).cardinality is None
    other = Space(PARAMETERS, where=configs(9))
    fewer = Space(PARAMETERS, where=configs(8))
    assert other != fewer
    assert difference(other.definition(), fewer.definition()) == [
        "where a list of 9 -> a list of 8"
    ]


def test_a_point_that_is_not_in_the_list_is_refused() -> None:
    space = Space({"x": Float(0, 1)}, where=[{"x": 0.25}, {"x": 0.5}])
    space.check_allowed({"x": 0.5})
    with pytest.raises(SpaceError, match=r"not allowed by where \(a list of 2 configs\)"):
        space.check_allowed({"x": 0.3})


def test_the_best_of_a_list_is_found_and_a_list_can_be_used_up() -> None:
    given = configs(1000)

    def loss(config: Any) -> float:
        distance = (np.log10(config["rate"]) + 3) ** 2 + (config["width"] / 64 - 0.6) ** 2
        return float(distance + (config["kind"] != "b"))

    optimizer = Optimizer(Space(PARAMETERS, where=given), seed=0)
    for _ in range(40):
        trial = optimizer.ask()
        optimizer.tell(trial, loss(trial.config))
    assert min(t.value or 0.0 for t in optimizer.trials) == min(map(loss, given))

    few = Optimizer(Space(PARAMETERS, where=given[:7]), seed=0)
    for _ in range(7):
        trial = few.ask()
        few.tell(trial, loss(trial.config))
    assert sorted(loss(t.config) for t in few.trials) == sorted(map(loss, given[:7]))
    with pytest.raises(SpaceExhausted):
        few.ask()


def test_a_long_list_is_searched_in_samples() -> None:
    given = [{"x": i / 20_000} for i in range(20_001)]
    optimizer = Optimizer(Space({"x": Float(0, 1)}, where=given), "bo", seed=0)
    for _ in range(25):
        trial = optimizer.ask()
        assert trial.config in given
        optimizer.tell(trial, (trial.config["x"] - 0.7654) ** 2)
    assert min(t.value or 0.0 for t in optimizer.trials) < 1e-6
