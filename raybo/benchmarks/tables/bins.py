"""Growing bins: functions of a few of many coordinates, as with BAxUS, SAASBO and ALEBO."""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Published, Task


def bins_embedded() -> Task:
    """Return Branin and Hartmann6 among many coordinates without effect."""
    tuners = ("bins", "auto", "rembo", "bo", "random")
    any_dimension = tuple(name for name in tuners if name != "bo")
    return Task(
        "bins-embedded",
        "Branin and Hartmann6 in 100 to 10^9 dimensions; rows of BAxUS, SAASBO and ALEBO",
        (
            Block(("branin-100", "branin-500"), tuners, 40),
            Block(("branin-1e9",), any_dimension, 40),
            Block(("hartmann6-1000",), tuners, 200),
            Block(("hartmann6-500",), tuners, 500),
        ),
        seeds=10,
        reference="bins",
        cost="several core-hours, most of them of auto and bo on Hartmann6",
        published=(
            Published("branin-100", "SAASBO", 40, 0.399),
            Published("branin-500", "BAxUS", 40, 0.398),
            Published("hartmann6-1000", "ALEBO", 200, -2.99),
            Published("hartmann6-500", "BAxUS", 500, -3.308),
            Published("hartmann6-500", "CTS-BAxUS", 500, -3.3208),
            Published("hartmann6-500", "TuRBO", 500, -3.20),
        ),
    )
