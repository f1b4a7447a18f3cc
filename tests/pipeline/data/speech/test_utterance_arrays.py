"""Files of one array per utterance come back as they were written, or are refused."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from pipeline.data.speech.utterance_arrays import Layout, UtteranceArrays, writing_arrays
from pipeline.errors import DataError

LAYOUT = Layout("numbers", "/utterance/offset", "/number/value", "i4")
ARRAYS = ([3, 1, 2], [], [7])


def written(path: Path) -> Path:
    with writing_arrays(path, LAYOUT, rate=8) as add:
        for array in ARRAYS:
            add(np.array(array, "i4"))
    return path


def test_arrays_come_back_one_by_one_with_their_attributes(tmp_path: Path) -> None:
    arrays = UtteranceArrays(written(tmp_path / "a.h5"), LAYOUT, "rate")
    assert [arrays.values(index).tolist() for index in range(3)] == [[3, 1, 2], [], [7]]
    assert arrays.length.tolist() == [3, 0, 1]
    assert arrays.attributes == {"rate": 8}
    assert (tmp_path / "a.h5").read_bytes() == written(tmp_path / "b.h5").read_bytes()


def test_a_damaged_file_is_named_with_its_content(tmp_path: Path) -> None:
    path = written(tmp_path / "a.h5")
    with h5py.File(path, "a") as file:
        file[LAYOUT.offset][1] = 5
    with pytest.raises(DataError, match=r"a\.h5: not a complete file of numbers .*must rise to 4"):
        UtteranceArrays(path, LAYOUT)
    with pytest.raises(DataError, match="not a complete file of numbers"):
        UtteranceArrays(written(tmp_path / "b.h5"), LAYOUT, "another")
