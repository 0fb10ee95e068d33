"""`raybo bench suite`: every tuner on many problems of one kind, with one score for all of them.

Each run is a line of suite-NAME.jsonl when it ends, and is not run again: an interrupted suite
goes on where it was, in processes or as tasks on Ray, and can be extended by tuners, seeds and
problems one after the other. Problems that are in several suites are run once: all files of the
folder count. The tables show all that the files hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.results import Finished, read_finished
from raybo.benchmarks.run import FOLDER, run_cells
from raybo.benchmarks.suites.registry import BUDGET, SUITES, get_suite
from raybo.benchmarks.suites.scores import Scale, Scores, scales
from raybo.benchmarks.tables.base import STOPS, Cell, Task
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.benchmarks.tuners.base import split_specs
from raybo.benchmarks.tuners.registry import why_not

MEDIANS = "medians.json"  # of random configs, in the folder of the results


@click.command()
@click.option("--name", type=click.Choice(list(SUITES)), required=True)
@click.option("--methods", help="comma-separated tuners instead of the usual ones")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True)
@click.option("--first-seed", type=click.IntRange(0), default=0, help="seeds start here")
@click.option("--budget", type=click.IntRange(1), default=BUDGET, show_default=True)
@click.option("--problems", help="comma-separated problems of the suite instead of all")
@click.option(
    "--reference", default="auto", show_default=True, help="tuner to set against all others"
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="folder of the records, suite-NAME.jsonl; continued if there",
)
@click.option("--figure", type=click.Path(path_type=Path), help="HTML file with the curves")
@click.option("--jobs", type=click.IntRange(1), help="processes here, instead of tasks on Ray")
@click.option("--run/--no-run", default=True, help="--no-run: the tables of what there is")
@click.option("--progress/--no-progress", default=True)
def command(
    name: str,
    methods: str | None,
    seeds: int,
    first_seed: int,
    budget: int,
    problems: str | None,
    reference: str,
    results: Path,
    figure: Path | None,
    jobs: int | None,
    run: bool,
    progress: bool,
) -> None:
    """Run a suite and print its tables; runs that the results file holds are not run again."""
    single_thread()
    suite, console = get_suite(name), wide_console()
    chosen = None if problems is None else problems.split(",")
    tuners = None if methods is None else split_specs(methods)
    if run:
        cells, refused = applicable(suite.cells(tuners, seeds, budget, chosen, first_seed))
        for line in refused:
            console.print(line, highlight=False)
        done = {finished.cell for finished in stored(results)}
        todo = [cell for cell in cells if cell not in done]
        run_cells(todo, results / f"suite-{name}.jsonl", jobs=jobs, progress=progress)
    runs = suite_runs(suite, stored(results), budget, chosen)
    if not runs:
        console.print(f"{results} holds no run of {name} with {budget} evaluations")
        return
    scale = scales(runs, results / MEDIANS)
    for stop in stops(budget):
        print_scores(Scores.of(runs, scale, stop), runs, scale, suite, reference, console)
    console.print(f"results: {results}")
    if figure is not None:
        from raybo.benchmarks.suites.figures import write_suite  # noqa: PLC0415  (needs plotly)

        write_suite(runs, scale, stops(budget), figure, f"suite {name}: {suite.source}")
        console.print(f"figure: {figure}")


def stored(folder: Path) -> list[Finished]:
    """Return the runs of all suites in a folder."""
    return [r for path in sorted(folder.glob("suite-*.jsonl")) for r in read_finished(path)]


def stops(budget: int) -> list[int]:
    """Return the numbers of evaluations at which runs of this length are scored."""
    return sorted({*(n for n in STOPS if n < budget), budget})


def applicable(cells: Iterable[Cell]) -> tuple[list[Cell], list[str]]:
    """Return the cells whose tuner can search its problem, and a line for each that cannot."""
    reasons: dict[str, dict[str, str | None]] = {}  # by tuner and problem
    kept = []
    for cell in cells:
        of_tuner = reasons.setdefault(cell.tuner, {})
        if cell.problem not in of_tuner:
            of_tuner[cell.problem] = why_not(cell.tuner, get_problem(cell.problem).space)
        if of_tuner[cell.problem] is None:
            kept.append(cell)
    lines = []
    for tuner, of_tuner in reasons.items():
        refused = {problem: reason for problem, reason in of_tuner.items() if reason}
        if refused:
            first = next(iter(refused.values()))
            lines.append(f"{tuner} does not apply to {', '.join(refused)}: {first}")
    return kept, lines


def suite_runs(
    suite: Task, runs: Iterable[Finished], budget: int, problems: Sequence[str] | None = None
) -> list[Finished]:
    """Return a suite's runs of one length, in the order of its problems."""
    order = {name: i for i, name in enumerate(suite.problems)}
    chosen = set(order if problems is None else problems) & order.keys()
    found = [run for run in runs if run.cell.problem in chosen and run.cell.evaluations == budget]
    return sorted(found, key=lambda run: order[run.cell.problem])


def print_scores(
    scores: Scores,
    runs: Sequence[Finished],
    scale: dict[str, Scale],
    suite: Task,
    reference: str,
    console: Console,
) -> None:
    """Print one table: a row for each problem, a column for each tuner, then what sums them up."""
    seeds = _range(map(len, scores.regrets.values()))
    table = Table(
        title=f"suite {suite.name} after {scores.evaluations}: normalised regret, {seeds} seeds",
        caption=_caption(scores, scale),
    )
    table.add_column("problem", no_wrap=True)
    for tuner in scores.tuners:
        table.add_column(tuner, justify="right")
    for problem in scores.problems:
        table.add_row(problem + ("" if scale[problem].known else "*"), *_row(scores, problem))
    table.add_section()
    for heading, texts in _summary(scores, runs, reference):
        table.add_row(heading, *texts)
    console.print(table)


def _row(scores: Scores, problem: str) -> Iterator[str]:
    """Yield mean and standard error for every tuner, the best mean in bold."""
    found = {t: scores.regrets.get((problem, t)) for t in scores.tuners}
    means = {t: float(np.mean(list(runs.values()))) for t, runs in found.items() if runs}
    for tuner, runs in found.items():
        if not runs:
            yield ""
            continue
        text = f"{means[tuner]:.3f}"
        text = f"[bold]{text}[/bold]" if means[tuner] == min(means.values()) else text
        if len(runs) > 1:
            text += f" ±{np.std(list(runs.values()), ddof=1) / len(runs) ** 0.5:.3f}"
        yield text


def _summary(
    scores: Scores, runs: Sequence[Finished], reference: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows below the problems: heading and a text for every tuner."""

    def shown(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    tuners, ranks = scores.tuners, scores.mean_ranks()
    yield "mean", [shown(scores.mean(t)) for t in tuners]
    if scores.luckiest != scores.regrets:
        yield "mean, luckiest draw", [shown(scores.mean(t, luckiest=True)) for t in tuners]
    yield "mean rank", [f"{ranks[t]:.2f}" if t in ranks else "" for t in tuners]
    against = [None if t == reference else scores.versus(reference, t) for t in tuners]
    yield (
        f"{reference} wins/ties/losses",
        ["" if v is None else f"{v.wins}/{v.ties}/{v.losses}" for v in against],
    )
    yield "p", ["" if v is None else f"{v.p:.2g}" for v in against]
    timed = [run for run in runs if run.seconds]
    seconds = {
        t: [np.mean(r.seconds[: scores.evaluations]) for r in timed if r.cell.tuner == t]
        for t in tuners
    }
    texts = [f"{np.median(seconds[t]):.3g}" if seconds[t] else "" for t in tuners]
    yield "CPU seconds per ask", texts
    yield (
        "seeds",
        [_range(len(r) for (_, t), r in scores.regrets.items() if t == u) for u in tuners],
    )


def _caption(scores: Scores, scale: dict[str, Scale]) -> str:
    lines = ["0: best known value, 1: median config; mean ± standard error over the seeds"]
    if not all(scale[problem].known for problem in scores.problems):
        lines.append("*: no best value is known; 0 is the best of the runs at hand")
    p, distance = scores.friedman(), scores.critical_difference()
    if p is not None and distance is not None:
        lines.append(
            f"mean ranks: Friedman p = {p:.2g}; they differ at the 5% level by {distance:.2f} or "
            "more (Nemenyi)"
        )
    lines.append("p: two-sided Wilcoxon over problems and seeds")
    return "\n".join(lines + scores.beyond())


def _range(counts: Iterable[int]) -> str:
    found = sorted(set(counts))
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
