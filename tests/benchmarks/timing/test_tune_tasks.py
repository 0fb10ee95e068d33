"""Problems of raybo as runs of Ray Tune."""

from __future__ import annotations

import numpy as np
from ray.tune.search.variant_generator import generate_variants

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.timing.tune_tasks import domain, trainable
from raybo.benchmarks.tuners.columns import Flat
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space

SPACE = Space(
    {
        "x": Float(1e-3, 1, log=True),
        "n": Int(2, 9),
        "s": Float(0, 1, step=0.25),
        "c": Categorical(["a", "b"]),
    }
)


def problem(seen: list[object] | None = None) -> Problem:
    def value(config: dict[str, object]) -> float:
        SPACE.encode(config)
        if seen is not None:
            seen.append(config)
        return float(config["n"])  # type: ignore[arg-type]

    return Problem("made up", lambda: SPACE, value, mode="max")


def test_configs_of_tune_are_configs_of_the_problem_and_losses_are_minimised() -> None:
    domains = {d.name: domain(d) for d in Flat(SPACE).dimensions}
    seen: list[object] = []
    train = trainable(problem(seen), 0.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        config = next(iter(generate_variants({"config": domains}, random_state=rng)))[1]["config"]
        assert train(config) == {"loss": -float(config["n"])}
    assert {c["c"] for c in seen} == {"a", "b"}  # type: ignore[index]
    assert {c["n"] for c in seen} == set(range(2, 10))  # type: ignore[index]
