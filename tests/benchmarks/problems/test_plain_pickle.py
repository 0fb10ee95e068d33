from __future__ import annotations

import pickle
from datetime import date

import numpy as np
import pytest

from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.plain_pickle import read_arrays, read_plain


def test_a_pickle_of_anything_but_plain_values_is_refused() -> None:
    assert read_plain(pickle.dumps({"a": [1.5, "b"]})) == {"a": [1.5, "b"]}
    with pytest.raises(DatasetError, match=r"datetime\.date"):
        read_plain(pickle.dumps({"a": date(2020, 1, 1)}))


def test_arrays_of_an_npz_are_read_and_other_objects_refused(tmp_path) -> None:
    path = tmp_path / "policy.npz"
    objects = np.empty(2, dtype=object)
    objects[:] = [np.arange(6.0).reshape(2, 3), np.ones(4)]
    # As numpy 1 wrote them: protocol 2, and the older name of a module.
    content = pickle.dumps(objects, protocol=2).replace(b"numpy._core", b"numpy.core")
    _write(path, content)
    first, second = read_arrays(path)
    assert np.array_equal(first, np.arange(6.0).reshape(2, 3))
    assert np.array_equal(second, np.ones(4))
    objects[1] = date(2020, 1, 1)
    _write(path, pickle.dumps(objects, protocol=2).replace(b"numpy._core", b"numpy.core"))
    with pytest.raises(DatasetError, match=r"datetime\.date"):
        read_arrays(path)


def _write(path, content: bytes) -> None:
    import io
    import zipfile

    stream = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": (2,)}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("arr_0.npy", stream.getvalue() + content)
