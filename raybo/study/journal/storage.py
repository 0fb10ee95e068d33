"""Stores: where studies are kept, one folder per study, on a disk or behind a URI.

A folder (local or shared) holds the journal itself. A URI that pyarrow.fs knows (s3://, gs://,
hdfs://, file://) cannot be appended to with fsync: the journal is written to a spool folder on the
machine of the coordinator, and its bytes are uploaded every `PUSH_SECONDS` and at the end, in
segments of about one megabyte.

What can be lost. In a folder: nothing. At a URI: nothing when processes die and the study is
resumed on the same machine, since the spool is found again; when the machine or its disk is lost
too, the records since the last complete upload, about `PUSH_SECONDS`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import socket
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from raybo.errors import JournalError, StudyError
from raybo.study.journal.compact import compact, read_record
from raybo.study.journal.journal import (
    JOURNAL_FILE,
    LOCK_FILE,
    Contents,
    parse_journal,
)
from raybo.study.journal.lock import (
    checked_holder,
    is_held,
    process_is_alive,
    read_holder,
)
from raybo.study.journal.record import Record

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

logger = logging.getLogger(__name__)

PUSH_SECONDS = 5.0  # between two uploads
_LONG = 2**20  # bytes of a journal: less are read in a twentieth of a second
_GROWTH = 1.5  # of a journal until it is compacted again: at most a third is read line by line
_SEGMENT = 2**20  # bytes of a segment
_STALE = 6 * PUSH_SECONDS  # a writer elsewhere without an upload for this long is dead
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


class Store(Protocol):
    """Where one study is kept."""

    @property
    def folder(self) -> Path:
        """Folder that holds the journal, or its spool."""

    @property
    def location(self) -> str:
        """Path or URI of the study."""

    def record(self) -> Record:
        """Return the record that the journal leads to, as others see it."""

    def holder(self) -> dict[str, Any]:
        """Return who writes the journal now; empty when nobody does."""

    def fetch(self, who: Mapping[str, Any]) -> None:
        """Copy the journal into `folder` before it is opened there."""

    def push(self, size: int, closing: bool = False) -> None:
        """Make sure that others can read the first `size` bytes of the journal, and soon."""


def open_store(storage: str | os.PathLike[str], name: str, spool: Path | None = None) -> Store:
    """Return the store of the study `name` under `storage`, a folder or a URI."""
    if not name:
        raise StudyError("the name of a study is empty; give some letters or digits")
    if not _is_uri(storage):
        return FolderStore(Path(storage) / slug(name))
    fs, base = _file_system(str(storage))
    location = f"{str(storage).rstrip('/')}/{slug(name)}"
    return RemoteStore(fs, f"{base}/{slug(name)}", location, spool or spool_folder())


def spool_folder() -> Path:
    """Return the folder that journals are uploaded from: RAYBO_SPOOL, or a temporary one."""
    return Path(os.environ.get("RAYBO_SPOOL") or Path(tempfile.gettempdir()) / "raybo-spool")


def list_slugs(storage: str | os.PathLike[str]) -> list[str]:
    """Return the names of the folders under `storage` that hold a study."""
    if not _is_uri(storage):
        return sorted(path.parent.name for path in Path(storage).glob(f"*/{JOURNAL_FILE}"))
    from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415  (slow to import, seldom needed)

    fs, base = _file_system(str(storage))
    found = fs.get_file_info(FileSelector(base, allow_not_found=True))
    return sorted(info.base_name for info in found if info.type == FileType.Directory)


def slug(name: str) -> str:
    """Return a safe folder name for a study; different names have different ones.

    A name of small letters, digits, dots, dashes and underscores is kept. Any other is reduced to
    these characters, and a hash of the name is added.
    """
    if _SLUG.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:60]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain or 'study'}-{digest}"


@dataclass
class FolderStore:
    """A study in a local or shared folder."""

    folder: Path
    _compacted: int = 0  # bytes of the journal when it was compacted

    @property
    def location(self) -> str:
        """Path or URI of the study."""
        return str(self.folder)

    def record(self) -> Record:
        """Return the record that the journal leads to."""
        return read_record(self.folder)

    def holder(self) -> dict[str, Any]:
        """Return who writes the journal now."""
        path = self.folder / LOCK_FILE
        return read_holder(path) if is_held(path) else {}

    def fetch(self, who: Mapping[str, Any]) -> None:
        """Do nothing: the journal is written in place."""

    def push(self, size: int, closing: bool = False) -> None:
        """Compact a long journal that has grown, or ends; it is written in place."""
        if size >= _LONG and size > self._compacted * (1.0 if closing else _GROWTH):
            compact(self.folder)
            self._compacted = size


@dataclass
class RemoteStore:
    """A study behind a URI, spooled on this machine."""

    fs: FileSystem
    base: str  # path within `fs`
    location: str
    spool: Path
    _sent: int = 0  # bytes known to be uploaded
    _segment: int = 0  # first byte of the segment that is being written
    _claim: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Spool folder of this study."""
        return self.spool / hashlib.sha256(self.location.encode()).hexdigest()[:16]

    def read(self) -> Contents:
        """Return the contents of the journal as uploaded."""
        return parse_journal(self._download(), self.location)

    def record(self) -> Record:
        """Return the record that the journal leads to, as uploaded."""
        return Record.from_contents(self.read())

    def holder(self) -> dict[str, Any]:
        """Return who writes the journal now."""
        holder = self._read_holder()
        here = self._is_alive_here(holder)
        recent = time.time() - holder.get("beat", 0) < _STALE
        return holder if here or (here is None and recent) else {}

    def fetch(self, who: Mapping[str, Any]) -> None:
        """Copy the journal into the spool; bytes that were never uploaded are kept."""
        holder = self._read_holder()
        if holder.get("session") != who.get("session", "") and self._writes_on(holder):
            raise JournalError(
                f"study {self.location!r} is being run by pid {holder.get('driver')} on "
                f"{holder.get('host')}; wait until it ends, or use another name"
            )
        remote = self._download()
        path = self.folder / JOURNAL_FILE
        local = path.read_bytes() if path.exists() else b""
        if not local.startswith(remote):
            self._replace_spool(path, local, remote)
        elif len(local) > len(remote) > 0:
            logger.warning(
                "%s: %d bytes that had not been uploaded were found in %s",
                self.location,
                len(local) - len(remote),
                path,
            )
        self._sent = len(remote)
        self._segment = max((offset for offset, _ in self._segments()), default=0)
        epoch = holder.get("epoch", 0) + 1
        self._claim = {"host": socket.gethostname(), **who, "since": time.time(), "epoch": epoch}
        self._beat(closing=False)

    def push(self, size: int, closing: bool = False) -> None:
        """Upload new bytes, each time the whole current segment."""
        epoch = self._read_holder().get("epoch")
        if epoch != self._claim.get("epoch"):
            raise JournalError(
                f"{self.location}: another writer took over (epoch {epoch} after "
                f"{self._claim.get('epoch')}); this one stops"
            )
        with open(self.folder / JOURNAL_FILE, "rb") as file:
            while self._sent < size:
                end = min(self._segment + _SEGMENT, size)
                file.seek(self._segment)
                self._write(f"journal-{self._segment:016d}.jsonl", file.read(end - self._segment))
                self._sent = end
                if end == self._segment + _SEGMENT:
                    self._segment = end
        self._beat(closing)

    def _segments(self) -> list[tuple[int, str]]:
        from pyarrow.fs import FileSelector  # noqa: PLC0415  (slow to import, seldom needed)

        found = self.fs.get_file_info(FileSelector(self.base, allow_not_found=True))
        matches = [(re.fullmatch(r"journal-(\d{16})\.jsonl", i.base_name), i.path) for i in found]
        return sorted((int(match[1]), path) for match, path in matches if match)

    def _download(self) -> bytes:
        data = b""
        for offset, path in self._segments():
            if offset != len(data):
                raise JournalError(
                    f"{path}: begins at byte {offset}, but the segments before it end at byte "
                    f"{len(data)}: one is missing or cut; restore it from a backup"
                )
            with self.fs.open_input_stream(path) as stream:
                data += stream.read()
        return data

    def _replace_spool(self, path: Path, local: bytes, remote: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if local and not remote.startswith(local):
            aside = path.with_name(f"{path.name}.stale-{time.time_ns()}")
            aside.write_bytes(local)
            logger.warning(
                "%s: another machine continued it; the spool was moved to %s", self.location, aside
            )
        path.write_bytes(remote)

    def _read_holder(self) -> dict[str, Any]:
        try:
            with self.fs.open_input_stream(f"{self.base}/holder.json") as stream:
                return checked_holder(json.loads(stream.read()))
        except (OSError, ValueError):
            return {}

    def _is_alive_here(self, holder: Mapping[str, Any]) -> bool | None:
        """Whether a holder is at work; None where it runs on another machine."""
        if not holder or holder.get("closed"):
            return False
        if holder.get("host") != socket.gethostname():
            return None
        return "driver" in holder and process_is_alive(holder["driver"])

    def _writes_on(self, holder: Mapping[str, Any]) -> bool:
        """Whether a holder is at work; one on another machine is watched.

        Its heartbeat is only compared with itself: the clocks of two machines differ, and are set.
        """
        alive = self._is_alive_here(holder)
        if alive is not None:
            return alive
        logger.warning(
            "%s: looking for %g s whether pid %s on %s still writes to it",
            *(self.location, _STALE, holder.get("driver"), holder.get("host")),
        )
        end = time.monotonic() + _STALE
        while (now := self._read_holder() or holder) == holder and time.monotonic() < end:
            time.sleep(min(PUSH_SECONDS, _STALE) / 5)
        return now != holder and not now.get("closed")

    def _beat(self, closing: bool) -> None:
        holder = {**self._claim, "beat": time.time(), "closed": closing}
        self._write("holder.json", json.dumps(holder).encode())

    def _write(self, name: str, data: bytes) -> None:
        """Write an object atomically: on disks it is written aside and moved."""
        path = f"{self.base}/{name}"
        in_place = self.fs.type_name not in ("local", "subtree", "hdfs")
        target = path if in_place else f"{path}.tmp"
        self.fs.create_dir(self.base, recursive=True)
        with self.fs.open_output_stream(target) as stream:
            stream.write(data)
        if not in_place:
            self.fs.move(target, path)


def _is_uri(storage: str | os.PathLike[str]) -> bool:
    return isinstance(storage, str) and "://" in storage


def _file_system(uri: str) -> tuple[FileSystem, str]:
    from pyarrow import ArrowInvalid  # noqa: PLC0415  (slow to import, seldom needed)
    from pyarrow.fs import FileSystem  # noqa: PLC0415

    try:
        fs, base = FileSystem.from_uri(uri.rstrip("/"))
    except (ArrowInvalid, OSError, ValueError) as error:
        raise StudyError(
            f"storage {uri!r} cannot be opened: {error}; give a folder, or a URI that pyarrow.fs "
            "knows (s3://, gs://, hdfs://, file://)"
        ) from error
    return fs, base
