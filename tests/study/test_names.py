"""Names of studies and of objectives."""

from __future__ import annotations

from raybo.study.journal.journal import Journal
from raybo.study.names import fresh_name, import_path


def test_names_are_made_up_and_objectives_found() -> None:
    assert len({fresh_name() for _ in range(50)}) == 50
    assert import_path(fresh_name) == "raybo.study.names:fresh_name"
    assert import_path(Journal.close) == "raybo.study.journal.journal:Journal.close"
    assert import_path(lambda config: 0.0) is None
    assert import_path(object()) is None
