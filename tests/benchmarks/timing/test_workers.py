from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from click.testing import CliRunner

from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import THREAD_VARIABLES
from raybo.benchmarks.timing.workers import WithoutPending, command, simulate, virtual_loop
from raybo.methods.base import Data, Proposal
from raybo.study.study import Study

PROBLEM = get_problem("hartmann6")


def test_a_virtual_hour_passes_at_once_for_asyncio_and_for_the_runtime() -> None:
    async def wait() -> float:
        before = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1800.0):
                await asyncio.sleep(10**6)
        assert await asyncio.to_thread(sum, [1, 2]) == 3
        await asyncio.sleep(1800.0)
        return time.monotonic() - before

    with virtual_loop() as loop:
        assert loop.run_until_complete(wait()) == pytest.approx(3600.0)


def test_many_workers_make_the_same_trials_in_less_virtual_time() -> None:
    one, many = (simulate(PROBLEM, "random", n, 60, 10.0, 0) for n in (1, 20))
    assert sorted(one.losses) == pytest.approx(sorted(many.losses))
    assert len(one.losses) == 60
    assert one.seconds > 10 * many.seconds > 200.0
    assert min(one.use, many.use) > 0.5


@pytest.mark.slow
def test_a_model_learns_from_simulated_results() -> None:
    found, drawn = (simulate(PROBLEM, tuner, 4, 40, 60.0, 1) for tuner in ("bo", "random"))
    assert len(found.losses) == 40
    assert min(found.losses[20:]) < min(drawn.losses)


def test_a_method_without_pending_points_proposes_as_if_none_were_in_flight() -> None:
    space, seen = PROBLEM.build_space(), []

    class Watching:
        lanes = 1

        def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
            seen.append((len(data.pending), data.n_rows))
            return Proposal(x=rng.random(space.dim))

    study = Study(space, WithoutPending(Watching()))
    for _ in range(3):
        study.ask()
    assert seen == [(0, 0), (0, 1), (0, 2)]


def test_a_peer_is_asked_and_told_in_the_place_of_a_proposer() -> None:
    pytest.importorskip("optuna")
    found = simulate(PROBLEM, "optuna-tpe-liar", 4, 30, 60.0, 0)
    assert len(found.losses) == 30


def test_the_command_prints_a_row_for_each_tuner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    options = "--tuners random --workers 1,4 --trials 12 --seeds 2"
    done = CliRunner().invoke(command, options.split(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "4 workers" in done.output
    assert "random" in done.output
