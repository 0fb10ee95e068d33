"""raybo.optimize on a real local Ray: what it returns, resumes, refuses."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raybo
from raybo import Categorical, Choice, Float, Int, Space
from raybo.errors import JournalError, MethodError, SpaceError, StudyError, StudyFailed
from raybo.result import load_result
from raybo.runtime.cluster import default_workers
from raybo.runtime.evaluations import reports
from raybo.runtime.evaluations.evaluate import Work, evaluate_remotely
from raybo.study.journal.journal import Journal
from raybo.study.objective import Objective
from raybo.study.outcome import list_studies, load_record
from raybo.study.steps import Steps
from raybo.study.trial import Batch, State, Trial

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]

SPACE = {"x": Float(0, 1)}


def run(tmp_path: Path, objective: Any, space: Any = SPACE, **options: Any) -> raybo.Result:
    options = {"method": "random", "max_trials": 6, "workers": 2, "progress": False, **options}
    return raybo.optimize(objective, space, storage=tmp_path, **options)


def test_a_study_is_run_kept_and_read_back(tmp_path: Path) -> None:
    space = Space(
        {
            "lr": Float(1e-5, 1e-1, log=True),
            "act": Categorical(["relu", None, 3]),
            "net": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
        }
    )
    data = np.arange(10_000.0)  # captured: travels once, with the objective

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        print("rate", config["lr"])  # noqa: T201  (kept by trial)
        return {
            "acc": float(data[1]) - config["lr"],
            "curve": np.array([1.0, np.nan]),
            "size": np.int64(3),
            "odd": object(),
        }

    seen: list[Trial] = []
    result = run(
        tmp_path,
        objective,
        space,
        mode="max",
        metric="acc",
        name="My Study",
        callbacks=[seen.append],
    )
    assert len(result.trials) == 6
    assert [t.number for t in result.trials] == list(range(6))
    assert {t.state for t in result.trials} == {State.DONE}
    assert result.best_value == max(t.value for t in result.trials if t.value is not None)
    assert result.best_config in [t.config for t in result.trials]
    assert result.best_value == 1.0 - result.best_config["lr"]
    assert sorted(t.number for t in seen) == list(range(6))
    extra = result.trials[0].extra
    assert (extra["curve"], extra["size"]) == ([1.0, "nan"], 3)
    assert extra["odd"].startswith("<object object")
    assert result.stop_reason == "max_trials reached: 6"
    assert "My Study" in repr(result)

    for trial in result.trials:
        printed = Path(result.location, "output", f"{trial.number}.txt").read_text()
        assert printed == f"rate {trial.config['lr']}\n"

    again = load_result("My Study", tmp_path)
    assert again.trials == result.trials
    assert (again.best_value, again.mode, again.metric) == (result.best_value, "max", "acc")
    (summary,) = list_studies(tmp_path)
    assert (summary.name, summary.done, summary.state) == ("My Study", 6, "max_trials")
    settings = load_record("My Study", tmp_path).session["settings"]
    assert settings["resources"] == {"num_cpus": 1}
    assert settings["workers"] == 2


def test_a_study_is_continued_with_a_larger_budget_only_as_itself(tmp_path: Path) -> None:
    def objective(config: dict[str, Any]) -> float:
        return float(config["x"])

    first = run(tmp_path, objective, name="s", max_trials=3)
    seen: list[Trial] = []
    second = run(tmp_path, objective, name="s", max_trials=5, callbacks=[seen.append])
    assert second.trials[:3] == first.trials
    assert sorted(t.number for t in seen) == [3, 4]
    assert second.elapsed > first.elapsed

    with pytest.raises(StudyError, match="resume is False; choose another name"):
        run(tmp_path, objective, name="s", resume=False)
    with pytest.raises(StudyError) as caught:
        run(tmp_path, objective, {"x": Float(0, 2)}, name="s", mode="max", method="sobol", seed=1)
    for part in ("'x': high", "mode: was 'min', now 'max'", "method: was", "seed: was 0, now 1"):
        assert part in str(caught.value)
    assert "choose another name" in str(caught.value)


def test_a_changed_objective_and_a_finished_study_are_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, lambda config: config["x"], name="s", max_trials=3)
    assert capfd.readouterr().err == ""
    again = run(tmp_path, lambda config: config["x"], name="s", max_trials=3)
    said = "study 's' has its 3 trials already: nothing to do (max_trials=6 goes on)\n"
    assert (capfd.readouterr().err, len(again.trials)) == (said, 3)
    run(tmp_path, lambda config: -config["x"], name="s", max_trials=4)
    assert "the code of the objective has changed since its last" in capfd.readouterr().err
    run(tmp_path, lambda config: -config["x"], name="s", max_trials=5, seed=None)
    assert capfd.readouterr().err == ""
    again = run(tmp_path, lambda config: -config["x"], name="s", max_trials=9, target=0.9)
    said = f"study 's' has reached target=0.9 already, with {again.best_value:g}: nothing to do"
    assert capfd.readouterr().err == f"{said} (a better target goes on)\n"
    assert len(again.trials) == 5


def test_a_callback_can_end_a_study_and_the_next_has_the_whole_machine(tmp_path: Path) -> None:
    def stop(trial: Trial) -> None:
        raise StopIteration("enough")

    ended = run(tmp_path, lambda c: c["x"], max_trials=500, workers=None, callbacks=[stop])
    assert ended.stop is not None
    assert ended.stop.kind == "callback"
    assert 1 <= len(ended.trials) < 500
    assert default_workers({"num_cpus": 1}) == 2


def test_one_worker_runs_the_trials_of_ask_and_tell_also_when_resumed(tmp_path: Path) -> None:
    space = {"x": Float(-1, 1), "kind": Categorical(["a", "b"])}

    def objective(config: dict[str, Any]) -> float:
        value = (config["x"] - 0.3) ** 2 + (config["kind"] == "b")
        return value if config["x"] > -0.8 else float("nan")

    opt = raybo.Optimizer(space, "bo", seed=3)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial.number, objective(dict(trial.config)))
    for n in (7, 12):
        result = run(
            tmp_path, objective, space, method="bo", seed=3, workers=1, max_trials=n, name="one"
        )
    assert [(t.config, t.value) for t in result.trials] == [
        (t.config, t.value) for t in opt.trials
    ]


def test_points_and_known_values_come_first(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        lambda config: config["x"],
        points=[{"x": 0.5}, {"x": 0.125}],
        evaluated=[({"x": 0.25}, -1.0)],
        max_trials=3,
    )
    assert [t.config["x"] for t in result.trials[:3]] == [0.25, 0.5, 0.125]
    assert len(result.trials) == 4
    assert result.best_value == -1.0
    with pytest.raises(SpaceError, match="'x'"):
        run(tmp_path, lambda config: 0.0, points=[{"x": 7.0}])


def test_a_uri_is_storage_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYBO_SPOOL", str(tmp_path / "spool"))
    uri = f"file://{tmp_path}/bucket"
    options: dict[str, Any] = {"method": "random", "progress": False, "workers": 2, "name": "u"}
    for n in (3, 5):
        result = raybo.optimize(lambda c: c["x"], SPACE, max_trials=n, storage=uri, **options)
    assert load_result("u", uri).trials == result.trials
    assert [s.name for s in list_studies(uri)] == ["u"]
    assert len(result.trials) == 5


def test_workers_are_what_the_free_resources_allow() -> None:
    assert default_workers({"num_cpus": 1}) == 2
    assert default_workers({"num_cpus": 1.5}) == 1
    assert 1 <= default_workers(lambda config: {"num_cpus": 1.5}) <= 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"resources": {"num_gpus": 1}},
            StudyError,
            "no node has GPU=1, CPU=1 .* a node with CPU=2",
        ),
        ({"resources": {"num_cpus": 64}}, StudyError, "no node has CPU=64"),
        ({"resources": {"resources": {"tpu": 2}}}, StudyError, "no node has CPU=1, tpu=2"),
        ({"resources": {"num_cpu": 1}}, StudyError, "did you mean 'num_cpus'"),
        ({"max_trials": None}, StudyError, "would never end"),
        ({"max_trials": 0}, StudyError, "max_trials must be positive"),
        ({"workers": 0}, StudyError, "workers must be positive"),
        ({"timeout": -1}, StudyError, "timeout must be positive"),
        ({"retries": -1}, StudyError, "retries must be 0 or more"),
        ({"mode": "best"}, StudyError, "'min' or 'max'"),
        ({"method": "magic"}, MethodError, "not known"),
        ({"callbacks": [3]}, StudyError, "a callback is a function"),
        ({"storage": "nosuch://here"}, StudyError, "cannot be opened"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments = {"method": "random", "max_trials": 5, "storage": tmp_path, "progress": False}
    with pytest.raises(error, match=message):
        raybo.optimize(lambda config: 0.0, SPACE, **{**arguments, **options})


def test_an_objective_that_cannot_be_sent_is_found_before_the_first_trial(tmp_path: Path) -> None:
    lock = threading.Lock()

    def objective(config: dict[str, Any]) -> float:
        with lock:
            return float(config["x"])

    with pytest.raises(StudyError, match=r"the objective cannot be sent .* lock \(a lock\)"):
        run(tmp_path, objective, name="p")
    assert list_studies(tmp_path) == []


def test_callbacks_may_fail_and_a_second_driver_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    problems: list[Exception] = []

    class Broken:
        def on_trial(self, trial: Trial) -> None:
            calls.append("broken")
            raise OSError("no mail")

    intruded = tmp_path / "intruded"

    def objective(config: dict[str, Any]) -> float:
        """The first evaluation ends at once, the others when the second driver has been tried."""
        try:
            (tmp_path / "first").touch(exist_ok=False)
        except FileExistsError:
            while not intruded.exists():
                time.sleep(0.01)
        return float(config["x"])

    def intrude(_: Trial) -> None:
        calls.append("fine")
        if not intruded.exists():
            try:
                run(tmp_path, lambda config: 0.0, name="one")
            except StudyError as error:
                problems.append(error)
            intruded.touch()

    result = run(tmp_path, objective, name="one", callbacks=[Broken(), intrude])
    assert [trial.state for trial in result.trials] == [State.DONE] * 6
    assert (calls.count("broken"), calls.count("fine")) == (1, 6)
    assert "is switched off" in caplog.text
    assert "study 'one' is being run by pid" in str(problems[0])
    assert "raybo status one" in str(problems[0])


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "d")
    journal.append({"kind": "header", "name": "d"}, {"kind": "asked", "number": 0, "config": {}})
    journal.close()
    path = tmp_path / "d" / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"number":0', b'"number":1'))
    with pytest.raises(JournalError, match=r"journal\.jsonl:\d+: damaged"):
        run(tmp_path, lambda config: config["x"], name="d")
    (summary,) = list_studies(tmp_path)
    assert summary.state == "damaged"
    assert summary.error


def test_an_error_of_the_method_is_reported(tmp_path: Path) -> None:
    class Broken:
        lanes = 1

        def propose(self, data: Any, rng: Any) -> Any:
            raise KeyError("z")

    with pytest.raises(StudyFailed, match=r"(?s)the method failed at trial 0.*KeyError: 'z'"):
        run(tmp_path, lambda config: 0.0, method=Broken())


def test_a_method_in_lanes_runs_in_parallel_proposers(tmp_path: Path) -> None:
    class Lanes:
        lanes = 3

        def propose(self, data: Any, rng: Any) -> Any:
            import os

            from raybo.methods.base import Proposal

            assert len(data.memos) + len(data.pending_memos) == data.number // 3
            return Proposal(x=rng.random(1), memo={"pid": os.getpid()})

    result = run(tmp_path, lambda config: config["x"], method=Lanes(), max_trials=9)
    pids = [trial.memo["pid"] for trial in result.trials]
    assert len(set(pids)) == 3
    assert pids[:3] * 3 == pids


def test_objectives_that_report_are_stopped_early(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> Any:
        try:
            for epoch in range(1, 21):
                yield {"loss": config["x"] + 1 / epoch, "epoch": epoch}
        finally:
            print("closed after", epoch)  # noqa: T201  (kept by trial)

    options: dict[str, Any] = {"metric": "loss", "max_steps": 20, "stop_early": True}
    result = run(tmp_path, train, max_trials=20, name="early", **options)
    stopped = [t for t in result.trials if t.state is State.STOPPED]
    done = [t for t in result.trials if t.state is State.DONE]
    assert len(stopped) + len(done) == 20
    assert stopped
    assert all(list(t.curve) == list(range(1, 21)) for t in done)
    assert all(t.extra == {"epoch": max(t.curve)} for t in result.trials)
    printed = (tmp_path / "early" / "output" / f"{stopped[0].number}.txt").read_text()
    assert printed == f"closed after {max(stopped[0].curve)}\n"
    frame = result.to_dataframe()
    assert frame["steps"].tolist() == [max(t.curve) for t in result.trials]
    assert result.best_trial is not None
    assert result.best_trial.state is State.DONE
    result.report(tmp_path / "report.html")
    assert "Curves" in (tmp_path / "report.html").read_text()
    with pytest.raises(StudyError, match="max_steps: was 20, now 30"):
        run(tmp_path, train, max_trials=20, name="early", **{**options, "max_steps": 30})


def test_an_attempt_ends_when_its_reports_have_arrived() -> None:
    """Else the coordinator, having done with it, would not take the last ones."""
    import ray

    @ray.remote
    class Slow:
        def __init__(self) -> None:
            self.steps: list[int] = []

        async def loading(self, *about: Any) -> None: ...
        async def started(self, *about: Any) -> None: ...
        async def report(self, attempt: str, batch: Batch) -> bool:
            await asyncio.sleep(0.5)
            self.steps += [step for step, _ in batch.steps]
            return True

        async def all_steps(self) -> list[int]:
            return self.steps

    def train(config: dict[str, Any]) -> Any:
        yield config["x"]
        time.sleep(1.1 * reports.BATCH_SECONDS)
        yield config["x"]  # nobody waits for this message
        yield config["x"]

    coordinator: Any = Slow.remote()
    work = ray.put(Work(train, Space(SPACE), Objective(), None, Steps(max_steps=3)))
    answer = evaluate_remotely.remote([work, coordinator, False], "1.0.0", {"x": 0.5})
    left = [step for step, _ in ray.get(answer, timeout=60).reports.steps]
    assert [*ray.get(coordinator.all_steps.remote(), timeout=60), *left] == [1, 2, 3]


def test_one_worker_stops_the_trials_that_ask_and_tell_stops(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> Any:
        for epoch in range(1, 11):
            yield config["x"] ** 2 + 1 / epoch

    space, options = {"x": Float(-1, 1)}, {"max_steps": 10, "stop_early": True, "seed": 3}
    result = run(tmp_path, train, space, method="bo", max_trials=14, workers=1, **options)
    optimizer = raybo.Optimizer(space, "bo", **options)
    for _ in range(14):
        trial = optimizer.ask()
        for epoch, value in enumerate(train(trial.config), start=1):
            if not optimizer.report(trial, epoch, value):
                break
    for one, other in zip(result.trials, optimizer.trials, strict=True):
        assert one.config == pytest.approx(other.config, abs=1e-4)  # for rounding
        assert one.curve == pytest.approx(other.curve, abs=1e-4)
        assert one.state == other.state
