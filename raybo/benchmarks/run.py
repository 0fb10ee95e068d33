"""Run tasks: every cell a sequence of evaluations, its results one JSON line.

Finished cells are skipped, so a stopped run goes on where it was.

    python -m raybo.benchmarks.run proposal --methods bo,optuna-gp --seeds 3 --local
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import ray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from raybo.benchmarks.compare import print_table, summarize, write_figure
from raybo.benchmarks.problems.base import BenchmarkError, get_problem
from raybo.benchmarks.tables.base import Cell, Task
from raybo.benchmarks.tables.registry import TASKS, get_task
from raybo.benchmarks.tuners.base import PEERS, build_rival, check_rival, parse_spec, split_specs
from raybo.runtime.cluster import connect
from raybo.study.objective import Objective

Record = dict[str, Any]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
FOLDER = Path("bench-results")
_WAIT = 5.0  # seconds between two looks at the running Ray tasks


def run_cell(cell: Cell, progress: Callable[[], None] = lambda: None) -> Record:
    """Record of one run.

    Parameters
    ----------
    cell
        What to run.
    progress
        Called after each evaluation.

    Returns
    -------
    dict
        The cell's fields; `values`, the objective's value at each evaluation; `seconds`, what
        the rival spent on each ask and tell together; `optimum` and `mode` of the problem.
    """
    problem = get_problem(cell.problem)
    loss = Objective(problem.mode).loss
    rival = build_rival(cell.rival, problem.space, cell.seed, cell.evaluations, cell.centre)
    values: list[float] = []
    seconds: list[float] = []
    for _ in range(cell.evaluations):
        start = time.perf_counter()
        config = rival.ask()
        spent = time.perf_counter() - start
        value = float(problem.objective(config))
        start = time.perf_counter()
        rival.tell(config, loss(value))
        seconds.append(spent + time.perf_counter() - start)
        values.append(value)
        progress()
    return {
        **asdict(cell),
        "mode": problem.mode,
        "optimum": problem.optimum,
        "values": values,
        "seconds": [round(s, 6) for s in seconds],
        "version": _version(cell.rival),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _version(spec: str) -> str:
    name, _ = parse_spec(spec)
    package = PEERS[name].package if name in PEERS else "raybo"
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def read_records(path: Path) -> list[Record]:
    """Records of a results file; an unfinished last line is left out.

    Raises
    ------
    BenchmarkError
        When any other line is damaged.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
            Cell(*(record[name] for name in Cell.__dataclass_fields__))
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(
                f"{path}:{number}: not a benchmark record ({error}); remove the line or the file"
            ) from None
        records.append(record)
    return records


def cell_of(record: Record) -> Cell:
    """Cell that a record belongs to."""
    return Cell(*(record[name] for name in Cell.__dataclass_fields__))


def append_record(path: Path, record: Record) -> None:
    """Add one line to a results file; a torn last line is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            if whole < size:
                file.truncate(whole)
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def run_cells(
    cells: Iterable[Cell], path: Path, *, local: bool = False, progress: bool = True
) -> list[Record]:
    """Run the cells that `path` does not hold yet; records of all of them.

    Parameters
    ----------
    cells
        What to run, in this order.
    path
        Results file, one JSON line per finished cell.
    local
        Run in this process, one after the other, instead of as Ray tasks.
    progress
        Show a progress bar.

    Raises
    ------
    BenchmarkError
        After the others have run, when some cells failed.
    """
    wanted = list(cells)
    for spec in dict.fromkeys(cell.rival for cell in wanted):
        check_rival(spec)
    done = {cell_of(record).key for record in read_records(path)}
    todo = [cell for cell in wanted if cell.key not in done]
    if todo:
        (_run_local if local else _run_on_ray)(todo, path, progress)
    keys = {cell.key for cell in wanted}
    return [record for record in read_records(path) if cell_of(record).key in keys]


def _progress(show: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not show,
    )


def _run_local(cells: Sequence[Cell], path: Path, progress: bool) -> None:
    with _progress(progress) as bar:
        total = bar.add_task("evaluations", total=sum(cell.evaluations for cell in cells))
        for cell in cells:
            bar.update(total, description=f"{cell.rival} on {cell.problem}, seed {cell.seed}")
            append_record(path, run_cell(cell, lambda: bar.advance(total)))


def _run_on_ray(cells: Sequence[Cell], path: Path, progress: bool) -> None:
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
    failures = []
    try:
        with _progress(progress) as bar:
            total = bar.add_task("runs", total=len(cells))
            while running:
                ready, _ = ray.wait(list(running), num_returns=1, timeout=_WAIT)
                for reference in ready:
                    cell = running.pop(reference)
                    try:
                        append_record(path, ray.get(reference, timeout=60))
                    except ray.exceptions.RayError as error:
                        failures.append(
                            f"{cell.rival} on {cell.problem}, seed {cell.seed}: {error}"
                        )
                    bar.advance(total)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
    if failures:
        raise BenchmarkError(
            f"{len(failures)} of {len(cells)} runs failed; the first: {failures[0]}"
        )


def single_thread() -> None:
    """Start this program again with one thread for the numerical libraries, unless it has one.

    The variables are read when numpy and torch are loaded: setting them now would be too late.
    """
    if all(os.environ.get(name) == "1" for name in THREAD_VARIABLES):
        return
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def main(
    task: str | Task,
    methods: str | None = None,
    seeds: int | None = None,
    *,
    evaluations: int | None = None,
    problems: str | None = None,
    results: Path | None = None,
    figure: Path | None = None,
    local: bool = False,
    quick: bool = False,
    progress: bool = True,
) -> list[Record]:
    """Run a task, print its table and return the records.

    Parameters
    ----------
    task
        Name of a task, or a task.
    methods
        Comma-separated specs of rivals, instead of the task's own.
    seeds, evaluations
        Instead of the task's own.
    problems
        Comma-separated names of those of the task's problems to run; all unless given.
    results
        JSON lines; bench-results/TASK.jsonl unless given. What it holds is not run again.
    figure
        HTML file for the curves; none unless given.
    local
        Run in this process instead of on Ray.
    quick
        Time fewer asks of the slow rivals.
    progress
        Show a progress bar.
    """
    chosen = get_task(task) if isinstance(task, str) else task
    rivals = None if methods is None else split_specs(methods)
    console = wide_console()
    if chosen.timing:
        proposal = importlib.import_module(
            "raybo.benchmarks.timing.proposal"
        )  # it imports this module
        proposal.time_asks(rivals or chosen.rivals, quick=quick, console=console)
    path = results or FOLDER / f"{chosen.name}.jsonl"
    cells = chosen.cells(rivals, seeds, evaluations, problems and problems.split(","))
    records = run_cells(cells, path, local=local, progress=progress)
    print_table(summarize(records, chosen), chosen, console)
    console.print(f"results: {path}")
    if figure is not None:
        write_figure(records, figure, title=f"{chosen.name}: {chosen.source}")
        console.print(f"figure: {figure}")
    return records


def wide_console() -> Console:
    """Console for tables: as wide as the terminal, and wide enough for them in a file."""
    console = Console()
    return console if console.is_terminal else Console(width=150)


def list_tasks() -> Iterator[tuple[str, str, str]]:
    """Name, source and cost of every task."""
    for task in TASKS.values():
        yield task.name, task.source, task.cost


@click.command()
@click.argument("task", type=click.Choice(list(TASKS)))
@click.option("--methods", help="comma-separated rivals instead of the task's own")
@click.option("--seeds", type=click.IntRange(1), help="runs per rival and problem")
@click.option("--evaluations", type=click.IntRange(1), help="length of every run")
@click.option("--problems", help="comma-separated problems of the task instead of all")
@click.option("--results", type=click.Path(path_type=Path), help="JSON lines; continued if there")
@click.option("--figure", type=click.Path(path_type=Path), help="HTML file with the curves")
@click.option("--local", is_flag=True, help="in this process instead of on Ray")
@click.option("--quick", is_flag=True, help="time fewer asks of the slow rivals")
@click.option("--progress/--no-progress", default=True)
def command(task: str, **options: Any) -> None:
    """Rerun a table or figure; results so far are kept and not run again."""
    single_thread()
    main(task, **options)


if __name__ == "__main__":
    command()
