"""Pickles read with a list of what they may name: any other pickle could run any code."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from raybo.benchmarks.problems.datasets import DatasetError

ARRAYS = {  # what a pickle of arrays names
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("_codecs", "encode"),
}


class _Restricted(pickle.Unpickler):
    """Reads plain values, and those of the allowed (module, name)."""

    def __init__(self, content: bytes, allowed: Collection[tuple[str, str]]) -> None:
        super().__init__(io.BytesIO(content))
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._allowed:
            raise DatasetError(
                f"a pickle names {module}.{name}; it may hold plain values"
                f"{' and arrays' if self._allowed else ' only'}"
            )
        # The name of the module in numpy 2, whose older one warns.
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def read_plain(content: bytes, allowed: Collection[tuple[str, str]] = ()) -> Any:
    """Return the dicts, lists, texts and numbers of a pickle; DatasetError if it has others."""
    return _Restricted(content, allowed).load()


def read_arrays(path: Path) -> list[Any]:
    """Return the arrays in the first array of objects of an npz file."""
    with np.load(path) as archive:
        content = archive.zip.read(f"{archive.files[0]}.npy")
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    np.lib.format.read_array_header_1_0(stream)
    return list(read_plain(content[stream.tell() :], ARRAYS))
