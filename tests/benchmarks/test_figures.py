from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.benchmarks.figures import draw_figure, draw_panels, suite_panels, write_figure
from raybo.benchmarks.records import Deployed, Record
from raybo.benchmarks.scores import Scale
from raybo.benchmarks.tables.base import Cell


def record(tuner, seed, values, problem="valley", optimum=1.0):
    cell = Cell(problem, tuner, seed, len(values))
    return Record(cell, "min", optimum, values, [0.1] * len(values))


def test_the_figure_has_one_panel_per_problem(tmp_path):
    good = [record("good", seed, [5.0, 3.0, 4.0, 2.0 + seed / 10]) for seed in range(6)]
    bad = [record("bad", seed, [5.0, 4.0, 4.5, 3.0 + seed]) for seed in range(6)]
    other = [record("bad", seed, [2.0, 1.0], "hill", optimum=None) for seed in range(2)]
    figure = draw_figure([*good, *bad, *other], "title")
    assert [a.text for a in figure.layout.annotations] == ["valley", "hill"]
    assert len(figure.data) == 6  # a band and a line for each tuner of each panel
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.yaxis2.type == "linear"
    line = next(trace for trace in figure.data if trace.name == "good")
    np.testing.assert_allclose(line.y, [4, 2, 2, 1.25])
    write_figure(good, tmp_path / "curves.html")
    assert "plotly" in (tmp_path / "curves.html").read_text(encoding="utf-8").lower()


def test_a_suite_s_figure_has_the_means_first_and_noisy_problems_at_the_stops():
    def noisy(tuner, seed, values):
        deployed = [Deployed(2, 9.0, values[0]), Deployed(4, 9.0, values[1])]
        return replace(record(tuner, seed, [9.0] * 4, "noisy", 0.0), deployed=deployed)

    records = [record(t, s, [4.0, 2.0, 3.0, 1.0 + s], "valley") for t in "ab" for s in range(2)]
    records += [noisy(t, s, (0.5, 0.25)) for t in "ab" for s in range(2)]
    scale = {"valley": Scale(1.0, 2.0), "noisy": Scale(0.0, 1.0)}
    panels = suite_panels(records, scale, [2, 4])
    assert [p.name for p in panels] == ["mean over problems", "mean rank", "valley", "noisy"]
    means, ranks, valley, flat = (panel.curves["a"] for panel in panels)
    np.testing.assert_allclose(means[1], [[0.75, 0.375]])
    np.testing.assert_array_equal(ranks[1], [[1.5, 1.5]])
    np.testing.assert_allclose(valley[1], [[3, 1, 1, 1e-4], [3, 1, 1, 1]])
    np.testing.assert_array_equal(flat[0], [2, 4])
    np.testing.assert_allclose(flat[1], [[0.5, 0.25]] * 2)
    figure = draw_panels(panels)
    assert [t.name for t in figure.data if t.showlegend] == ["a", "b"]
