"""HDF5 files of one array per utterance: the arrays joined, and where each of them begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError

_CHUNK_VALUES = 2**16


class Layout(NamedTuple):
    """Names of the two arrays, and the type of the values; `content` names them in messages."""

    content: str
    offset: str
    value: str
    dtype: str


@contextmanager
def writing_arrays(
    path: Path, layout: Layout, **attributes: int
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write a new file; yields the function that appends the values of one utterance.

    For S utterances of N values in total, `layout.offset` is [S + 1] and `layout.value` [N]. Equal
    input gives equal bytes.
    """
    import h5py

    offset = [0]
    with h5py.File(path, "w") as file:
        file.attrs.update(attributes)
        values = file.create_dataset(
            layout.value,
            (0,),
            layout.dtype,
            maxshape=(None,),
            chunks=(_CHUNK_VALUES,),
            track_times=False,
        )

        def add(own: NDArray[Any]) -> None:
            offset.append(offset[-1] + len(own))
            values.resize(offset[-1], axis=0)
            values[offset[-2] :] = own

        yield add
        file.create_dataset(layout.offset, data=np.array(offset, "i8"), track_times=False)


class UtteranceArrays:
    """The arrays of `writing_arrays`, whose values are read on demand.

    length [S]: number of values of each utterance. Raises DataError if the file is damaged or has
    not all `attributes`, which are integers.
    """

    def __init__(self, path: Path, layout: Layout, *attributes: str) -> None:
        import h5py

        self.path = path
        try:
            file = h5py.File(path, "r")
            self._value = file[layout.value]
            self._offset = file[layout.offset][()].astype(np.int64)
            self.attributes = {name: int(file.attrs[name]) for name in attributes}
            if (np.diff(self._offset, prepend=0, append=len(self._value)) < 0).any():
                raise ValueError(f"{layout.offset} must rise to {len(self._value)}")
        except (OSError, KeyError, AttributeError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}: not a complete file of {layout.content} ({error}). "
                "Run python -m stages.prepare again."
            ) from None
        self.length = np.diff(self._offset)

    def values(self, index: int) -> NDArray[Any]:
        """The values of one utterance [value]."""
        start, stop = self._offset[index], self._offset[index + 1]
        values: NDArray[Any] = self._value[start:stop]
        return values
