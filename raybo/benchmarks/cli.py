"""What `raybo bench` can run: the papers' tables, and programs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.run import run_task
from raybo.benchmarks.tables.registry import TASKS, get_task
from raybo.benchmarks.terminal import single_thread, wide_console

# Name: module with a click command called `command`, what it shows, what it costs.
PROGRAMS = {
    "suite": (
        "raybo.benchmarks.suites.program",
        "every tuner on many real problems: noisy, mixed, conditional, high-dimensional",
        "20 to 90 core-minutes for 10 seeds of bo, egp, TPE and random; GPs of other tools: hours",
    ),
    "noise-limit": (
        "raybo.benchmarks.suites.noise_limit",
        "what the noise of tables of networks leaves to a tuner: an oracle that knows the rest",
        "1 core-minute",
    ),
    "proposal": (
        "raybo.benchmarks.timing.proposal",
        "time per ask, and best value after 100 evaluations, against BoTorch and Optuna",
        "1.5 core-hours, nearly all of it BoTorch's",
    ),
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
        "raybo.benchmarks.tables.addtree_regression",
        "test error of Add-Tree and of a process per leaf, by points (Add-Tree, Figure 4b)",
        "2 core-minutes",
    ),
    "failures": (
        "raybo.benchmarks.feasibility.program",
        "regret where trials fail, at random or in a place, and under bounds on other outcomes",
        "15 core-minutes for `bo`",
    ),
    "early-stopping": (
        "raybo.benchmarks.early_stopping.program",
        "networks of 34 data sets tuned in simulated time, with and without early stopping",
        "half a core-minute for each run of a method",
    ),
    "chaos": (
        "raybo.benchmarks.faults.chaos",
        "kills of workers, nodes, coordinators and drivers; full disks, damaged and hostile files",
        "30 minutes",
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
    "scale": (
        "raybo.benchmarks.timing.scale",
        "a thousand workers: slots kept busy, results, kills, proposals, 100,000 trials",
        "10 minutes",
    ),
    "workers": (
        "raybo.benchmarks.timing.workers",
        "regret against the number of workers, 1 to 4,096, of a coordinator in virtual time",
        "an hour for 5 seeds of two methods",
    ),
    "tune-throughput": (
        "raybo.benchmarks.timing.tune_throughput",
        "trials per second under Ray Tune, against the searchers that Ray ships",
        "10 minutes",
    ),
    "tune-tasks": (
        "raybo.benchmarks.timing.tune_tasks",
        "real problems tuned by searchers of Ray Tune: best value and wall time",
        "half a minute for each run",
    ),
    "tune-digits": (
        "raybo.benchmarks.timing.tune_digits",
        "a small network tuned by searchers of Ray Tune",
        "10 core-minutes",
    ),
}


def main(arguments: Sequence[str]) -> None:
    """Run `raybo bench` with the arguments after it."""
    if not arguments or arguments[0] in ("--list", "--help", "-h"):
        print_list()
        return
    name, *rest = arguments
    if name in PROGRAMS:
        program: click.Command = importlib.import_module(PROGRAMS[name][0]).command
        program.main(rest, prog_name=f"raybo bench {name}")
    elif name in TASKS:
        table.main([name, *rest], prog_name="raybo bench")
    else:
        raise BenchmarkError(
            f"there is no benchmark {name!r}; `raybo bench --list` names the {len(TASKS)} tables "
            f"and {len(PROGRAMS)} programs"
        )


def print_list() -> None:
    """Print what can be run, and what it costs."""
    listed = Table(title="raybo bench NAME [--methods a,b] [--seeds N] [--figure FILE]")
    for heading in ("name", "what it shows", "cost"):
        listed.add_column(heading)
    for task in TASKS.values():
        listed.add_row(task.name, task.source, task.cost)
    listed.add_section()
    for name, (_, shows, cost) in PROGRAMS.items():
        listed.add_row(name, shows, cost)
    wide_console().print(listed)


@click.command()
@click.argument("task", type=click.Choice(list(TASKS)))
@click.option("--methods", help="comma-separated tuners instead of the task's")
@click.option("--seeds", type=click.IntRange(1), help="runs per tuner and problem")
@click.option("--first-seed", type=click.IntRange(0), default=0, help="seeds start here")
@click.option("--evaluations", type=click.IntRange(1), help="length of every run")
@click.option("--problems", help="comma-separated problems of the task instead of all")
@click.option("--results", type=click.Path(path_type=Path), help="JSON lines; continued if there")
@click.option("--figure", type=click.Path(path_type=Path), help="HTML file with the curves")
@click.option("--jobs", type=click.IntRange(1), help="processes here, instead of tasks on Ray")
@click.option("--progress/--no-progress", default=True)
def table(task: str, **options: Any) -> None:
    """Rerun a table or figure; runs that the results file holds are not run again."""
    single_thread()
    run_task(get_task(task), **options)
