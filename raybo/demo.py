"""Objective of `raybo demo`: Branin, with its two coordinates hidden among many without effect."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

OPTIMUM = 10 / (8 * math.pi)
SECONDS = 0.2  # of an evaluation, which stands for an expensive one
OPTIONS = {"d": 3, "k": 4}  # of REMBO: four embeddings of three dimensions, one proposer each


def objective(config: Mapping[str, Any]) -> float:
    """Return Branin of two coordinates of the vector x, which lies in [-1, 1]^D."""
    time.sleep(SECONDS)
    x = config["x"]
    a, b = (float(x[i]) for i in hidden(len(x)))
    return branin(2.5 + 7.5 * a, 7.5 + 7.5 * b)


def hidden(dim: int) -> tuple[int, int]:
    """Return the indices of the two coordinates that matter."""
    return dim // 3, 2 * dim // 3


def branin(a: float, b: float) -> float:
    """Return Branin on [-5, 10] x [0, 15]; its minimum is 10 / (8 pi), at three points."""
    bend = b - 5.1 * (a / (2 * math.pi)) ** 2 + 5 / math.pi * a - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10
