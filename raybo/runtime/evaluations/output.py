"""What objectives print: marked with its trial, and kept in the folder of the study."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

OUTPUT_FOLDER = "output"
MAX_CHARACTERS = 2**20  # of a trial that are kept


@contextlib.contextmanager
def output_of(number: int, study: str | None) -> Iterator[None]:
    """Mark what is printed meanwhile with the trial, and append it to OUTPUT_FOLDER/NUMBER.txt.

    Nothing is kept where this machine does not see `study`, the folder of the study. What a
    library writes past Python's streams is neither marked nor kept. Where the streams are shared
    (`share_streams`), only what this coroutine prints is marked.
    """
    with contextlib.ExitStack() as stack:
        kept = _Kept(study, number)
        stack.callback(kept.close)
        for name, redirect in _REDIRECTS.items():
            stream = getattr(sys, name)
            if isinstance(stream, _Shared):
                stream.current.set(_Marked(stream.own, f"trial {number} | ", kept))
            else:
                stack.enter_context(redirect(_Marked(stream, f"trial {number} | ", kept)))
        yield


_REDIRECTS = {"stdout": contextlib.redirect_stdout, "stderr": contextlib.redirect_stderr}


def share_streams() -> None:
    """Have each coroutine of this process print to a stream of its trial, for `output_of`."""
    for name in _REDIRECTS:
        setattr(sys, name, _Shared(getattr(sys, name)))


class _Kept:
    """The file of a trial, which is made by the first write."""

    def __init__(self, study: str | None, number: int) -> None:
        self._study, self._number = study, number
        self._file: TextIO | None = None
        self._room = MAX_CHARACTERS

    def write(self, text: str) -> None:
        if self._study is None or not self._room:
            return
        try:
            if self._file is None and Path(self._study).is_dir():
                path = Path(self._study, OUTPUT_FOLDER, f"{self._number}.txt")
                path.parent.mkdir(exist_ok=True)
                self._file = path.open("a", encoding="utf-8", errors="backslashreplace")
            if self._file is not None:
                self._file.write(text[: self._room])
                self._file.flush()
                self._room -= min(self._room, len(text))
        except OSError:  # a full disk must not fail the trial
            self._study = None

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


class _Shared(io.TextIOBase):
    """Passes text on to the stream of the coroutine that writes, or to `own`."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.current: ContextVar[Any] = ContextVar("stream", default=own)

    def write(self, text: str) -> int:
        self.current.get().write(text)  # Ray's own stream returns nothing
        return len(text)

    def flush(self) -> None:
        self.current.get().flush()

    def fileno(self) -> int:
        return int(self.own.fileno())


class _Marked(io.TextIOBase):
    """Passes text on to `stream` with a mark before each line."""

    def __init__(self, stream: Any, mark: str, kept: _Kept) -> None:
        self._stream, self._mark, self._kept = stream, mark, kept
        self._in_line = False

    def write(self, text: str) -> int:
        self._kept.write(text)
        for line in text.splitlines(keepends=True):
            self._stream.write(line if self._in_line else self._mark + line)
            self._in_line = not line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def close(self) -> None:
        """Stay open: the process serves other trials."""
