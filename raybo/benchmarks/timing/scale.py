"""A thousand workers: what each part of a study costs at that size, as one table.

    raybo bench scale
    raybo bench scale --only slots --workers 1000 --trials 4000 --seconds 10 --method bo

Slots: coroutines on a local Ray with two CPUs that sleep for lognormal times. The busy share is
that of `raybo bench throughput`. The slot of the k-th trial that ends is taken by trial number
workers + k in the order of starting: the time between the two is what a free slot waits.

Results: the same slots with instant trials and random points: what a coordinator takes in, every
result synced to disk before it counts.

Kills: a tenth of the processes that evaluate is killed, and the coordinator, after many trials.

Proposals: processor seconds of asks with the least effort, given n results and many pending
points: where a result has come since the last ask, where proposals share one model, and where
many are asked for at a time, as a coordinator of a thousand workers does.

Growth: a journal of many trials: what it takes to write, to resume, to show and to report.

Tune: what Ray Tune's documentation says of its own pace ("Tune: scalability and overhead
benchmarks"), and instant trials of random points with Tune and with raybo on this machine, one
for each core at a time. A thousand trials of Tune are a thousand processes.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import ray
from rich.table import Table

from raybo.benchmarks.faults.kills import actors, kill_process
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.benchmarks.timing.throughput import busy_share
from raybo.methods.base import LEAST
from raybo.methods.registry import build_method
from raybo.result import Result, load_result
from raybo.runtime.optimize import optimize
from raybo.space.parameters import Float
from raybo.study.journal.compact import COMPACT_FILE, compact
from raybo.study.journal.journal import JOURNAL_FILE, Journal, read_journal
from raybo.study.journal.record import Record
from raybo.study.study import MOST_AT_ONCE, Study
from raybo.study.trial import State, Trial
from raybo.views.status import status_of

PARTS = ("slots", "results", "kills", "proposals", "growth", "tune")
_PUBLISHED = {
    "trials per second on 16 CPUs": "14",
    "busy share of 1,000 trials of 100 s at once": "60%",
    "results per second": "50 to 100",
}
_PROBLEM = "hartmann6"
_SPREAD = 0.5  # of the logarithms of durations
_ASKS = 6
_BATCH = 100  # events of a group commit
_PROCESSES = 10  # of which one is killed
_MANY, _INSTANT = 20_000, 0.05  # trials, and their seconds: a thousand slots end 20,000 a second
_TUNE_TRIALS = 200  # with either tool: they take seconds

Row = tuple[str, str]


def waits(trials: Sequence[Trial], workers: int) -> list[float]:
    """Return the seconds that each slot which became free waited for its next trial."""
    starts = sorted(trial.started or 0.0 for trial in trials)
    ends = sorted(trial.finished or 0.0 for trial in trials)
    return [start - end for start, end in zip(starts[workers:], ends, strict=False)]


def measure_slots(workers: int, n_trials: int, seconds: float, method: str) -> Iterator[Row]:
    """Run a study of coroutines on Ray; yield how busy its slots were, and its rates."""
    problem = get_problem(_PROBLEM)
    result, began = _run(workers, n_trials, seconds, method)
    trials = result.trials
    starts = sorted(trial.started or 0.0 for trial in trials)
    ends = sorted(trial.finished or 0.0 for trial in trials)
    name = f"{workers} slots, {method}, {n_trials} trials of {seconds:g} s"
    full = starts[min(workers, n_trials) - 1]
    share = busy_share(trials, workers, full, max(starts[-1], full + 1e-9))
    yield f"{name}: busy from all started to the last start", f"{share:.1%}"
    waited = waits(trials, workers) or [0.0]
    p50, p99 = np.percentile(waited, [50, 99])
    yield f"{name}: a free slot waits, p50 and p99", f"{p50:.3f} s, {p99:.3f} s"
    yield f"{name}: results per second", f"{(n_trials - 1) / (ends[-1] - ends[0]):.0f}"
    yield f"{name}: first trial after the call", f"{starts[0] - began:.1f} s"
    if result.best_value is not None:
        yield f"{name}: regret", f"{problem.regret(result.best_value):.2g}"


def _run(
    workers: int,
    n_trials: int,
    seconds: float,
    method: str,
    processes: int = 2,
    callbacks: Sequence[Callable[[Trial], Any]] = (),
) -> tuple[Result, float]:
    """Run a study of coroutines that sleep on a local Ray; return when it began, too."""
    problem = get_problem(_PROBLEM)

    async def evaluate(config: Mapping[str, Any]) -> float:
        await asyncio.sleep(seconds * float(np.random.default_rng().lognormal(0.0, _SPREAD)))
        return problem.objective(config)

    os.environ.setdefault("RAY_worker_niceness", "0")  # as in `raybo bench throughput`
    _start_ray(processes)
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        result = optimize(
            evaluate,
            problem.space,
            method=method,
            max_trials=n_trials,
            workers=workers,
            storage=folder,
            progress=False,
            callbacks=callbacks,
        )
    ray.shutdown()
    return result, began


def _start_ray(cpus: int) -> None:
    init: Any = ray.init
    init(address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False,
         logging_level="ERROR")  # fmt: skip


def measure_kills(workers: int, n_before: int, seconds: float, method: str) -> Iterator[Row]:
    """Kill a process of ten, and the coordinator, after `n_before` trials; yield what it cost."""
    numbers: list[int] = []
    killed: list[float] = []

    def kill(trial: Trial) -> None:
        numbers.append(trial.number)
        if len(numbers) == n_before:
            killed.append(time.time())
            for pid in (*actors("EvaluatorActor")[:1], *actors("CoordinatorActor")):
                kill_process(pid)

    n_trials = n_before + 3 * workers
    trials = _run(workers, n_trials, seconds, method, _PROCESSES, [kill])[0].trials
    name = f"{workers} slots, {method}, kills after {n_before} trials of {seconds:g} s"
    moment = killed[0]
    finishes = sorted(trial.finished or 0.0 for trial in trials)
    starts = sorted(trial.started or 0.0 for trial in trials)
    first = next(start for start in starts if start > moment) - moment
    running = ((t, bisect(starts, t) - bisect(finishes, t)) for t in starts if t > moment)
    full = next(t for t, n in running if n >= 0.99 * workers) - moment
    yield f"{name}: next start, and 99% of the slots at work again", f"{first:.1f} s, {full:.1f} s"
    lost = sum(trial.state is not State.DONE for trial in trials) + n_trials - len(trials)
    yield f"{name}: lost, and told twice", f"{lost}, {len(numbers) - len(set(numbers))}"


def measure_proposals(method: str, n: int, pending: int, asks: int = _ASKS) -> Iterator[Row]:
    """Yield the processor seconds of a proposal, given n results and `pending` pending points."""
    problem = get_problem(_PROBLEM)
    space = problem.build_space()
    study, rng = Study(space, build_method(method, space)), np.random.default_rng(0)
    for number in range(n + pending):
        trial = study.add(Trial(number, space.decode(rng.random(space.dim))))
        if number < n:
            trial.value, trial.state = problem.objective(trial.config), State.DONE
    name = f"{method}, {n} results, {pending} pending: CPU seconds of"
    yield f"{name} a fit", f"{_cpu_seconds(lambda: study.ask(effort=LEAST)):.3f}"
    same = [_cpu_seconds(lambda: study.ask(effort=LEAST)) for _ in range(asks)]
    yield f"{name} a proposal that shares the model", f"{np.median(same):.3f}"
    news = []
    for number in range(n, n + asks):
        study.tell(number, problem.objective(study.trials[number].config))
        news.append(_cpu_seconds(lambda: study.ask(effort=LEAST)))
    yield f"{name} a proposal after a result", f"{np.median(news):.3f}"
    together = []
    for first in range(n + asks, n + pending - MOST_AT_ONCE, MOST_AT_ONCE)[:asks]:
        for number in range(first, first + MOST_AT_ONCE):
            study.tell(number, problem.objective(study.trials[number].config))
        numbers = range(study.next_number, study.next_number + MOST_AT_ONCE)
        spent = _cpu_seconds(lambda: [*study.ask_many(numbers, LEAST)])  # noqa: B023  (used at once)
        together.append(spent / MOST_AT_ONCE)
    if together:
        what = f"{name} one of {MOST_AT_ONCE} proposals after as many results"
        yield what, f"{np.median(together):.4f}"


def _cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def write_study(folder: Path, name: str, n_trials: int) -> None:
    """Write the journal of a study with `n_trials` results, in group commits."""
    problem = get_problem(_PROBLEM)
    space, rng = problem.build_space(), np.random.default_rng(0)
    header = {"kind": "header", "name": name, "space": space.definition(), "lanes": 1, "seed": 0,
              "method": {"name": "random", "options": {}}, "mode": "min", "metric": None,
              "objective": None, "created": 0.0}  # fmt: skip
    session = {"kind": "session", "id": "1", "time": 0.0, "settings": {"max_trials": n_trials}}
    journal = Journal(folder / name, {})
    events: list[dict[str, Any]] = [header, session]
    for number in range(n_trials):
        config = space.decode(rng.random(space.dim))
        events.append({"kind": "asked", "number": number, "config": space.to_json(config)})
        value = problem.objective(config)
        events.append({"kind": "done", "number": number, "value": value, "attempts": 1,
                       "started": float(number), "finished": number + 1.0})  # fmt: skip
        if len(events) >= _BATCH:
            journal.append(*events)
            events = []
    journal.append(*events)
    journal.close()


def measure_growth(n_trials: int) -> Iterator[Row]:
    """Yield the seconds, by the clock and of the processor, of work on a large journal."""
    import resource  # noqa: PLC0415  (not on Windows)

    name = f"{n_trials} trials"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        def status() -> str:
            return _both(lambda: status_of("big", str(folder)))

        yield f"{name}: written", _both(lambda: write_study(folder, "big", n_trials))
        size = (folder / "big" / JOURNAL_FILE).stat().st_size
        yield f"{name}: size of the journal", f"{size / 1e6:.0f} MB"
        replay = _both(lambda: Record.from_contents(read_journal(folder / "big")))
        yield f"{name}: replayed, as a coordinator does", replay
        yield f"{name}: raybo status, not compacted", status()
        yield f"{name}: compacted", _both(lambda: compact(folder / "big"))
        yield f"{name}: compacted again", _both(lambda: compact(folder / "big"))
        size = (folder / "big" / COMPACT_FILE).stat().st_size
        yield f"{name}: size of the short journal", f"{size / 1e6:.0f} MB"
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield f"{name}: largest memory of this process so far", f"{memory:.0f} MB"
        yield f"{name}: raybo status", status()
        loaded: list[Result] = []
        load = _both(lambda: loaded.append(load_result("big", folder)))
        yield f"{name}: loaded", load
        report = folder / "report.html"
        yield f"{name}: report made", _both(lambda: loaded[0].report(str(report)))
        yield f"{name}: size of the report", f"{report.stat().st_size / 1e6:.1f} MB"


def measure_tune(n_trials: int) -> Iterator[Row]:
    """Yield Ray Tune's published figures, and its pace and raybo's with instant trials."""
    from ray import tune  # noqa: PLC0415  (loads pandas and pyarrow)

    from raybo.benchmarks.timing.tuner import fit  # noqa: PLC0415

    for what, figure in _PUBLISHED.items():
        yield f"Ray Tune, published: {what}", figure
    cores = os.cpu_count() or 1
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    _start_ray(cores)

    def instant(config: Mapping[str, Any]) -> dict[str, float]:
        return {"loss": float(config["x"])}

    def with_tune(n: int) -> float:
        return fit(instant, {"x": tune.uniform(0.0, 1.0)}, None, n, cores)[1]

    def with_raybo(n: int) -> float:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            optimize(instant, {"x": Float(0.0, 1.0)}, metric="loss", method="random", max_trials=n,
                     workers=cores, storage=folder, progress=False)  # fmt: skip
        return time.perf_counter() - start

    for name, run in (("Ray Tune", with_tune), ("raybo", with_raybo)):
        run(2 * cores)  # starts processes
        rate = n_trials / run(n_trials)
        yield f"{name}: instant trials per second, {n_trials} on {cores} cores", f"{rate:.1f}"
    ray.shutdown()


def _both(work: Callable[[], Any]) -> str:
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return f"{time.perf_counter() - clock:.1f} s, CPU {time.process_time() - cpu:.1f} s"


@click.command()
@click.option("--only", type=click.Choice(PARTS), help="one of the parts")
@click.option("--workers", default=1000, help="slots, and pending points of the proposals")
@click.option("--trials", default=4000, help="trials of the part `slots`")
@click.option("--seconds", default=10.0, help="median duration of an evaluation")
@click.option("--method", default="bo", help="of the parts `slots` and `proposals`")
@click.option("--results", default="1000,3000,10000", help="told before `proposals`, or `kills`")
@click.option("--journal", default=100_000, help="trials of the part `growth`")
def command(
    only: str | None,
    workers: int,
    trials: int,
    seconds: float,
    method: str,
    results: str,
    journal: int,
) -> None:
    """Measure a study of a thousand workers: slots, results, kills, proposals, growth, Tune."""
    single_thread()
    table = Table(title=f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    table.add_column("what")
    table.add_column("measured", justify="right")
    rows: dict[str, Callable[[], Iterator[Row]]] = {
        "slots": lambda: measure_slots(workers, trials, seconds, method),
        "results": lambda: measure_slots(workers, _MANY, _INSTANT, "random"),
        "kills": lambda: measure_kills(
            workers, max(map(int, results.split(","))), seconds, method
        ),
        "proposals": lambda: (
            row for n in results.split(",") for row in measure_proposals(method, int(n), workers)
        ),
        "growth": lambda: measure_growth(journal),
        "tune": lambda: measure_tune(_TUNE_TRIALS),
    }
    for part in (only,) if only else PARTS:
        for row in rows[part]():
            table.add_row(*row)
    wide_console().print(table)
