from __future__ import annotations

import numpy as np

from raybo.benchmarks.figures import draw_panels
from raybo.benchmarks.results import Deployed
from raybo.benchmarks.suites.figures import suite_panels
from raybo.benchmarks.suites.scores import Scale
from tests.helpers.benchmarks import run_of


def test_a_suite_s_figure_has_the_means_first_and_noisy_problems_at_the_stops():
    def noisy(tuner, seed, values):
        deployed = [Deployed(2, 9.0, values[0]), Deployed(4, 9.0, values[1])]
        return run_of("noisy", tuner, seed, [9.0] * 4, deployed=deployed)

    runs = [run_of("valley", t, s, [4.0, 2.0, 3.0, 1.0 + s]) for t in "ab" for s in range(2)]
    runs += [noisy(t, s, (0.5, 0.25)) for t in "ab" for s in range(2)]
    scale = {"valley": Scale(1.0, 2.0), "noisy": Scale(0.0, 1.0)}
    panels = suite_panels(runs, scale, [2, 4])
    assert [p.name for p in panels] == ["mean over problems", "mean rank", "valley", "noisy"]
    means, ranks, valley, flat = (panel.curves["a"] for panel in panels)
    np.testing.assert_allclose(means[1], [[0.75, 0.375]])
    np.testing.assert_array_equal(ranks[1], [[1.5, 1.5]])
    np.testing.assert_allclose(valley[1], [[3, 1, 1, 1e-4], [3, 1, 1, 1]])
    np.testing.assert_array_equal(flat[0], [2, 4])
    np.testing.assert_allclose(flat[1], [[0.5, 0.25]] * 2)
    figure = draw_panels(panels)
    assert [t.name for t in figure.data if t.showlegend] == ["a", "b"]
