"""Extra entries of results as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from raybo.runtime.evaluations.plain_json import plain_extra


def test_extra_entries_become_json() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    extra = {
        "list": (1, 2.5, None, True),
        "nan": float("nan"),
        "scalar": np.float32(0.5),
        "array": np.arange(3),
        "matrix": np.eye(2),
        "set": {1},
        "bytes": b"ab",
        "nested": {"a": {1: [np.int64(2)]}},
        "complex": 1j,
        "huge": 10**400,
        "rude": Rude(),
        3: "key",
    }
    plain = plain_extra(extra)  # type: ignore[arg-type]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["list"] == [1, 2.5, None, True]
    assert (plain["nan"], plain["scalar"], plain["array"]) == ("nan", 0.5, [0, 1, 2])
    assert plain["matrix"] == [[1.0, 0.0], [0.0, 1.0]]
    assert plain["nested"] == {"a": {"1": [2]}}
    assert plain["bytes"] == "b'ab'"
    assert plain["rude"] == "<Rude: repr failed with RuntimeError>"
    assert plain["3"] == "key"


def test_extra_entries_that_are_too_large_are_left_out() -> None:
    plain = plain_extra({"small": 1, "large": "x" * 100_000, "weights": np.zeros(10**6)})
    assert plain["small"] == 1
    assert plain["large"] == "<left out: 100002 bytes>"
    assert plain["weights"].startswith("array(")
    deep: list[Any] = []
    deep.append(deep)
    assert json.dumps(plain_extra({"deep": deep}))


def test_entries_of_a_few_objects_that_refer_to_each_other_do_not_explode() -> None:
    """3,200 references, 90 million numbers."""
    plain = plain_extra({"small": 1, "cube": [[[0.0] * 3000] * 100] * 300})
    assert plain == {"small": 1, "cube": "<left out: more than 32768 values>"}
