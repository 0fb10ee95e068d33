"""Time per proposal and quality of the proposals, against BoTorch and Optuna in the same run.

    raybo bench proposal                        # both parts
    raybo bench proposal --times-only --quick
    raybo bench proposal --times-only --timed ackley-53     # 50 switches and 3 numbers

The first part is the mean time of 20 consecutive asks and tells in 20 dimensions, or on another
problem, given 50, 200 and 500 evaluated points, one thread each, in one process: by the clock and
in CPU time, which also holds on a busy machine. The second part is the best value after 100
evaluations of five functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.run import run_task
from raybo.benchmarks.tables.peers import proposal
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.benchmarks.tuners.base import split_specs
from raybo.benchmarks.tuners.registry import build_tuner, check_tuner, is_peer

PROBLEM = "repeated-hartmann6-20"
SIZES = (50, 200, 500)
ASKS = 20
QUICK_ASKS = 4  # of the peers, with --quick
_WARM_UP = (12, 2)  # points and asks of a run that is not timed: imports and first-use costs


class Seconds(NamedTuple):
    """Time of one ask and tell."""

    wall: float
    cpu: float  # of this process, all its threads


def _now() -> Seconds:
    return Seconds(time.perf_counter(), time.process_time())


def time_ask(
    spec: str,
    n: int,
    asks: int = ASKS,
    problem: str = PROBLEM,
    seed: int = 0,
    now: Callable[[], Seconds] = _now,
) -> Seconds:
    """Return the mean time of consecutive asks and tells, given n random points of the problem.

    The points are the same for every tuner; telling them is not timed, refits are.
    """
    chosen = get_problem(problem)
    space = chosen.space
    rng = np.random.default_rng([seed, n])
    tuner = build_tuner(spec, space, seed, evaluations=n + asks)
    for row in space.sample(n, rng):
        config = space.decode(row)
        tuner.tell(config, chosen.objective(config))
    start = now()
    for _ in range(asks):
        asked = tuner.ask()
        tuner.tell(asked, chosen.objective(asked))  # the objective takes microseconds
    end = now()
    return Seconds((end.wall - start.wall) / asks, (end.cpu - start.cpu) / asks)


def time_asks(
    specs: Sequence[str],
    *,
    quick: bool = False,
    console: Console | None = None,
    sizes: Sequence[int] = SIZES,
    problem: str = PROBLEM,
    clock: Callable[..., Seconds] = time_ask,
) -> dict[tuple[str, int], Seconds]:
    """Measure and print the mean time per ask by tuner and number of points.

    Parameters
    ----------
    specs
        Tuners; the others are compared with the first.
    quick
        Ask the peers only a few times.
    console
        Where to print.
    sizes
        Numbers of evaluated points.
    problem
        Of whose space the points are.
    clock
        Measures one tuner: (spec, n, asks, problem) -> Seconds.
    """
    console = console or wide_console()
    for spec in specs:
        check_tuner(spec)
        clock(spec, *_WARM_UP, problem)
    times = {}
    for n in sizes:
        for spec in specs:
            seconds = clock(spec, n, QUICK_ASKS if quick and is_peer(spec) else ASKS, problem)
            times[spec, n] = seconds
            ratio = seconds.wall / times[specs[0], n].wall
            console.print(f"n={n}: {spec} {1000 * seconds.wall:.1f} ms per ask ({ratio:.1f}x)")
    console.print(_table(times, specs, sizes, problem))
    return times


def _table(
    times: dict[tuple[str, int], Seconds],
    specs: Sequence[str],
    sizes: Sequence[int],
    problem: str,
) -> Table:
    table = Table(title=f"time per ask on {problem}, one thread, refits included")
    table.add_column("points", justify="right")
    for spec in specs:
        table.add_column(f"{spec}, ms", justify="right")
    for spec in specs[1:]:
        table.add_column(f"{spec} / {specs[0]} (CPU)", justify="right")
    for n in sizes:
        first = times[specs[0], n]
        cells = [f"{1000 * times[spec, n].wall:.1f}" for spec in specs]
        ratios = [
            f"{times[spec, n].wall / first.wall:.1f} ({times[spec, n].cpu / first.cpu:.1f})"
            for spec in specs[1:]
        ]
        table.add_row(str(n), *cells, *ratios)
    return table


@click.command()
@click.option("--times-only", is_flag=True, help="leave out the best values")
@click.option("--quick", is_flag=True, help="time fewer asks of the peers")
@click.option("--timed", default=PROBLEM, show_default=True, help="problem of the times")
@click.option("--methods", help="comma-separated tuners; the first is compared with the others")
@click.option("--seeds", type=click.IntRange(1), help="runs per tuner and problem")
@click.option("--first-seed", type=click.IntRange(0), default=0, help="seeds start here")
@click.option("--evaluations", type=click.IntRange(1), help="length of every run")
@click.option("--problems", help="comma-separated problems instead of all five")
@click.option("--results", type=click.Path(path_type=Path), help="JSON lines; continued if there")
@click.option("--figure", type=click.Path(path_type=Path), help="HTML file with the curves")
@click.option("--jobs", type=click.IntRange(1), default=1, help="processes for the best values")
def command(
    times_only: bool, timed: str, methods: str | None, quick: bool, **options: Any
) -> None:
    """Compare the time per ask, and the best values, with BoTorch and Optuna."""
    single_thread()
    task = proposal()
    time_asks(split_specs(methods) if methods else task.tuners, quick=quick, problem=timed)
    if not times_only:
        run_task(task, methods, **options)
