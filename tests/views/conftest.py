from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from raybo.result import Result
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.outcome import Stop
from raybo.study.trial import State, Trial

NASTY = "<script>alert('x')</script> & \"quotes\""


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """Result of a study over a conditional space in which only "lr" and the branch matter."""

    def make(n: int, mode: str = "min") -> Result:
        rng = np.random.default_rng(0)
        space = Space(
            {
                "lr": Float(1e-5, 1, log=True),
                "width": Int(8, 512, log=True),
                "act": Categorical(["relu", NASTY, True]),
                "comp": Choice(
                    {
                        "svd": {
                            "rank": Int(1, 50),
                            "inner": Choice({"a": {}, "b": {"t": Float(0, 1)}}),
                        },
                        "l1": {"t": Float(0, 1)},
                        "none": {},
                    }
                ),
            }
        )
        sign = 1.0 if mode == "min" else -1.0
        trials = []
        for i in range(n):
            config = space.draw(rng)
            start = i // 8 * 1.5
            ran = {
                "attempts": 1,
                "started": start,
                "finished": start + float(rng.uniform(0.5, 1.5)),
            }
            if i % 17 == 5:
                trials.append(Trial(i, config, None, State.FAILED, f"ValueError: {NASTY}", **ran))
                continue
            value = (np.log10(config["lr"]) + 3) ** 2 + 3.0 * ("svd" not in config["comp"])
            trials.append(Trial(i, config, sign * float(value), State.DONE, **ran))
        method = {"name": "addtree", "options": {"n_init": 5, "preset": NASTY}}
        return Result(
            f"study {NASTY}",
            "runs/study",
            mode,
            None,
            method,
            space,
            trials,
            90.0,
            Stop("max_trials", "max_trials reached"),
            0.9,
        )

    return make
