from __future__ import annotations

import numpy as np

from raybo.benchmarks.figures import draw_figure, write_figure
from raybo.benchmarks.records import Record
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
