"""Where studies are kept."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.errors import JournalError, StudyError
from raybo.study.journal import storage
from raybo.study.journal.journal import JOURNAL_FILE, Journal
from raybo.study.journal.storage import FolderStore, RemoteStore, list_slugs, open_store, slug


@given(st.text(min_size=1))
def test_a_slug_is_one_safe_folder_name(name: str) -> None:
    made = slug(name)
    assert made == os.path.basename(made)
    assert made not in (".", "..")
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert 0 < len(made) <= 80
    assert not made.startswith((".", "-"))


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_names_have_different_slugs(a: str, b: str) -> None:
    assert (slug(a) == slug(b)) == (a == b)


def test_names_that_look_alike_are_kept_apart() -> None:
    names = ["My Study", "my study", "my-study", "my/study", "../my-study", "MY-STUDY", "x" * 200]
    assert len({slug(name) for name in names}) == len(names)
    assert slug("my-study") == "my-study"


def test_an_empty_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="is empty"):
        open_store(tmp_path, "")


def test_studies_of_a_folder_are_listed(tmp_path: Path) -> None:
    assert list_slugs(tmp_path / "none") == []
    for name in ("b", "A a"):
        store = open_store(tmp_path, name)
        assert isinstance(store, FolderStore)
        Journal(store.folder).close()
    (tmp_path / "other").mkdir()
    assert list_slugs(tmp_path) == sorted(["b", slug("A a")])


def test_a_uri_nobody_knows_is_refused() -> None:
    with pytest.raises(StudyError, match="cannot be opened"):
        open_store("nosuch://x", "a")


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYBO_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def remote(tmp_path: Path) -> RemoteStore:
    store = open_store(f"file://{tmp_path}/bucket", "a")
    assert isinstance(store, RemoteStore)
    return store


def write(store: RemoteStore, *kinds: str, push: bool = True, closing: bool = True) -> None:
    store.fetch({"driver": os.getpid(), "session": "s"})
    journal = Journal(store.folder)
    for kind in kinds:
        journal.append({"kind": kind})
    if push:
        store.push(journal.size, closing)
    journal.close()


def kinds(store: RemoteStore) -> list[str]:
    return [event["kind"] for event in store.read().events]


@pytest.mark.usefixtures("spool")
def test_what_was_pushed_is_read_elsewhere(tmp_path: Path) -> None:
    assert kinds(remote(tmp_path)) == []
    write(remote(tmp_path), "a", "b")
    assert kinds(remote(tmp_path)) == ["a", "b"]
    assert list_slugs(f"file://{tmp_path}/bucket") == ["a"]


def test_another_machine_goes_on_from_what_was_pushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spool: Path
) -> None:
    write(remote(tmp_path), "a", "b")
    monkeypatch.setenv("RAYBO_SPOOL", str(tmp_path / "elsewhere"))
    write(remote(tmp_path), "c")
    assert kinds(remote(tmp_path)) == ["a", "b", "c"]
    monkeypatch.setenv("RAYBO_SPOOL", str(spool))  # back on the first one, whose spool is older
    write(remote(tmp_path), "d")
    assert kinds(remote(tmp_path)) == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("spool")
def test_the_same_machine_finds_what_was_not_pushed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(remote(tmp_path), "a")
    write(remote(tmp_path), "b", push=False)
    assert kinds(remote(tmp_path)) == ["a"]
    write(remote(tmp_path), "c")
    assert kinds(remote(tmp_path)) == ["a", "b", "c"]
    assert "had not been uploaded" in caplog.text


def test_a_spool_that_others_overtook_is_kept_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spool: Path
) -> None:
    write(remote(tmp_path), "a")
    write(remote(tmp_path), "lost", push=False)
    monkeypatch.setenv("RAYBO_SPOOL", str(tmp_path / "elsewhere"))
    write(remote(tmp_path), "b")
    monkeypatch.setenv("RAYBO_SPOOL", str(spool))
    write(remote(tmp_path), "c")
    assert kinds(remote(tmp_path)) == ["a", "b", "c"]
    assert len(list(spool.glob(f"*/{JOURNAL_FILE}.stale-*"))) == 1


@pytest.mark.usefixtures("spool")
def test_a_long_journal_is_uploaded_in_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_SEGMENT", 300)
    names = [f"event-{i}" for i in range(40)]
    for i in range(0, 40, 8):
        write(remote(tmp_path), *names[i : i + 8])
    assert kinds(remote(tmp_path)) == names
    segments = sorted((tmp_path / "bucket" / "a").glob("journal-*"))
    assert len(segments) > 5
    segments[2].unlink()
    with pytest.raises(JournalError, match="one is missing or cut"):
        remote(tmp_path).read()


@pytest.mark.usefixtures("spool")
def test_a_remote_study_has_one_writer(tmp_path: Path) -> None:
    first = remote(tmp_path)
    write(first, "a", closing=False)
    assert first.holder()["driver"] == os.getpid()
    with pytest.raises(JournalError, match=f"is being run by pid {os.getpid()}"):
        remote(tmp_path).fetch({"driver": 1, "session": "other"})
    second = remote(tmp_path)
    second.fetch({"driver": os.getpid(), "session": "s"})  # the same session, made again
    with pytest.raises(JournalError, match="another writer took over"):
        first.push(0)
    second.push(0, closing=True)
    assert second.holder() == {}


@pytest.mark.usefixtures("spool")
@pytest.mark.parametrize("ahead", [-86400, 0, 86400])  # seconds, of the clock of the other machine
def test_a_writer_elsewhere_is_known_by_its_next_sign_of_life_whatever_its_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    monkeypatch.setattr(storage, "_STALE", 0.5)
    other, clock = remote(tmp_path), time.time
    other.fetch({"driver": 1, "session": "a", "host": "elsewhere"})
    Journal(other.folder).close()
    written, enough = threading.Event(), threading.Event()

    def beat() -> None:
        while not enough.wait(0.1):
            other.push(0)
            written.set()

    thread = threading.Thread(target=beat)
    offset = {thread: ahead}
    monkeypatch.setattr(
        storage.time, "time", lambda: clock() + offset.get(threading.current_thread(), 0)
    )
    thread.start()
    try:
        assert written.wait(10)
        with pytest.raises(JournalError, match="is being run by pid 1 on elsewhere"):
            remote(tmp_path).fetch({"driver": 2, "session": "b"})
    finally:
        enough.set()
        thread.join()
    remote(tmp_path).fetch({"driver": 2, "session": "b"})  # it says nothing any more
    with pytest.raises(JournalError, match="another writer took over"):
        other.push(0)


def test_any_file_system_of_pyarrow_will_do(tmp_path: Path, spool: Path) -> None:
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    assert not spool.exists()
    base = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    write(RemoteStore(base, "deep/a", "sub://deep/a", spool), "x", "y")
    assert kinds(RemoteStore(base, "deep/a", "sub://deep/a", spool)) == ["x", "y"]
