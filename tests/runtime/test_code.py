"""Paths of objectives."""

from __future__ import annotations

from pathlib import Path

from raybo.runtime.code import import_path, load_objective
from raybo.study.journal.journal import Journal


def test_the_path_of_a_function_leads_back_to_it() -> None:
    path = import_path(load_objective)
    assert path == "raybo.runtime.code:load_objective"
    assert load_objective(path, Path.cwd()) is load_objective
    assert import_path(Journal.close) == "raybo.study.journal.journal:Journal.close"


def test_what_no_other_process_can_import_has_no_path() -> None:
    assert import_path(lambda config: 0.0) is None
    assert import_path(object()) is None
