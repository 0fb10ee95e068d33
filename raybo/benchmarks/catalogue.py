"""Everything that `raybo bench` can run: the papers' tables, and programs of their own."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import click
from rich.table import Table

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.run import command, list_tasks, wide_console
from raybo.benchmarks.tables.registry import TASKS

# Name: module with a click command called `command`, what it shows, what it costs.
PROGRAMS = {
    "asynchrony": (
        "raybo.benchmarks.timing.asynchrony",
        "regret with many workers against one, finish times simulated",
        "10 core-minutes",
    ),
    "acquisition-search": (
        "raybo.benchmarks.timing.acquisition_search",
        "elastic search of an acquisition against multi-start in equal time (EGP)",
        "30 core-minutes",
    ),
    "addtree-regression": (
        "raybo.benchmarks.tables.tree_regression",
        "test error of Add-Tree and of a process per leaf, by points (Add-Tree, Figure 4b)",
        "2 core-minutes",
    ),
    "chaos": (
        "raybo.benchmarks.faults.chaos",
        "kills of workers, nodes, coordinators and drivers; a cut and a flipped journal",
        "20 minutes",
    ),
    "node-loss": (
        "raybo.benchmarks.faults.node_loss",
        "a network tuned by 8 workers on 2 nodes, of which one is killed half-way",
        "3 minutes",
    ),
    "throughput": (
        "raybo.benchmarks.timing.throughput",
        "evaluations per second and worker use, against bare Ray and Ray Tune",
        "10 minutes",
    ),
    "tune-throughput": (
        "raybo.benchmarks.timing.tune_throughput",
        "trials per second under Ray Tune, against its own searchers",
        "10 minutes",
    ),
}


def run(arguments: Sequence[str]) -> None:
    """Run `raybo bench` with the arguments after it."""
    if not arguments or arguments[0] in ("--list", "--help", "-h"):
        print_catalogue()
        return
    name, *rest = arguments
    if name in PROGRAMS:
        program: click.Command = importlib.import_module(PROGRAMS[name][0]).command
        program.main(rest, prog_name=f"raybo bench {name}")
    elif name in TASKS:
        command.main([name, *rest], prog_name="raybo bench")
    else:
        raise BenchmarkError(
            f"there is no benchmark {name!r}; `raybo bench --list` names the {len(TASKS)} tables "
            f"and {len(PROGRAMS)} programs"
        )


def print_catalogue() -> None:
    """Print what can be run, and what it costs."""
    table = Table(title="raybo bench NAME [--methods a,b] [--seeds N] [--figure FILE]")
    for heading in ("name", "what it shows", "cost"):
        table.add_column(heading)
    for row in list_tasks():
        table.add_row(*row)
    table.add_section()
    for name, (_, shows, cost) in PROGRAMS.items():
        table.add_row(name, shows, cost)
    wide_console().print(table)
