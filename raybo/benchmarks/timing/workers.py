"""Regret against the number of workers: real coordinators and proposers in virtual time.

    raybo bench workers --workers 1,8,64,512,4096 --tuners bo,random --trials 1000

Evaluations take lognormal times of a virtual clock, which jumps to the next event when nothing is
left to do: an hour on 4,096 workers takes as long as its proposals. The processor time of a
proposer passes on the virtual clock, too, so workers wait for it as they would. Peers are asked
and told in the place of a proposer. `bo-without-pending` is `bo` where a proposal is not shown the
points in flight. The journal is written and synced, in no virtual time.
"""

from __future__ import annotations

import asyncio
import selectors
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
from rich.progress import track
from rich.table import Table

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.benchmarks.tuners.base import Tuner, split_specs
from raybo.benchmarks.tuners.registry import build_tuner, is_peer
from raybo.methods.base import Data, Method, Proposal
from raybo.methods.registry import build_method
from raybo.runtime.coordinator import Coordinator
from raybo.runtime.evaluations.evaluate import Evaluation
from raybo.runtime.proposals.proposer import Call, Proposals, Proposer, Search
from raybo.runtime.session import Session, Settings
from raybo.runtime.writer import JournalWriter
from raybo.space.any_space import AnySpace
from raybo.study.journal.journal import Journal
from raybo.study.journal.storage import FolderStore
from raybo.study.objective import Objective
from raybo.study.trial import State, TrialRecord

WITHOUT_PENDING = "-without-pending"  # ends the names of tuners made so
_SPREAD = 0.5  # of the logarithms of durations


class _Jumping(selectors.DefaultSelector):
    """Never waits: the clock jumps by the time that it would have waited."""

    now = 0.0

    def time(self) -> float:
        """Return the time of the clock."""
        return self.now

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class _AtOnce(ThreadPoolExecutor):
    """Does work when it is submitted: another thread would take none of the virtual time."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  (handed to whoever waits for the future)
            future.set_exception(error)
        return future


@contextmanager
def virtual_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop whose clock, which is also `time.monotonic`, jumps where it would wait.

    What work costs is its processor time, which other programs on the machine hardly change.
    """
    clock = _Jumping()
    cost = mock.patch("time.perf_counter", time.process_time)
    with mock.patch("time.monotonic", clock.time), cost:
        loop = asyncio.SelectorEventLoop(clock)
        loop.set_default_executor(_AtOnce(1))
        try:
            yield loop
        finally:
            loop.close()


class Peer:
    """Another tool's tuner in the place of a proposer."""

    def __init__(self, tuner: Tuner, space: AnySpace) -> None:
        self._tuner, self._space = tuner, space

    def propose(self, call: Call) -> Proposals:
        """Tell what is new, and ask."""
        for trial in call.updates:
            if trial.state is State.DONE and trial.value is not None:
                self._tuner.tell(self._space.from_json(trial.config), trial.value)
        start = time.perf_counter()
        found = [
            TrialRecord(number, self._space.to_json(self._tuner.ask())) for number in call.numbers
        ]
        return Proposals(found, time.perf_counter() - start)


@dataclass(frozen=True)
class WithoutPending:
    """A method that is not shown the points in flight."""

    method: Method

    @property
    def lanes(self) -> int:
        """As many as the method has."""
        return self.method.lanes

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Propose the point that the results so far ask for."""
        memos = (*data.failed_memos, *data.pending_memos)  # fits and counts are still known
        shown = replace(data, pending=data.pending[:0], pending_memos=(), failed_memos=memos)
        return self.method.propose(shown, rng)


class SimulatedBackend:
    """Evaluations that take virtual time, and a proposer whose real time passes on that clock."""

    def __init__(
        self, proposer: Proposer | Peer, problem: Problem, seconds: float, seed: int
    ) -> None:
        self.coordinator: Coordinator | None = None
        self._proposer = proposer
        self._problem = problem
        self._space = problem.build_space()
        self._seconds = seconds
        self._rng = np.random.default_rng([seed, 1])

    async def propose(self, lane: int, call: Call) -> Proposals:  # noqa: ARG002
        """Return the proposals after the time that they took."""
        start = time.perf_counter()
        answer = self._proposer.propose(call)
        await asyncio.sleep(time.perf_counter() - start)
        return answer

    def submit(self, attempt: str, config: Any, *_: Any) -> Any:
        """Start an evaluation."""
        return attempt, config, self._seconds * float(self._rng.lognormal(0.0, _SPREAD))

    async def evaluation(self, handle: Any) -> Evaluation:
        """Return the value when the time of the evaluation has passed."""
        attempt, config, seconds = handle
        if self.coordinator is not None:
            self.coordinator.started(attempt, "simulated", 1)
        begin = time.monotonic()
        await asyncio.sleep(seconds)
        value = self._problem.objective(self._space.from_json(config))
        loss = Objective(self._problem.mode).loss(value)
        return Evaluation(loss, {}, None, begin, seconds)

    def cancel(self, handle: Any) -> None:
        """Do nothing: no evaluation is cancelled here."""

    async def end(self, handle: Any) -> bool:  # noqa: ARG002
        """Say that it took too long by itself."""
        return True

    async def dead_nodes(self) -> set[str]:
        """Return no nodes."""
        return set()

    async def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Run:
    """What came of a simulated study."""

    losses: list[float]  # in the order of finishing
    use: float  # share of the time that workers were busy
    seconds: float  # of the virtual clock


def simulate(
    problem: Problem, tuner: str, workers: int, n_trials: int, seconds: float, seed: int
) -> Run:
    """Run a study of `n_trials` with evaluations of about `seconds` on `workers` workers."""
    space = problem.build_space()
    lanes = 1
    if is_peer(tuner):
        proposer: Proposer | Peer = Peer(build_tuner(tuner, space, seed, n_trials), space)
    else:
        method = build_method(tuner.removesuffix(WITHOUT_PENDING), space)
        if tuner.endswith(WITHOUT_PENDING):
            method = WithoutPending(method)
        lanes = method.lanes
        proposer = Proposer(Search(space, method, Objective(), seed))
    backend = SimulatedBackend(proposer, problem, seconds, seed)
    settings = Settings(n_trials, None, None, workers, {"num_cpus": 1}, None, 0)
    header = {"name": "simulated", "mode": "min", "lanes": lanes}

    async def go(folder: Path) -> Run:
        session = Session("1", str(folder), "", {}, header, settings)
        writer = JournalWriter(FolderStore(folder), Journal(folder))
        made = Coordinator(session, writer, backend, space, Objective())
        backend.coordinator = made
        losses: list[float] = []
        while True:
            news = await made.poll(len(losses), 1.0)
            losses += [float(trial.value or 0.0) for trial in news.trials]
            if news.stop is not None:
                return Run(losses, news.progress.use, news.progress.elapsed)

    with tempfile.TemporaryDirectory() as folder, virtual_loop() as loop:
        return loop.run_until_complete(go(Path(folder)))


@click.command()
@click.option("--problem", "name", default="hartmann6", help="what is minimised")
@click.option(
    "--tuners", default="auto,bo,random,optuna-cmaes,optuna-tpe-liar", help="comma-separated"
)
@click.option("--workers", default="1,8,64,512,4096", help="comma-separated")
@click.option("--trials", default=1000, help="evaluations of each study")
@click.option("--seconds", default=60.0, help="median duration of an evaluation, virtual")
@click.option("--seeds", default=5)
@click.option("--first-seed", default=0, help="seeds start here")
def command(
    name: str, tuners: str, workers: str, trials: int, seconds: float, seeds: int, first_seed: int
) -> None:
    """Print the median regret and the use of simulated workers, by their number."""
    single_thread()
    problem, counts = get_problem(name), [int(n) for n in workers.split(",")]
    optimum = Objective(problem.mode).loss(problem.optimum or 0.0)
    title = f"{name}: median regret after {trials} evaluations of {seconds:g} s, {seeds} seeds"
    table = Table(title=f"{title}; in brackets how busy the workers were")
    for heading in ("tuner", *(f"{n} workers" for n in counts)):
        table.add_column(heading, justify="right")
    for tuner in split_specs(tuners):
        cells = []
        for n in counts:
            every = range(first_seed, first_seed + seeds)
            runs = [
                simulate(problem, tuner, n, trials, seconds, seed)
                for seed in track(every, f"{tuner}, {n} workers", transient=True)
            ]
            regret = np.median([min(run.losses) - optimum for run in runs])
            cells.append(f"{regret:.3g} ({np.median([run.use for run in runs]):.1%})")
        table.add_row(tuner, *cells)
    wide_console().print(table)
