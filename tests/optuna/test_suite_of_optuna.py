"""Optuna's own test suite for samplers, run against RayBOSampler."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from raybo.optuna import RayBOSampler


# SingleOnlySamplerTestCase is of samplers that refuse several objectives; this one takes them.
class TestRayBOSampler(
    BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase
):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: RayBOSampler(seed=0)
