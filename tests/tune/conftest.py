"""Tests without the marker `ray` compute suggestions in this process, whatever runs beside."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_ray(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "ray" not in request.keywords:
        monkeypatch.setattr("ray.is_initialized", lambda: False)
