"""Run the cells of a task; every finished one is a line of the results file.

Cells that the file already holds are not run again, so an interrupted run continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import ray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from raybo.benchmarks.compare import print_table, summarize
from raybo.benchmarks.problems.base import BenchmarkError, Problem
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.results import Deployed, Finished, append_finished, read_finished, rounded
from raybo.benchmarks.tables.base import STOPS, Cell, Task
from raybo.benchmarks.terminal import wide_console
from raybo.benchmarks.tuners.base import Config, split_specs
from raybo.benchmarks.tuners.registry import build_tuner, check_tuner, package_of
from raybo.runtime.cluster import connect
from raybo.study.objective import Objective

FOLDER = Path("bench-results")
_NOISE = 0x6E6F697365  # "noise"
_WAIT_SECONDS = 5.0  # between two looks at the running Ray tasks
_FETCH_SECONDS = 60.0  # for what a finished Ray task returns

Outcome = tuple[Cell, Finished | BaseException]


def run_cell(cell: Cell) -> Finished:
    """Run a tuner on a problem: `cell.evaluations` times ask, evaluate, tell."""
    problem = get_problem(cell.problem)
    loss = Objective(problem.mode).loss
    tuner = build_tuner(cell.tuner, problem.space, cell.seed, cell.evaluations, cell.centre)
    values: list[float] = []
    seconds: list[float] = []
    deployed: list[Deployed] = []
    for n in range(1, cell.evaluations + 1):
        start = time.process_time()
        config = tuner.ask()
        asking = time.process_time() - start
        value = _evaluate(problem, config, cell.seed, n)
        start = time.process_time()
        tuner.tell(config, loss(value))
        seconds.append(rounded(asking + time.process_time() - start, 3))
        values.append(rounded(value))
        if problem.draw is not None and (n in STOPS or n == cell.evaluations):
            pair = (problem.objective(c) for c in (tuner.luckiest, tuner.recommend()))
            deployed.append(Deployed(n, *map(rounded, pair)))
    return Finished(
        cell,
        problem.mode,
        problem.optimum,
        values,
        seconds,
        _version(cell.tuner),
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        deployed,
    )


def _evaluate(problem: Problem, config: Config, seed: int, number: int) -> float:
    """Return the value of evaluation `number`; its noise depends on nothing but both numbers."""
    if problem.draw is None:
        return float(problem.objective(config))
    # A first key that no tuner uses: the noise must not repeat the draws behind a proposal.
    return float(problem.draw(config, np.random.default_rng([_NOISE, seed, number])))


def _version(spec: str) -> str:
    package = package_of(spec)
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def run_cells(
    cells: Iterable[Cell], path: Path, *, jobs: int | None = None, progress: bool = True
) -> list[Finished]:
    """Run the cells that `path` does not hold yet, and return the runs of all of them.

    Parameters
    ----------
    cells
        What to run, in this order.
    path
        Results file, one JSON line per finished cell.
    jobs
        Number of processes on this machine; 1 runs in this process, None on Ray.
    progress
        Show a progress bar.

    Raises
    ------
    BenchmarkError
        After the others have run, when some cells failed.
    """
    wanted = list(cells)
    for spec in dict.fromkeys(cell.tuner for cell in wanted):
        check_tuner(spec)
    done = {run.cell for run in read_finished(path)}
    todo = [cell for cell in wanted if cell not in done]
    failures = _run(todo, path, jobs, progress) if todo else []
    if failures:
        raise BenchmarkError(
            f"{len(failures)} of {len(todo)} runs failed; the first: {failures[0]}"
        )
    chosen = set(wanted)
    return [run for run in read_finished(path) if run.cell in chosen]


def _run(cells: Sequence[Cell], path: Path, jobs: int | None, progress: bool) -> list[str]:
    """Run the cells, append the finished ones to `path`, and return what failed."""
    failures = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not progress) as bar:
        runs = bar.add_task("runs", total=len(cells))
        for cell, outcome in _on_ray(cells) if jobs is None else _in_processes(cells, jobs):
            if isinstance(outcome, Finished):
                append_finished(path, outcome)
            else:
                failures.append(f"{cell.tuner} on {cell.problem}, seed {cell.seed}: {outcome}")
            bar.advance(runs)
    return failures


def _in_processes(cells: Sequence[Cell], jobs: int) -> Iterator[Outcome]:
    """Run the cells in `jobs` processes and yield each as it ends."""
    if jobs == 1:
        for cell in cells:
            outcome: Finished | BaseException
            try:
                outcome = run_cell(cell)
            except Exception as error:  # noqa: BLE001  (one failure stops no other run)
                outcome = error
            yield cell, outcome
        return
    # Spawned, not forked: a fork of a process that has loaded torch or Ray may hang.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_cell, cell): cell for cell in cells}
        try:
            for future in as_completed(running):
                yield running[future], future.exception() or future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _on_ray(cells: Sequence[Cell]) -> Iterator[Outcome]:
    """Run each cell as a Ray task and yield it as it ends."""
    connect()
    gpus = {name: get_problem(name).gpus for name in {cell.problem for cell in cells}}
    most = max(gpus, key=gpus.__getitem__)
    if gpus[most] > ray.cluster_resources().get("GPU", 0.0):  # type: ignore[no-untyped-call]
        raise BenchmarkError(
            f"{most} needs a GPU, and this cluster has none; run it on one that has, or "
            "name other problems with --problems"
        )
    remote = ray.remote(num_cpus=1, max_retries=1)(run_cell)  # Ray gives it one thread
    running = {remote.options(num_gpus=gpus[cell.problem]).remote(cell): cell for cell in cells}
    try:
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=_WAIT_SECONDS)
            for reference in ready:
                cell = running.pop(reference)
                try:
                    outcome = ray.get(reference, timeout=_FETCH_SECONDS)
                except ray.exceptions.RayError as error:
                    outcome = error
                yield cell, outcome
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def run_task(
    task: Task,
    methods: str | None = None,
    seeds: int | None = None,
    *,
    first_seed: int = 0,
    evaluations: int | None = None,
    problems: str | None = None,
    results: Path | None = None,
    figure: Path | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> list[Finished]:
    """Run a task, print its table and return the runs.

    Parameters
    ----------
    task
        What to run.
    methods
        Comma-separated specs of tuners, instead of the task's own.
    seeds, evaluations
        Numbers to use instead of the task's own.
    first_seed
        Seeds are first_seed, first_seed + 1, ...
    problems
        Comma-separated names of those of the task's problems to run; all unless given.
    results
        Results file; bench-results/TASK.jsonl unless given. What it holds is not run again.
    figure
        HTML file for the curves; none unless given.
    jobs, progress
        As for `run_cells`.
    """
    console = wide_console()
    path = results or FOLDER / f"{task.name}.jsonl"
    cells = task.cells(
        None if methods is None else split_specs(methods),
        seeds,
        evaluations,
        None if problems is None else problems.split(","),
        first_seed,
    )
    runs = run_cells(cells, path, jobs=jobs, progress=progress)
    print_table(summarize(runs, task), task, console)
    console.print(f"results: {path}")
    if figure is not None:
        from raybo.benchmarks.figures import write_figure  # noqa: PLC0415  (plotly is optional)

        write_figure(runs, figure, title=f"{task.name}: {task.source}")
        console.print(f"figure: {figure}")
    return runs
