"""REMBO's table and figure: Wang et al. (2013), Table 1 and Figure 3."""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Published, Task

_TABLE1 = {  # k: (gap, deviation) for d = 2, 4, 6
    10: ((0.0022, 0.0035), (0.1553, 0.1601), (0.4865, 0.4769)),
    5: ((0.0004, 0.0011), (0.0908, 0.1252), (0.2586, 0.3702)),
    4: ((0.0001, 0.0003), (0.0654, 0.0877), (0.3379, 0.3170)),
    2: ((0.1514, 0.9154), (0.0309, 0.0687), (0.1643, 0.1877)),
    1: ((0.7406, 1.8996), (0.0143, 0.0406), (0.1137, 0.1202)),
}


def rembo_table1() -> Task:
    """Return Table 1."""
    published = tuple(
        Published("branin-25", f"rembo:d={d},k={k},preset=paper", 500, *pair)
        for k, row in _TABLE1.items()
        for d, pair in zip((2, 4, 6), row, strict=True)
    )
    return Task(
        "rembo-table1",
        "REMBO, Table 1: optimality gap on Branin in 25 dimensions, by k and d",
        (Block(("branin-25",), tuple(p.tuner for p in published), 500),),
        seeds=50,
        reference="rembo:d=2,k=4,preset=paper",
        cost="750 runs of 500 evaluations",
        quantity="regret",
        published=published,
    )


def rembo_figure3() -> Task:
    """Return Figure 3."""
    rembo = "rembo:d=2,k=4,preset=paper"
    return Task(
        "rembo-figure3",
        "REMBO, Figure 3: Branin in 25 and 10^9 dimensions, and rotated in 25",
        (
            Block(("branin-25", "branin-25-rotated"), ("random", "bo", rembo), 500),
            Block(("branin-1e9",), ("random", rembo), 500),
        ),
        seeds=50,
        reference=rembo,
        cost="400 runs of 500 evaluations",
        quantity="regret",
    )
