"""Files that raybo 0.1.0 wrote open with this version, say what they said, and go on.

The files and the script that wrote them are in tests/data/stored. What a file holds is read here
from its JSON, so that the library is compared with the file and not with itself.
"""

from __future__ import annotations

import gzip
import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

import raybo
from raybo import Optimizer
from raybo.methods.registry import build_method
from raybo.result import load_result
from raybo.study.objective import Objective
from raybo.study.study import Study
from raybo.study.trial import State

STORED = Path(__file__).parent / "data" / "stored"
JOURNALS = sorted(path.parent.name for path in STORED.glob("*/journal.jsonl.gz"))
OPTIMIZERS = sorted(path.name.split(".")[0] for path in STORED.glob("*.optimizer.json.gz"))
SEARCHERS = sorted(path.name.split(".")[0] for path in STORED.glob("*.searcher.json.gz"))
RESUMED_ON_RAY = ("bo", "rembo")  # of journals the others are resumed by `make slow`


def numbers(config: Any) -> list[float]:
    """Numbers of a config, in order, of a long vector the first ten."""
    if isinstance(config, dict):
        return [number for value in config.values() for number in numbers(value)]
    if isinstance(config, str):
        return []
    return [float(config)] if isinstance(config, int | float) else [float(v) for v in config[:10]]


def bowl(config: Any) -> float:
    return sum((value - 0.3) ** 2 for value in numbers(config))


def read_state(name: str) -> Any:
    return json.loads(gzip.decompress((STORED / name).read_bytes()))


def read_events(name: str) -> list[dict[str, Any]]:
    lines = gzip.decompress((STORED / name / "journal.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line)["event"] for line in lines]


def unpack_journal(name: str, storage: Path) -> None:
    """Put the stored journal where a study of that name lives."""
    (storage / name).mkdir(parents=True)
    with gzip.open(STORED / name / "journal.jsonl.gz") as packed:
        (storage / name / "journal.jsonl").write_bytes(packed.read())


def study_of(result: raybo.Result, seed: int) -> Study:
    """Study with the trials of a result, as a proposer rebuilds it; it needs no Ray."""
    method = build_method(result.method["name"], result.space, result.method["options"])
    study = Study(result.space, method, Objective(result.mode), seed)
    for trial in result.trials:
        study.add(trial)
    return study


def test_there_is_a_file_of_every_method() -> None:
    known = {"random", "bo", "rembo", "addtree", "addgp", "rpp", "egp", "bock"}
    assert {read_events(name)[0]["method"]["name"] for name in JOURNALS} == known
    assert {read_state(f"{n}.optimizer.json.gz")["method"]["name"] for n in OPTIMIZERS} >= known
    assert SEARCHERS
    memos = [event["memo"] for event in read_events("rpp-ridge") if event["kind"] == "asked"]
    assert any("ridge" in memo for memo in memos)  # a model that only 0.1.0 wrote into memos


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_opens_with_its_trials_and_goes_on(name: str, tmp_path: Path) -> None:
    unpack_journal(name, tmp_path)
    events = read_events(name)
    asked = {event["number"]: event for event in events if event["kind"] == "asked"}
    values = {event["number"]: event["value"] for event in events if event["kind"] == "done"}
    (failure,) = [event for event in events if event["kind"] == "failed"]
    result = load_result(name, tmp_path)
    assert {trial.number: trial.value for trial in result.trials if trial.value is not None} == (
        values
    )
    assert [t.number for t in result.trials if t.state is State.FAILED] == [failure["number"]]
    assert result.best_value == min(values.values())
    assert result.best_trial is not None
    assert (
        result.space.to_json(result.best_trial.config)
        == (asked[result.best_trial.number]["config"])
    )
    study = study_of(result, events[0]["seed"])
    for _ in range(2):
        trial = study.ask()
        assert trial.number not in asked
        study.tell(trial.number, bowl(trial.config))
        assert math.isfinite(trial.value or math.nan)
    configs = [json.dumps(study.space.to_json(t.config)) for t in study.trials.values()]
    assert len(set(configs)) == len(configs) == len(asked) + 2  # no point a second time


@pytest.mark.ray
@pytest.mark.parametrize(
    "name",
    [n if n in RESUMED_ON_RAY else pytest.param(n, marks=pytest.mark.slow) for n in JOURNALS],
)
def test_a_journal_is_resumed_by_optimize(name: str, tmp_path: Path, ray_cluster: None) -> None:
    unpack_journal(name, tmp_path)
    before = load_result(name, tmp_path)
    options = {k: v for k, v in before.method["options"].items() if v is not None}
    result = raybo.optimize(
        bowl,
        before.space,
        method=before.method["name"],
        method_options=options,
        max_trials=len(before.trials) + 3,
        workers=2,
        seed=read_events(name)[0]["seed"],
        storage=tmp_path,
        name=name,
        progress=False,
    )
    assert len(result.trials) == len(before.trials) + 3
    old = {trial.number: trial.value for trial in before.trials}
    assert {t.number: t.value for t in result.trials if t.number in old} == old
    assert all(t.state is State.DONE for t in result.trials if t.number not in old)
    assert load_result(name, tmp_path).best_value == result.best_value


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n == "bock-paper" else n for n in OPTIMIZERS],
)
def test_an_optimizer_opens_with_its_pending_trials_and_goes_on(name: str) -> None:
    state = read_state(f"{name}.optimizer.json.gz")
    items = {item["number"]: item for item in state["trials"]}
    pending = [number for number, item in items.items() if item["state"] == "pending"]
    assert len(pending) == 3
    optimizer = Optimizer.from_state(state)
    for trial in optimizer.trials:
        item = items[trial.number]
        assert (trial.value, trial.state.value) == (item["value"], item["state"])
        assert optimizer.space.to_json(trial.config) == item["config"]
    assert optimizer.best is not None
    assert optimizer.best.value == min(
        i["value"] for i in items.values() if i["value"] is not None
    )
    for number in pending:
        optimizer.tell(number, 5.0 + number)
    trial = optimizer.ask()
    assert trial.number not in items
    optimizer.tell(trial.number, bowl(trial.config))
    configs = [json.dumps(optimizer.space.to_json(t.config)) for t in optimizer.trials]
    assert len(set(configs)) == len(configs) == len(items) + 1
    copy = Optimizer.from_state(json.loads(json.dumps(optimizer.state())))
    assert [t.value for t in copy.trials] == [t.value for t in optimizer.trials]


def suggestion(search: Any, trial_id: str) -> dict[str, Any]:
    """Config for a trial; `suggest` returns None while it is being computed."""
    deadline = time.monotonic() + 60
    while (config := search.suggest(trial_id)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert isinstance(config, dict)
    return config


@pytest.mark.ray
@pytest.mark.parametrize("name", SEARCHERS)
def test_a_searcher_is_restored_with_its_trials_and_goes_on(
    name: str, tmp_path: Path, ray_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raybo.tune import RayBOSearch

    if name not in RESUMED_ON_RAY:  # in this process
        monkeypatch.setattr("ray.is_initialized", lambda: False)
    state = read_state(f"{name}.searcher.json.gz")
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))
    search = RayBOSearch()
    search.restore(str(path))
    assert (search.metric, search.mode) == ("loss", "min")
    stored = {trial["number"]: trial["config"] for trial in state["book"]["trials"]}
    known = {trial_id: search.suggest(trial_id) for trial_id in state["book"]["ids"]}
    assert len(known) == 17  # 14 that ended, one of them badly, and three that were running
    for trial_id, config in known.items():
        number = state["book"]["ids"][trial_id]
        assert numbers(config)[0] == pytest.approx(numbers(stored[number])[0], rel=1e-12)
    search.on_trial_complete("pending0", {"loss": 0.5})
    search.on_trial_complete("pending1", None, error=True)
    for i in range(3):
        config = suggestion(search, f"new{i}")
        assert set(config) == set(known["t0"] or {})
        assert config not in known.values()
        search.on_trial_complete(f"new{i}", {"loss": bowl(config)})
    search.save(str(path))
    copy = RayBOSearch()
    copy.restore(str(path))
    assert {trial_id: copy.suggest(trial_id) for trial_id in known} == known
