"""A param_space becomes a Space, and configs go both ways."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune
from ray.tune.search.sample import Domain
from ray.tune.search.variant_generator import generate_variants

from raybo import Box, Categorical, Choice, Float, Space
from raybo.errors import SpaceError
from raybo.tune.space.json import Lost, describe, rebuild
from raybo.tune.space.param_space import OwnSpace, ParamSpace, saved_search_space, search_space


class Thing:
    """An object that JSON cannot hold."""


THING = Thing()

FULL: dict[str, Any] = {
    "lr": tune.loguniform(1e-5, 1e-1),
    "noise": tune.qrandn(0.0, 1.0, 0.25),
    "seed": 7,
    "net": {
        "width": tune.qlograndint(16, 512, 16),
        "bias": True,
        "layers": [tune.randint(1, 4), 3, (tune.uniform(0, 1), "x")],
    },
    "model": tune.choice(
        [
            {"kind": "svm", "C": tune.loguniform(1e-2, 1e2), "deep": {"tol": tune.uniform(0, 1)}},
            {"kind": "trees", "n": tune.randint(1, 100)},
            [tune.uniform(5, 6), "fixed"],
            tune.choice([tune.quniform(7, 8, 0.5), "inner"]),
            "none",
        ]
    ),
    "act": tune.choice(["relu", None, (1, 2)]),
    "data": {"path": "d", "thing": THING},
    3: tune.uniform(0, 1),
}


SPACE = ParamSpace(FULL)


@pytest.fixture(scope="module")
def full() -> ParamSpace:
    return SPACE


def rays_configs(n: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Configs of Ray's own sampler, which resolves conditional choices in several passes."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        for _, spec in generate_variants({"config": FULL}, random_state=rng):
            yield spec["config"]


def domains_in(entry: Any) -> bool:
    inside = entry.values() if isinstance(entry, dict) else entry
    return isinstance(entry, Domain) or (
        isinstance(entry, dict | list | tuple) and any(map(domains_in, inside))
    )


def shape(entry: Any) -> Any:
    """Types and keys of a config, without its numbers."""
    if isinstance(entry, dict):
        return {key: shape(value) for key, value in entry.items()}
    if isinstance(entry, list | tuple):
        return type(entry), [shape(value) for value in entry]
    return type(entry) if isinstance(entry, int | float) else entry


def test_configs_of_rays_sampler_are_read(full: ParamSpace) -> None:
    for config in rays_configs(60):
        config["data"]["thing"] = THING  # Ray copies it
        inner, shown = full.read(config)
        assert shown == config
        assert full.space.decode(full.space.encode(inner))
        assert full.show(inner) == config


@given(row=st.lists(st.floats(0, 1), min_size=15, max_size=15))
def test_every_row_decodes_to_a_config_without_domains(row: list[float]) -> None:
    space = SPACE
    shown = space.show(space.space.decode(np.array((row * 2)[: space.space.dim])))
    assert not domains_in(shown)
    assert shown["seed"] == 7
    assert shown["data"]["thing"] is THING
    _, again = space.read(shown)
    assert again == shown


def test_shapes_are_those_of_rays_sampler(full: ParamSpace) -> None:
    rng = np.random.default_rng(0)
    ours = {repr(shape(full.show(full.space.draw(rng))["model"])) for _ in range(300)}
    theirs = {repr(shape(config["model"])) for config in rays_configs(300)}
    assert ours == theirs


def test_conditional_choice_is_a_choice_of_the_space(full: ParamSpace) -> None:
    kinds = {column.name: column.kind for column in full.space.columns}
    assert kinds["model"] == "choice"
    assert kinds["model/0/C"] == "float"
    assert kinds["model/3/value"] == "choice"
    assert "seed" not in kinds
    assert kinds["act"] == "categorical"


def test_flat_and_nested_points_are_the_same(full: ParamSpace) -> None:
    nested = next(rays_configs(1))
    nested["model"] = {"kind": "svm", "C": 1.0, "deep": {"tol": 0.5}}
    nested["data"]["thing"] = THING
    flat = {
        "lr": nested["lr"],
        "noise": nested["noise"],
        "net/width": nested["net"]["width"],
        "net/layers/0": nested["net"]["layers"][0],
        "net/layers/2/0": nested["net"]["layers"][2][0],
        "model/kind": "svm",
        "model/C": 1.0,
        "model/deep/tol": 0.5,
        "act": nested["act"],
        "3": nested[3],
    }
    assert full.read(flat) == full.read(nested)


def test_partial_point_is_completed_and_keeps_what_is_given(full: ParamSpace) -> None:
    point = {"lr": 0.01, "net": {"width": 32}, "model": {"kind": "trees"}}
    for seed in range(5):
        inner, shown = full.read(point, np.random.default_rng(seed))
        assert shown["lr"] == 0.01
        assert shown["net"]["width"] == 32
        assert shown["model"]["kind"] == "trees"
        assert 1 <= shown["model"]["n"] < 100
        assert full.space.encode(inner).shape == (full.space.dim,)
    one, two = (full.read(point, np.random.default_rng(s))[1] for s in (1, 1))
    assert one == two


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lr": 1.0}, "'lr': 1.0 is outside"),
        ({"net/width": 17}, "'net/width': 17 is not a multiple of 16"),
        ({"net/layers": [1, 3]}, "'net/layers': expected a list of 3"),
        ({"net/wdith": 16}, "'net/wdith': no such key; known here: 'width', 'bias', 'layers'"),
        ({"model": {"kind": "svn", "C": 1.0}}, "'model': .* fits no branch .*'svn' is not 'svm'"),
        ({"act": "gelu"}, "'act': 'gelu' is not one of 'relu', None"),
        ({"net": 3}, "'net': expected a dict, got 3"),
    ],
)
def test_bad_point_is_refused_with_its_path(change: Any, words: str, full: ParamSpace) -> None:
    with pytest.raises(SpaceError, match=words):
        full.read(change, np.random.default_rng(0))


def test_missing_key_is_named_where_nothing_completes_it(full: ParamSpace) -> None:
    with pytest.raises(SpaceError, match="'noise': missing from the config; add it"):
        full.read({"lr": 0.01})


def test_unknown_keys_are_ignored_on_request(full: ParamSpace) -> None:
    config = next(rays_configs(1))
    inner, _ = full.read({**config, "other": 1}, strict=False)
    assert inner == full.read({**config, "data": {}})[0]


def test_constant_can_be_overridden_outside_branches(full: ParamSpace) -> None:
    _, shown = full.read({"seed": 9}, np.random.default_rng(0))
    assert shown["seed"] == 9


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (tune.grid_search([1, 2]), "'a/b': tune.grid_search .* use tune.choice"),
        (tune.sample_from(lambda c: c), "'a/b': tune.sample_from .* in the trainable"),
        ({"eval": "1 + 1"}, "'a/b': tune.sample_from"),
        (tune.choice([{"x": tune.grid_search([1])}]), "'a/b/0/x': tune.grid_search"),
        ([1, tune.sample_from(lambda: 1)], "'a/b/1': tune.sample_from"),
        (Float(0, 1), "'a/b': Float is a parameter of raybo"),
        (tune.uniform(3, 1), "'a/b': needs low <= high"),
        (tune.randint(3, 3), "'a/b': .* no values"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(entry: Any, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        ParamSpace({"x": tune.uniform(0, 1), "a": {"b": entry}})


def test_param_space_without_domains_is_refused() -> None:
    with pytest.raises(SpaceError, match="only constants"):
        ParamSpace({"a": 1, "b": {"c": 2}})


def test_keys_that_are_the_same_as_text_are_refused() -> None:
    with pytest.raises(SpaceError, match="two keys are the same as text"):
        ParamSpace({"a": {3: tune.uniform(0, 1), "3": 1}})


def test_quantised_normal_is_snapped_to_what_the_trainable_gets(full: ParamSpace) -> None:
    inner = full.space.draw(np.random.default_rng(0))
    snapped = full.snapped(inner)
    assert full.rounds
    assert snapped["noise"] != inner["noise"]
    assert full.show(snapped)["noise"] == full.show(inner)["noise"]
    assert full.snapped(snapped) == snapped


def test_description_is_json_and_rebuilds_the_same_space(full: ParamSpace) -> None:
    again = saved_search_space(json.loads(json.dumps(full.description)))
    assert again.description == full.description
    assert again.space == full.space
    inner = full.space.draw(np.random.default_rng(1))
    shown = full.show(inner)
    del shown["data"]  # left to Tune, which has it
    assert again.show(inner) == shown
    assert again.lost == []


def test_lost_objects_that_suggestions_need_are_named() -> None:
    space = ParamSpace({"f": tune.choice([Thing(), Thing()]), "l": [tune.uniform(0, 1), Thing()]})
    assert space.lost == []
    again = saved_search_space(json.loads(json.dumps(space.description)))
    assert again.lost == ["f", "l/1"]
    assert again.description == space.description


def test_description_of_bounds_that_numpy_made_is_plain() -> None:
    entry = describe(tune.randint(np.int64(1), np.int64(5)))
    assert json.dumps(entry) == '{"tune": ["randint", 1, 5]}'
    assert json.dumps(describe(tune.uniform(np.float32(0), 1))) == '{"tune": ["uniform", 0.0, 1]}'


def test_unknown_description_is_refused_and_calls_nothing() -> None:
    with pytest.raises(ValueError, match="'tune', which this release does not know"):
        rebuild({"tune": ["run", 1]})
    assert rebuild({"lost": "x"}) == Lost("x")


def test_space_of_raybo_is_taken_as_it_is() -> None:
    own = Space({"a": Float(0, 1), "net": {"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})}})
    space = search_space(own)
    assert isinstance(space, OwnSpace)
    config = {"a": 0.5, "net": {"c": {"l": {"x": 0.25}}}}
    assert space.read(config) == (config, config)
    assert space.read({"a": 0.5, "net/c/l/x": 0.25, "extra": 1}, strict=False)[0] == config
    assert space.show(config) == config
    with pytest.raises(SpaceError, match="'net': missing"):
        space.read({"a": 0.5})
    again = saved_search_space(json.loads(json.dumps(space.description)))
    assert again.space == own


def test_dict_of_raybos_parameters_and_box_are_spaces_of_raybo() -> None:
    assert isinstance(search_space({"a": Categorical(["x", "y"])}), OwnSpace)
    box = search_space(Box(3))
    inner, _ = box.read({"x": [0.0, 0.5, 1.0], "seed": 1}, strict=False)
    assert list(inner["x"]) == [0.0, 0.5, 1.0]


def test_function_as_space_is_refused() -> None:
    with pytest.raises(SpaceError, match="space is a function"):
        search_space(lambda trial: trial)


def test_the_process_of_suggestions_does_not_import_ray_tune() -> None:
    code = "import raybo.runtime.proposals.proposer, sys; print('ray.tune' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
