"""Paths of objectives."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from raybo.runtime.code import code_hash, import_path, is_changed, load_objective
from raybo.runtime.resume import resume_hint
from raybo.study.journal.journal import Journal


def test_the_path_of_a_function_leads_back_to_it() -> None:
    path = import_path(load_objective)
    assert path == "raybo.runtime.code:load_objective"
    assert load_objective(path, Path.cwd()) is load_objective
    assert import_path(Journal.close) == "raybo.study.journal.journal:Journal.close"


def test_what_no_other_process_can_import_has_no_path() -> None:
    assert import_path(lambda config: 0.0) is None
    assert import_path(object()) is None


def test_a_hash_of_code_sees_what_a_function_does_and_not_how_it_is_written() -> None:
    def one(config: Any) -> Any:
        return config["x"] + 1

    def two(config: Any) -> Any:
        # a comment
        return config["x"] + 1

    def three(config: Any) -> Any:
        return config["x"] + 2

    assert code_hash(one) == code_hash(two) == code_hash(functools.partial(one))
    assert is_changed(code_hash(one), code_hash(three))
    assert code_hash(len) is None
    assert not is_changed(None, code_hash(one))
    assert not is_changed("2.7:abc", code_hash(one))


def test_the_hint_to_resume_is_for_the_study_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = str(tmp_path / "runs")
    (tmp_path / "beside_me.py").write_text("def f(config):\n    return 0.0\n")
    here = "beside_me:f"
    assert resume_hint("a b", runs, here, True) == "raybo resume 'a b'"
    assert resume_hint("-s", runs, here, True, trials=9) == "raybo resume --trials 9 -- -s"
    assert resume_hint("s", "s3://b/r", here, True) == "raybo resume --storage s3://b/r s"
    # What no module of this folder defines, `raybo resume` runs only if the user names it.
    elsewhere = "raybo resume --objective raybo.demo:objective s"
    assert resume_hint("s", runs, "raybo.demo:objective", True) == elsewhere
    assert resume_hint("s", runs, None, True, here) == f"raybo resume --objective {here} s"
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", "my train.py", raising=False)  # none under xdist
    monkeypatch.setattr(sys, "orig_argv", ["python", "my train.py", "--n", "3"])
    assert resume_hint("s", runs, None, True) == "python 'my train.py' --n 3"
    assert resume_hint("s", runs, None, False).startswith("add name='s' to the call of raybo.op")
    # A module beside the script is found by the script alone.
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "my_model.py").write_text("def f(config):\n    return 0.0\n")
    monkeypatch.setattr(main, "__file__", str(tmp_path / "scripts" / "go.py"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "scripts"), *sys.path])
    importlib.import_module("my_model")
    assert resume_hint("s", runs, "my_model:f", True) == "python 'my train.py' --n 3"
    monkeypatch.delattr(main, "__file__")
    call = "call it again: raybo.optimize(..., name='s', storage='runs')"
    assert resume_hint("s", runs, None, False) == call
