from __future__ import annotations

import numpy as np
import pytest

from raybo.benchmarks.problems import body_parts


def test_a_rendered_body_shows_its_parts_in_front_of_the_background() -> None:
    rng = np.random.default_rng(0)
    images = [body_parts.render(rng) for _ in range(8)]
    seen = set()
    for depth, label in images:
        assert ((label >= 0) == (depth < body_parts.FAR)).all()
        assert 1.5 < depth.min() < 3.5
        seen |= set(label[label >= 0].tolist())
    assert seen == set(range(len(body_parts.PARTS)))
    assert len(body_parts.PARTS) == 19


def test_depth_differences_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    depth = rng.uniform(1.0, 4.0, (body_parts.HEIGHT, body_parts.WIDTH)).astype(np.float32)
    at = np.array([[5, 7], [60, 80], [118, 3]])
    u, v = rng.uniform(-60, 60, (2, 4, 2))

    def probe(row: float, column: float) -> float:
        r, c = round(row), round(column)
        inside = 0 <= r < body_parts.HEIGHT and 0 <= c < body_parts.WIDTH
        return float(depth[r, c]) if inside else body_parts.FAR

    found = body_parts.differences(depth, at, u, v)
    for i, (row, column) in enumerate(at):
        here = float(depth[row, column])
        for j in range(4):
            wanted = probe(row + u[j, 1] / here, column + u[j, 0] / here)
            wanted -= probe(row + v[j, 1] / here, column + v[j, 0] / here)
            assert found[i, j] == pytest.approx(wanted, abs=1e-5)


def test_forest_learns_and_more_offsets_help(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = [body_parts.render(rng) for _ in range(14)]
    depth = np.array([d for d, _ in images], dtype=np.float32)
    label = np.array([part for _, part in images])
    monkeypatch.setattr(body_parts, "load", lambda: (depth, label))
    monkeypatch.setattr(body_parts, "TRAINING", 10)
    config = body_parts.body_space().decode(np.full(14, 0.5))
    config |= {f"{name}_mean_{axis}": 0.0 for name in ("u", "v") for axis in ("x", "y")}
    config |= {"offsets": 200, "depth": 15, "min_split": 2, "sample": 1.0}
    objective = body_parts.BodyParts(images=10, pixels=100)
    good = objective(config)
    assert good == objective(config)
    assert good < objective({**config, "offsets": 1, "depth": 1}) - 0.1


def test_offsets_have_the_wanted_mean_and_covariance_also_from_an_invalid_one() -> None:
    config = {"u_mean_x": 3.0, "u_mean_y": -2.0, "u_var_x": 4.0, "u_var_y": 9.0, "u_cov": 3.0}
    drawn = body_parts.draw_offsets({**config, "offsets": 20_000}, "u", np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(0), [3.0, -2.0], atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), [[4.0, 3.0], [3.0, 9.0]], atol=0.3)
    wrong = {**config, "u_cov": 100.0, "offsets": 100}
    assert np.isfinite(body_parts.draw_offsets(wrong, "u", np.random.default_rng(0))).all()
