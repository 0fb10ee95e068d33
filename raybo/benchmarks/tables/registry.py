"""The tables and figures that can be rerun, by name."""

from __future__ import annotations

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tables.addtree import addtree_blocks, addtree_fc3, addtree_synthetic
from raybo.benchmarks.tables.applications import application_tasks
from raybo.benchmarks.tables.base import Task
from raybo.benchmarks.tables.bins import bins_embedded
from raybo.benchmarks.tables.bock import bock_layer, bock_table1, bock_table2
from raybo.benchmarks.tables.egp import egp_cascade, egp_functions
from raybo.benchmarks.tables.peers import peers_20d, peers_high
from raybo.benchmarks.tables.rembo import rembo_figure3, rembo_table1
from raybo.benchmarks.tables.rpp import rpp_cascade, rpp_rotated, rpp_synthetic

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        peers_20d(),
        peers_high(),
        bins_embedded(),
        rembo_table1(),
        rembo_figure3(),
        addtree_synthetic(),
        addtree_fc3(),
        addtree_blocks(),
        bock_table1(),
        bock_table2(),
        bock_layer(),
        egp_functions(),
        egp_cascade(),
        rpp_synthetic(),
        rpp_rotated(),
        rpp_cascade(),
        *application_tasks(),
    )
}


def get_task(name: str) -> Task:
    """Return the task called `name`."""
    if name not in TASKS:
        raise BenchmarkError(f"task {name!r} is not known; there are {', '.join(TASKS)}")
    return TASKS[name]
