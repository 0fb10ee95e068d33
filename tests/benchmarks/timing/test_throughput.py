from __future__ import annotations

import pytest

from raybo.benchmarks.timing.throughput import busy_share
from raybo.study.trial import Trial


def test_busy_share_counts_what_lies_inside_the_window() -> None:
    spans = [(100.0, 104.0), (101.0, 103.0), (109.0, 120.0)]
    trials = [Trial(n, {}, started=a, finished=b) for n, (a, b) in enumerate(spans)]
    assert busy_share(trials, 2, 102.0, 110.0) == pytest.approx((2 + 1 + 1) / 16)
