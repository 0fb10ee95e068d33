"""The command line: what it prints, refuses and returns; two real runs through a shell."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import optuna
import pytest
from click.testing import CliRunner, Result

from raybo import Box, Categorical, Choice, Float, Int, Space, __version__
from raybo.cli import main
from raybo.cli_options import pair, settings_of
from raybo.errors import StudyError
from raybo.runtime.code import _is_everywhere, load_objective, send_by_value
from raybo.runtime.resume import resume_arguments
from raybo.study.journal.journal import Journal

BIN = Path(sys.executable).parent
SPACE = Space(
    {
        "lr": Float(1e-5, 1.0, log=True),
        "width": Int(16, 100, step=16),
        "act": Categorical(["relu", None, 3]),
        "compress": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
    }
)
CONFIGS: list[dict[str, Any]] = [
    {"lr": 0.1, "width": 16, "act": "relu", "compress": {"svd": {"rank": 4}}},
    {"lr": 0.01, "width": 32, "act": None, "compress": {"none": {}}},
    {"lr": 0.2, "width": 96, "act": 3, "compress": {"none": {}}},
]


def write_study(
    folder: Path,
    name: str = "first",
    space: Any = SPACE,
    header: Mapping[str, Any] = MappingProxyType({}),
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Journal of a study with two values, a failure and an unfinished trial."""
    storage = folder / "runs"
    configs = CONFIGS if space is SPACE else [{"x": [0.1 * i] * space.dim} for i in range(3)]
    settings = {
        "max_trials": 3,
        "max_seconds": None,
        "target": None,
        "workers": 2,
        "resources": {"num_cpus": 1},
        "timeout": None,
        "retries": 1,
        **settings,
    }
    journal = Journal(storage / name)
    journal.append(
        {
            "kind": "header",
            "name": name,
            "space": space.definition(),
            "method": {"name": "random", "options": {"preset": "default"}},
            "mode": "min",
            "metric": "loss",
            "seed": 0,
            "objective": "train:objective",
            "raybo": __version__,
            "created": 1.7e9,
            **header,
        },
        {"kind": "session", "id": "s", "time": 1.7e9, "settings": settings, "who": {}},
        *[
            {"kind": "asked", "number": i, "config": space.to_json(config)}
            for i, config in enumerate(configs)
        ],
        {"kind": "asked", "number": 3, "config": space.to_json(configs[0])},
    )
    span = {"started": 1.7e9, "finished": 1.7e9 + 2, "attempts": 1}
    journal.append(
        {"kind": "done", "number": 0, "value": 0.5, "extra": {"acc": 0.9}, **span},
        {"kind": "failed", "number": 1, "reason": "ValueError: no [bold] luck", **span},
        {"kind": "done", "number": 2, "value": 0.25, **span},
        {"kind": "stopped", "reason": "max_trials reached: 3", "outcome": "max_trials",
         "error": None, "seconds": 12.0, "use": 0.9},
    )  # fmt: skip
    journal.close()
    return storage


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def error_of(*words: str) -> str:
    """Error line of a command that must fail with exit code 2."""
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current folder with a module and a space."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYBO_STORAGE", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("train", "broken", "first", "package", "package.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "train.py").write_text(
        "import threading\n"
        "lock = threading.Lock()\n"
        "number = 3\n"
        "def objective(config):\n"
        "    return {'loss': (config['lr'] - 0.3) ** 2}\n"
        "def guarded(config):\n"
        "    with lock:\n"
        "        return 1.0\n"
    )
    (tmp_path / "broken.py").write_text("import json\njson.nothing\n")
    (tmp_path / "lacking.py").write_text("import no_such_module\n")
    (tmp_path / "space.yaml").write_text("lr: {type: float, low: 1e-5, high: 1.0, log: true}\n")
    return tmp_path


# -- help, version, errors -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [[], ["demo"], ["run"], ["resume"], ["status"], ["list"], ["report"], ["export"]]
)
def test_every_command_explains_itself(words: list[str]) -> None:
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


def test_version() -> None:
    assert __version__ in invoke("--version").output


def test_help_loads_neither_ray_nor_torch() -> None:
    script = (
        "import sys; from raybo.cli import main; main(['--help'], standalone_mode=False); "
        "print(sorted({'ray', 'torch', 'pandas', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_looking_at_journals_does_not_load_ray(folder: Path) -> None:
    write_study(folder)
    for words in (["status", "first"], ["list"], ["export", "first"]):
        script = (
            f"import sys; from raybo.cli import main; main({words!r}, standalone_mode=False); "
            "print(sorted({'ray', 'torch'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.usefixtures("folder")
def test_an_error_is_one_line_unless_debug_is_given() -> None:
    assert error_of("status", "nothing") == (
        "Error: there is no study 'nothing' in 'runs'; it has no studies at all"
    )
    with pytest.raises(StudyError):
        invoke("status", "nothing", "--debug")


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("train", "not of the form MODULE:FUNCTION, such as train:objective"),
        (":objective", "not of the form MODULE:FUNCTION"),
        ("nowhere:objective", "there is no module 'nowhere' in"),
        ("train:missing", "train has no 'missing'; it has objective, guarded"),
        ("train:number", "train:number is a int, not a function of a config"),
        ("broken:objective", "module 'broken' cannot be imported: AttributeError"),
        ("lacking:objective", "No module named 'no_such_module'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_run_says_what_is_wrong_with_the_objective(objective: str, message: str) -> None:
    assert message in error_of("run", objective, "--space", "space.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("lr: [1, 2", "not YAML"),
        ("lr: {type: float, low: 1}", "needs the key 'high'"),
        ("lr: {type: flaot, low: 1, high: 2}", "type must be one of"),
    ],
)
def test_run_says_what_is_wrong_with_the_space(
    folder: Path, text: str | None, message: str
) -> None:
    if text is None:
        (folder / "space.yaml").unlink()
    else:
        (folder / "space.yaml").write_text(text)
    line = error_of("run", "train:objective", "--space", "space.yaml")
    assert "space.yaml" in line
    assert message in line


@pytest.mark.usefixtures("folder")
def test_run_refuses_a_wrong_method_before_ray_starts() -> None:
    base = ["run", "train:objective", "--space", "space.yaml", "--quiet"]
    assert "method 'magic' is not known" in error_of(*base, "--method", "magic")
    line = error_of(*base, "--method", "random", "--option", "speed=3")
    assert "no option 'speed'" in line
    assert "write it as KEY=VALUE" in error_of(*base, "--option", "speed")
    assert "not YAML" in error_of(*base, "--option", "a=[1")


@pytest.mark.parametrize("option", ["--trials=0", "--workers=x", "--seconds=-1", "--mode=best"])
@pytest.mark.usefixtures("folder")
def test_wrong_values_of_options_are_usage_errors(option: str) -> None:
    result = invoke("run", "train:objective", "--space", "space.yaml", option)
    assert result.exit_code == 2
    assert "Invalid value" in result.stderr


def test_the_function_may_be_named_by_its_file(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package/inner.py").write_text("class A:\n    def f(config): return 1.0\n")
    assert load_objective("train.py:objective", folder).__name__ == "objective"
    assert load_objective("package/inner.py:A.f", folder)({}) == 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=4", 4),
        ("k=1e-5", 1e-5),
        ("k=2E3", 2000.0),
        ("k=true", True),
        ("k=se", "se"),
        ("k=", None),
        ("k=[1, 2]", [1, 2]),
        ("k=a=b", "a=b"),
        ("k={a: 1}", {"a": 1}),
    ],
)
def test_options_of_a_method_are_yaml(text: str, value: Any) -> None:
    assert pair(text, "--option") == ("k", value)


def test_limits_become_arguments_of_optimize() -> None:
    nothing = dict.fromkeys(
        ("trials", "seconds", "target", "workers", "timeout", "retries", "cpus", "gpus")
    )
    assert settings_of({**nothing, "custom": ()}) == {}
    given = {**nothing, "trials": 5, "retries": 0, "gpus": 0.5, "custom": ("tpu=2", "disk=0.5")}
    assert settings_of(given) == {
        "max_trials": 5,
        "retries": 0,
        "resources": {"num_cpus": 1, "num_gpus": 0.5, "resources": {"tpu": 2, "disk": 0.5}},
    }


# -- code that travels ---------------------------------------------------------------------------


def test_an_objective_sent_by_value_runs_where_its_module_is_not(folder: Path) -> None:
    import ray

    objective = load_objective("train:objective", folder)
    send_by_value([sys.modules["train"]], objective)
    (folder / "objective.pkl").write_bytes(ray.cloudpickle.dumps(objective))
    script = "import pickle, sys; f = pickle.load(open(sys.argv[1], 'rb')); print(f({'lr': 0.3}))"
    words = [sys.executable, "-c", script, str(folder / "objective.pkl")]
    done = subprocess.run(words, cwd="/", capture_output=True, text=True)
    assert done.stdout.strip() == "{'loss': 0.0}", done.stderr
    ray.cloudpickle.unregister_pickle_by_value(sys.modules["train"])


def test_what_cannot_travel_is_imported_by_the_workers(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import ray

    guarded = load_objective("train:guarded", folder)
    send_by_value([sys.modules["train"]], guarded)
    assert "cannot be sent to the workers" in caplog.text
    assert b"train" in ray.cloudpickle.dumps(guarded)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_other_machines_are_asked_whether_they_have_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _is_everywhere("not asked: there is one machine only")
    monkeypatch.setattr("socket.gethostname", lambda: "another machine")
    assert _is_everywhere(str(folder / "train.py"))
    assert not _is_everywhere(str(folder / "nothing.py"))


# -- status, list --------------------------------------------------------------------------------


def test_status_shows_the_figures(folder: Path) -> None:
    write_study(folder)
    output = invoke("status", "first").output
    for part in ("first", "finished", "3 of 3", "2 done, 1 failed, 1 unfinished", "random"):
        assert part in output
    for part in ("minimise loss", "train:objective", "0.25  trial 2", "act: 3", "runs/first"):
        assert part in output
    assert "1 x ValueError: no [bold] luck" in output


def test_status_as_json(folder: Path) -> None:
    write_study(folder)
    facts = json.loads(invoke("status", "first", "--json").output)
    assert facts["done"] == 2
    assert facts["state"] == "max_trials"
    assert facts["best_config"] == CONFIGS[2]
    assert facts["failures"] == {"ValueError: no [bold] luck": 1}


def test_status_of_a_large_box_stays_short(folder: Path) -> None:
    write_study(folder, space=Box(200))
    output = invoke("status", "first").output
    assert "200 in all" in output
    assert len(output.splitlines()) < 15


def test_list_shows_all_studies_and_damage(folder: Path) -> None:
    assert "No studies in runs" in invoke("list").output
    write_study(folder, "one")
    storage = write_study(folder, "two")
    journal = storage / "two" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"0.25", b"0.52"))
    lines = [line.split() for line in invoke("list").output.splitlines()[1:]]
    assert {tuple(line[:3]) for line in lines} == {
        ("one", "random", "finished"),
        ("two", "damaged", "0"),
    }
    found = {study["name"]: study for study in json.loads(invoke("list", "--json").output)}
    assert found["one"]["best_value"] == 0.25
    assert "journal.jsonl" in found["two"]["error"]


def test_storage_can_come_from_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(folder / "elsewhere")
    monkeypatch.setenv("RAYBO_STORAGE", "elsewhere/runs")
    assert "first" in invoke("list").output


# -- resume --------------------------------------------------------------------------------------


def test_resume_refuses_a_study_whose_budget_is_spent(folder: Path) -> None:
    write_study(folder)
    line = error_of("resume", "first")
    assert "has 3 trials and was to have 3" in line
    assert "raybo resume first --trials 6" in line
    line = error_of("resume", "first", "--trials", "9", "--target", "1e6")
    assert "has reached its target 1e+06, with " in line
    assert "go on with raybo resume first and a better --target" in line


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"objective": None}, "its objective is a lambda, or a function of a script or notebook"),
        ({"objective": "gone:objective"}, "'gone:objective', which no module in .* defines"),
        ({"method": {"name": "my.module:Mine", "options": {}}}, "its method is an object"),
        (
            {"space": {"a": {"type": "categorical", "values": [{"$object": "<A>"}]}}},
            "cannot be rebuilt",
        ),
        (
            {"space": {**SPACE.definition(), "where": {"$function": "limited 1f"}}},
            "its where is the function limited 1f, which cannot be rebuilt",
        ),
    ],
)
def test_resume_points_to_python_where_the_journal_is_not_enough(
    folder: Path, header: dict[str, Any], message: str
) -> None:
    write_study(folder, header=header)
    line = error_of("resume", "first", "--trials", "10")
    assert re.search(message, line)
    assert "resume it from Python with raybo.optimize(" in line


def test_a_study_is_shown_and_exported_without_the_function_of_its_where(folder: Path) -> None:
    where = {"$function": "limited 1f"}
    write_study(folder, header={"space": {**SPACE.definition(), "where": where}})
    assert "lr" in invoke("status", "first").output
    invoke("export", "first", "--to", "csv")
    assert "lr" in (folder / "first.csv").read_text()


FOREIGN = ["subprocess:call", "os:system", "first:os.system", "first:run_it", "../first:objective"]


@pytest.mark.parametrize("objective", FOREIGN)
def test_an_objective_that_only_the_journal_names_is_shown_and_not_run(
    folder: Path, objective: str
) -> None:
    (folder / "first.py").write_text("import os\nfrom subprocess import call as run_it\n")
    write_study(folder, header={"objective": objective})
    asked = invoke("resume", "first", "--trials", "10")
    assert f"names the objective {objective!r}" in asked.stderr
    assert asked.exit_code == 2
    assert "--yes if you trust" in asked.stderr


def test_an_objective_is_run_if_it_is_here_or_confirmed_or_named(folder: Path) -> None:
    write_study(folder, header={"objective": "math:hypot"})
    found = resume_arguments("first", "runs", {"max_trials": 9}, folder, None, lambda _: True)
    assert found["objective"].__name__ == "hypot"
    named = resume_arguments("first", "runs", {"max_trials": 9}, folder, "train:objective")
    assert named["objective"].__module__ == "train"
    write_study(folder, name="here", header={"name": "here", "objective": "train:objective"})
    here = resume_arguments("here", "runs", {"max_trials": 9}, folder)
    assert here["objective"] is named["objective"]


def test_a_runtime_environment_of_a_journal_is_not_used(folder: Path) -> None:
    resources = {"num_cpus": 1, "runtime_env": {"pip": ["evil"]}}
    write_study(folder, settings={"resources": resources})
    line = error_of("resume", "first", "--trials", "10")
    assert "asks for a runtime environment" in line
    assert "evil" in line
    changes = {"max_trials": 9, "resources": {"num_cpus": 2}}
    assert resume_arguments("first", "runs", changes, folder)["resources"] == {"num_cpus": 2}


def test_resume_takes_everything_else_from_the_journal(folder: Path) -> None:
    write_study(folder)
    arguments = resume_arguments("first", "runs", {"max_trials": 10}, folder)
    assert arguments.pop("objective").__name__ == "objective"
    assert arguments == {
        "name": "first",
        "storage": "runs",
        "space": SPACE,
        "method": "random",
        "method_options": {"preset": "default"},
        "mode": "min",
        "metric": "loss",
        "constraints": {},
        "seed": 0,
        "max_trials": 10,
        "max_seconds": None,
        "target": None,
        "workers": 2,
        "resources": {"num_cpus": 1},
        "timeout": None,
        "retries": 1,
    }


# -- export --------------------------------------------------------------------------------------


def rewrite(folder: Path, *events: Mapping[str, Any]) -> None:
    journal = Journal(folder)
    journal.append(*events)
    journal.close()


def test_a_malformed_journal_does_not_hide_the_other_studies(folder: Path) -> None:
    write_study(folder)
    rewrite(folder / "runs" / "bad", {"kind": "header", "name": "bad", "mode": "up"})
    rewrite(folder / "runs" / "worse", {"kind": "asked", "number": 0})
    lines = invoke("list").output.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["bad", "worse", "first"]
    assert "journal.jsonl:1: a malformed record" in error_of("status", "bad")


def test_a_terminal_is_not_commanded_by_names_and_reasons(folder: Path) -> None:
    escape = "\x1b]0;owned\x07"
    method = {"name": f"random{escape}", "options": {"preset": escape}}
    write_study(folder, header={"objective": f"a:b{escape}", "method": method})
    rewrite(folder / "runs" / "first", {"kind": "failed", "number": 3, "reason": escape})
    rewrite(folder / "runs" / "first", {"kind": "stopped", "reason": escape, "outcome": escape})
    for command in (("status", "first"), ("list",)):
        output = invoke(*command).output
        assert "owned" in output
        assert not any(c in output for c in "\x1b\x07")


@pytest.mark.parametrize(
    "command",
    [("report",), ("export",), ("export", "--to", "parquet"), ("export", "--to", "optuna")],
    ids=" ".join,
)
def test_a_reason_that_utf8_cannot_hold_is_written_with_escapes(
    folder: Path, command: tuple[str, ...]
) -> None:
    write_study(folder)
    reason = "file \udcff not found"  # as in errors about file names that are not UTF-8
    rewrite(folder / "runs" / "first", {"kind": "failed", "number": 3, "reason": reason})
    assert invoke(command[0], "first", *command[1:], "-o", "out").exit_code == 0
    if "optuna" not in command:
        assert rb"file \udcff not found" in (folder / "out").read_bytes()


def test_export_makes_the_folder_of_its_file(folder: Path) -> None:
    write_study(folder)
    assert invoke("export", "first", "-o", "new/place/trials.csv").exit_code == 0
    assert (folder / "new/place/trials.csv").exists()


def test_the_help_of_a_benchmark_names_its_options() -> None:
    assert "--first-seed" in invoke("bench", "failures", "--help").output


def test_export_to_csv(folder: Path) -> None:
    write_study(folder)
    result = invoke("export", "first")
    assert result.output.strip() == "first.csv"
    rows = list(csv.DictReader((folder / "first.csv").open()))
    assert [row["number"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["value"] for row in rows] == ["0.5", "", "0.25", ""]
    assert [row["state"] for row in rows] == ["done", "failed", "done", "pending"]
    assert [row["compress"] for row in rows] == ["svd", "none", "none", "svd"]
    assert [row["compress/svd/rank"] for row in rows] == ["4.0", "", "", "4.0"]
    assert [row["act"] for row in rows] == ["relu", "", "3", "relu"]
    assert rows[0]["extra/acc"] == "0.9"


def test_a_text_that_a_spreadsheet_would_run_is_quoted_in_a_csv(folder: Path) -> None:
    evil = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-2+3", "plain"]
    space = Space({"=name": Categorical(evil), "x": Float(-1, 1)})
    journal = Journal(folder / "runs" / "evil")
    header = {"kind": "header", "name": "evil", "space": space.definition(), "mode": "min",
              "method": {"name": "random", "options": {}}}  # fmt: skip
    journal.append(header)
    for number, value in enumerate(evil):
        config = space.to_json({"=name": value, "x": -0.5})
        journal.append({"kind": "asked", "number": number, "config": config})
        extra = {"link": "=HYPERLINK(1)", "low": -3}
        journal.append({"kind": "done", "number": number, "value": -1.0, "extra": extra})
    journal.close()
    invoke("export", "evil")
    rows = list(csv.DictReader((folder / "evil.csv").open()))
    assert [row["'=name"] for row in rows] == [f"'{text}" for text in evil[:4]] + ["plain"]
    assert {row["extra/link"] for row in rows} == {"'=HYPERLINK(1)"}
    assert {(row["value"], row["x"], row["extra/low"]) for row in rows} == {("-1.0", "-0.5", "-3")}
    invoke("export", "evil", "--raw")
    rows = list(csv.DictReader((folder / "evil.csv").open()))
    assert [row["=name"] for row in rows] == evil


def test_export_to_parquet(folder: Path) -> None:
    import pandas as pd

    write_study(folder, space=Box(3))
    invoke("export", "first", "--to", "parquet", "-o", "table.parquet")
    frame = pd.read_parquet(folder / "table.parquet")
    assert frame["x[2]"].tolist() == pytest.approx([0.0, 0.1, 0.2, 0.0])
    assert "x" not in frame


def test_export_of_a_huge_box_keeps_the_source_of_its_vectors(folder: Path) -> None:
    write_study(folder, space=Box(1200))
    invoke("export", "first")
    rows = list(csv.DictReader((folder / "first.csv").open()))
    assert json.loads(rows[1]["x"])


def test_export_says_when_the_file_cannot_be_written(folder: Path) -> None:
    write_study(folder)
    (folder / "taken").write_text("by a file")
    for to in ("csv", "parquet"):
        line = error_of("export", "first", "--to", to, "-o", "taken/file")
        assert "cannot write taken/file" in line


def test_export_to_optuna_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(folder)
    monkeypatch.setitem(sys.modules, "optuna", None)
    line = error_of("export", "first", "--to", "optuna")
    assert "pip install 'raybo[dashboard]'" in line


def test_export_to_optuna(folder: Path) -> None:
    write_study(folder)
    for _ in range(2):  # a second export replaces the first
        assert invoke("export", "first", "--to", "optuna", "-o", "all.db").exit_code == 0
    study = optuna.load_study(study_name="first", storage="sqlite:///all.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert study.best_value == 0.25
    assert study.trials[0].params == {
        "lr": 0.1,
        "width": 16,
        "act": "relu",
        "compress": "svd",
        "compress/svd/rank": 4,
    }
    assert study.trials[1].user_attrs["reason"] == "ValueError: no [bold] luck"
    assert study.trials[0].duration.total_seconds() == 2


def test_export_to_optuna_leaves_the_studies_of_others_alone(folder: Path) -> None:
    write_study(folder)
    optuna.create_study(study_name="first", storage="sqlite:///all.db")
    line = error_of("export", "first", "--to", "optuna", "-o", "all.db")
    assert "that raybo did not write" in line


# -- report --------------------------------------------------------------------------------------


def test_report_is_written_beside_the_journal(folder: Path) -> None:
    write_study(folder)
    assert invoke("report", "first").output.strip() == "runs/first/report.html"
    assert "<h1>first</h1>" in (folder / "runs/first/report.html").read_text()
    assert invoke("report", "first", "-o", "here.html").output.strip() == "here.html"
    assert (folder / "here.html").exists()


# -- for real ------------------------------------------------------------------------------------


def shell(folder: Path, line: str, address: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "RAY_ADDRESS": address}
    words = shlex.split(line)
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def address(ray_cluster: None) -> str:
    """Address of the cluster of the tests."""
    import ray

    return str(ray.get_runtime_context().gcs_address)


@pytest.mark.ray
def test_a_study_is_run_and_resumed_from_the_shell(folder: Path, address: str) -> None:
    (folder / "helper.py").write_text("best = 0.3\n")
    (folder / "train.py").write_text(
        "import helper\n"
        "def objective(config):\n"
        "    return {'loss': (config['lr'] - helper.best) ** 2, 'lr': config['lr']}\n"
    )
    words = "raybo run train:objective --space space.yaml --method random --trials 6 --workers 2"
    first = shell(folder, f"{words} --metric loss --name try", address)
    assert first.returncode == 0, first.stdout + first.stderr
    assert re.search(r"Best value .*\n\n    \{'lr': [0-9.e-]+\}\n", first.stdout)
    assert "Resume   raybo resume --trials 12 try\n" in first.stdout
    assert "[try] 6/6, 0 running, 0 failed" in first.stderr
    assert "\x1b" not in first.stdout + first.stderr
    again = shell(folder, first.stdout.split("Resume ")[1].strip() + " --quiet", address)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "of 12)" in again.stdout
    assert again.stderr == ""
    facts = json.loads(shell(folder, "raybo status try --json", address).stdout)
    assert (facts["done"], facts["failed"], facts["pending"]) == (12, 0, 0)


@pytest.mark.ray
def test_a_study_that_only_fails_ends_with_the_users_own_traceback(
    folder: Path, address: str
) -> None:
    (folder / "train.py").write_text("def objective(config):\n    return config['typo']\n")
    words = "raybo run train:objective --space space.yaml --method random --trials 20 --quiet"
    done = shell(folder, words, address)
    assert done.returncode == 2
    assert re.search(r"^Error: the first \d+ trials all failed", done.stderr, re.MULTILINE)
    assert "return config['typo']" in done.stderr
    assert "cli.py" not in done.stderr


@pytest.mark.ray
def test_the_demo_runs_and_starts_ray(folder: Path) -> None:
    done = shell(folder, "raybo demo --trials 4 --workers 2", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The minimum is known to be 0.397887" in done.stdout
    assert re.search(r"raybo resume --objective raybo.demo:\w+ --trials 8 demo-\w+", done.stdout)


def test_methods_are_listed_with_options_and_defaults() -> None:
    lines = invoke("methods").output.splitlines()
    (line,) = [line for line in lines if line.startswith("bo ") and "preset" not in line]
    options = "n_init, acquisition=log_ei, maximizer=lbfgsb, trust_region=False, device=cpu"
    assert line.split(maxsplit=1)[1] == options
    assert any(line.startswith("rembo preset=paper") for line in lines)


def test_a_study_is_deleted_when_confirmed(tmp_path: Path) -> None:
    write_study(tmp_path)
    storage = tmp_path / "runs"
    asked = CliRunner().invoke(main, ["delete", "first", "--storage", str(storage)], input="n\n")
    assert "Remove study 'first' and its 3 finished trials?" in asked.output
    assert (storage / "first").is_dir()
    done = invoke("delete", "first", "--yes", "--storage", str(storage))
    assert done.output == f"Removed {storage / 'first'}\n"
    assert not (storage / "first").exists()
    assert invoke("delete", "first", "--yes", "--storage", str(storage)).exit_code == 2
