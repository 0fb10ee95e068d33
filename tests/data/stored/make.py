"""Write the files of this folder: studies, optimizers and searchers as raybo 0.1.0 saved them.

They are what `tests/test_stored_states.py` opens. They were written once, by commit 0bd5ea4
(version 0.1.0, journal format 1, state version 1), and stay as they are: a later version of raybo
must open them. To add files of another version, check that version out and run, with its raybo on
PYTHONPATH,

    python tests/data/stored/make.py NEW_FOLDER

A journal is `NAME/journal.jsonl.gz`, an optimizer `NAME.optimizer.json.gz`, a searcher
`NAME.searcher.json.gz`. Each study has one failed trial and reached its `max_trials`.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray import tune

import raybo
from raybo import Box, Choice, Float, Int, Optimizer
from raybo.tune import RayBOSearch

FLAT = {"a": Float(0, 1), "b": Float(1e-3, 1, log=True), "c": Float(-1, 1), "n": Int(1, 9)}
FLOATS = {name: Float(-1, 1) for name in "abcd"}
SIX = {name: Float(-1, 1) for name in "abcdef"}
TREE = {
    "lr": Float(1e-3, 1, log=True),
    "model": Choice({"linear": {"C": Float(0, 1)}, "deep": {"width": Int(4, 64)}, "none": {}}),
}
TUNE = {
    "lr": tune.loguniform(1e-4, 1e-1),
    "net": {"width": tune.randint(8, 64), "depth": 2},
    "opt": tune.choice([{"name": "sgd", "momentum": tune.uniform(0, 1)}, {"name": "adam"}]),
}


def bowl(config: dict[str, Any]) -> float:
    """Sum of squared distances of all numbers from 0.3."""
    return sum((value - 0.3) ** 2 for value in numbers(config))


def wave(config: dict[str, Any]) -> float:
    """Cosine along one direction that is far from the axes."""
    return math.cos(2.0 * sum(numbers(config)) / math.sqrt(6))


def vector_bowl(config: dict[str, Any]) -> float:
    """Squared distance of two entries of a long vector from (0.3, -0.2)."""
    return float((config["x"][3] - 0.3) ** 2 + (config["x"][500] + 0.2) ** 2)


def numbers(config: dict[str, Any]) -> list[float]:
    """All numbers of a nested config, in order."""
    found = []
    for value in config.values():
        found += numbers(value) if isinstance(value, dict) else [float(value)]
    return found


@dataclass(frozen=True)
class Case:
    """One study to write."""

    method: str
    options: dict[str, Any] = field(default_factory=dict)
    space: Any = field(default_factory=lambda: FLAT)
    objective: Callable[[dict[str, Any]], float] = bowl
    trials: int = 16
    seed: int = 1
    on_ray: bool = True


CASES = {
    "random": Case("random"),
    "sobol": Case("sobol", on_ray=False),
    "bo": Case("bo"),
    "bo-paper": Case("bo", {"preset": "paper"}, on_ray=False),
    "rembo": Case("rembo", {"k": 2}, Box(1000), vector_bowl, 24),
    "rembo-paper": Case("rembo", {"k": 2, "preset": "paper"}, Box(1000), vector_bowl, 24),
    "addtree": Case("addtree", {}, TREE),
    "addtree-paper": Case("addtree", {"preset": "paper"}, TREE, on_ray=False),
    "addgp": Case("addgp"),
    "addgp-paper": Case("addgp", {"preset": "paper"}, on_ray=False),
    "rpp": Case("rpp", {}, FLAT, trials=18),
    "rpp-ridge": Case("rpp", {}, SIX, wave, 34, seed=4),  # memos hold a "ridge" model
    "rpp-paper": Case("rpp", {"preset": "paper"}, FLOATS, on_ray=False),
    "egp": Case("egp"),
    "egp-paper": Case("egp", {"preset": "paper"}, on_ray=False),
    "bock": Case("bock", {}, FLOATS),
    "bock-map": Case("bock", {"inference": "map"}, FLOATS),
    "bock-paper": Case("bock", {"preset": "paper"}, FLOATS, on_ray=False),
}
MISSING = 4  # evaluation that fails, the first being 0
PENDING = 3  # trials of an optimizer or a searcher that have no value yet


def fails_once(objective: Callable[[dict[str, Any]], float], folder: Path) -> Any:
    """`objective`, but evaluation `MISSING` raises; `folder` counts them across processes."""

    def evaluate(config: dict[str, Any]) -> float:
        for count in range(10_000):
            try:
                (folder / str(count)).mkdir()
            except FileExistsError:
                continue
            break
        if count == MISSING:
            raise ArithmeticError("no value, on purpose")
        return objective(config)

    return evaluate


def write_journal(name: str, case: Case, folder: Path) -> None:
    """Run a study on the local Ray and keep its journal."""
    with tempfile.TemporaryDirectory() as scratch:
        counts = Path(scratch) / "counts"
        counts.mkdir()
        raybo.optimize(
            fails_once(case.objective, counts),
            case.space,
            method=case.method,
            method_options=case.options,
            max_trials=case.trials,
            workers=2,
            seed=case.seed,
            storage=scratch,
            name=name,
            progress=False,
        )
        (folder / name).mkdir()
        journal = (Path(scratch) / name / "journal.jsonl").read_bytes()
        save(without_folders(journal), folder / name / "journal.jsonl.gz")


def write_optimizer(name: str, case: Case, folder: Path) -> None:
    """Ask and tell, and keep the state with trials that are pending."""
    optimizer = Optimizer(case.space, case.method, seed=case.seed, **case.options)
    for i in range(case.trials):
        trial = optimizer.ask()
        if i == MISSING:
            optimizer.fail(trial.number, "no value, on purpose")
        else:
            optimizer.tell(trial.number, case.objective(trial.config))
    for _ in range(PENDING):
        optimizer.ask()
    save(json.dumps(optimizer.state()).encode(), folder / f"{name}.optimizer.json.gz")


def write_searcher(name: str, space: Any, objective: Any, folder: Path, **settings: Any) -> None:
    """Suggest and complete as Ray Tune does, and keep what `save` wrote."""
    search = RayBOSearch(metric="loss", mode="min", seed=1, **settings)
    search.set_search_properties(None, None, space)
    search.add_evaluated_point(search_point(space), 2.5)
    for i in range(14):
        config = next_config(search, f"t{i}")
        if i == MISSING:
            search.on_trial_complete(f"t{i}", None, error=True)
        else:
            search.on_trial_complete(f"t{i}", {"loss": objective(config)})
    for i in range(PENDING):
        next_config(search, f"pending{i}")
    search.on_trial_result("pending0", {"loss": 1.5})
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "state.json"
        search.save(str(path))
        save(path.read_bytes(), folder / f"{name}.searcher.json.gz")


def next_config(search: RayBOSearch, trial_id: str) -> dict[str, Any]:
    """Config for a trial; `suggest` returns None while it is being computed."""
    while (config := search.suggest(trial_id)) is None:
        time.sleep(0.05)
    return config


def search_point(space: Any) -> dict[str, Any]:
    """One config of TUNE, or of a flat space of Tune's uniform domains."""
    if space is TUNE:
        return {"lr": 0.01, "net": {"width": 16}, "opt": {"name": "adam"}}
    return dict.fromkeys(space, 0.5)


def tune_bowl(config: dict[str, Any]) -> float:
    """A value for each config of TUNE."""
    bonus = config["opt"].get("momentum", 0.7)
    return float(
        (math.log10(config["lr"]) + 2) ** 2 + (config["net"]["width"] / 30 - 1) ** 2 + bonus
    )


def without_folders(journal: bytes) -> bytes:
    """The journal with bare file names in its tracebacks, and with the checksums of that text."""
    lines = []
    for line in journal.splitlines():
        body = re.sub(rb'File \\"[^"]*/', rb'File \\"', line[len(b'{"crc":"01234567",') :])
        lines.append(b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body))
    return b"".join(lines)


def save(data: bytes, target: Path) -> None:
    """Write bytes compressed, with no time stamp."""
    target.write_bytes(gzip.compress(data, mtime=0))


def main(folder: Path) -> None:
    """Write all files."""
    folder.mkdir(parents=True)
    flat = {name: tune.uniform(0, 1) for name in "abc"}
    for name, case in CASES.items():
        write_optimizer(name, case, folder)
    ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="ERROR")
    write_searcher("bo", TUNE, tune_bowl, folder)
    write_searcher("egp", flat, bowl, folder, method="egp", method_options={"n_init": 5})
    for name, case in CASES.items():
        if case.on_ray:
            write_journal(name, case, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
