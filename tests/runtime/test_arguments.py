"""Arguments of optimize that make no sense are refused before anything is started."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import ray

import raybo
from raybo.errors import RayboError
from raybo.runtime.arguments import ArgumentError, check_objective, check_resources

SPACE = {"x": raybo.Float(0, 1)}


def fine(config: dict[str, Any]) -> float:
    return float(config["x"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "f"}, "must be a function of a config, got 'f'.*without calling it"),
        ({"objective": 0.25}, "must be a function of a config, got 0.25"),
        ({"objective": lambda: 0.0}, r"called with one argument, the config, but <lambda>\(\)"),
        ({"objective": lambda a, b: 0.0}, r"missing a required argument: 'b'.*partial"),
        ({"space": fine}, "the objective comes first, then the space"),
        ({"n_init": 3}, r"option of the method: method_options={'n_init': 3}"),
        ({"preset": "paper"}, r"method_options={'preset': 'paper'}"),
        ({"n_trials": 5}, r"no argument 'n_trials'; did you mean max_trials\?"),
        ({"max_trails": 5}, r"did you mean max_trials\?"),
        ({"zzz": 5}, "it has objective, space, mode"),
        ({"method": None}, "method must be a name .* got None"),
        ({"method": "bocks"}, "did you mean 'bock'"),
        ({"method_options": [1]}, r"method_options must be a dict .* got \[1\]"),
        (
            {"method": "bo", "method_options": {"device": "gpu"}},
            "device 'gpu' cannot be used .* use 'cpu'",
        ),
        ({"seed": "x"}, "seed must be a whole number of 0 or more, or None for any, got 'x'"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of 0 or more"),
        ({"max_trials": 2.5}, "max_trials must be a whole number, got 2.5"),
        ({"max_trials": "9"}, r"max_trials must be a whole number, got '9' \(str\)"),
        ({"max_trials": True}, "max_trials must be a whole number, got True"),
        ({"workers": "2"}, "workers must be a whole number, got '2'"),
        ({"timeout": "5m"}, "timeout must be a number of seconds, got '5m'"),
        ({"target": "low"}, "target must be a number, got 'low'"),
        ({"target": float("nan")}, "target must be a number, got nan"),
        ({"max_failures": 0}, "max_failures must be positive"),
        ({"patience": 1.5}, "patience must be a whole number"),
        ({"name": 3}, "name must be a text, got 3 .*write name='3'"),
        ({"points": {"x": 0.5}}, r"points must be a list of configs.*write points=\["),
        ({"evaluated": [{"x": 0.5}]}, "evaluated must be a list of pairs"),
        ({"evaluated": {"x": 0.5}}, "evaluated must be a list of pairs"),
        ({"evaluated": [({"x": 0.5}, None)]}, "evaluated: {'x': 0.5}: .* returned None"),
        ({"storage": __file__}, "is a file; name a folder"),
        ({"storage": f"{__file__}/runs"}, "is a file; name a folder"),
        ({"callbacks": print}, r"callbacks must be a list .*write callbacks=\["),
    ],
)
def test_each_slip_is_named_with_the_way_out(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    before = ray.is_initialized()
    given = {"objective": fine, "space": SPACE, "storage": tmp_path, "progress": False}
    with pytest.raises(RayboError, match=f"(?s){message}"):
        raybo.optimize(**{**given, **arguments})
    assert ray.is_initialized() == before
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_argument_is_a_type_error_as_in_python() -> None:
    with pytest.raises(TypeError):
        raybo.optimize(fine, SPACE, n_trials=5)  # type: ignore[call-arg]
    assert issubclass(ArgumentError, RayboError)


@pytest.mark.parametrize(
    "objective",
    [fine, functools.partial(lambda a, config: 0.0, 1), lambda config, more=2: 0.0, print],
    ids=["function", "partial", "default", "C"],
)
def test_whatever_takes_a_config_is_an_objective(objective: Any) -> None:
    check_objective(objective)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"cpus": 1}, "Ray knows no 'cpus'; did you mean 'num_cpus'"),
        ({"num_gpu": 1}, "did you mean 'num_gpus'"),
        ({"tpu": 2}, r"a custom resource goes into {'resources': {'tpu': 2}}"),
        (3, "resources must be a dict such as"),
    ],
)
def test_resources_are_refused_with_the_name_that_was_meant(resources: Any, message: str) -> None:
    with pytest.raises(RayboError, match=message):
        check_resources(resources)
