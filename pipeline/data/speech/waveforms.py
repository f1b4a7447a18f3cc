"""Waveforms of utterances in an HDF5 file, for models that compute their own features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError

Waveform = NDArray[np.float32]

_OFFSET, _SAMPLE = "/utterance/sample_offset", "/sample/value"
_CHUNK_SAMPLES = 2**16
_FRAMES_PER_SECOND = 100


def count_frames(n_sample: int, sampling_rate_hz: int) -> int:
    """Number of frames of 10 ms that begin within n_sample samples."""
    return -(-n_sample * _FRAMES_PER_SECOND // sampling_rate_hz)


@contextmanager
def writing_waveforms(path: Path, sampling_rate_hz: int) -> Iterator[Callable[[Waveform], None]]:
    """Write a new file of waveforms; yields the function that appends one, possibly empty.

    File format for S utterances of N samples in total: `/utterance/sample_offset` [S + 1] and
    `/sample/value` [N] in [-1, 1]; attribute sampling_rate_hz. Equal input gives equal bytes.
    """
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    offset = [0]
    with h5py.File(path, "w") as file:
        file.attrs["sampling_rate_hz"] = sampling_rate_hz
        values = file.create_dataset(
            _SAMPLE, (0,), "f4", maxshape=(None,), chunks=(_CHUNK_SAMPLES,), track_times=False
        )

        def add(waveform: Waveform) -> None:
            offset.append(offset[-1] + len(waveform))
            values.resize(offset[-1], axis=0)
            values[offset[-2] :] = waveform

        yield add
        file.create_dataset(_OFFSET, data=np.array(offset, "i8"), track_times=False)


class WaveformFile:
    """The waveforms of `writing_waveforms`, which are read on demand.

    n_frame [S]: number of 10 ms in each utterance. Raises DataError if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = path
        try:
            self._file = h5py.File(path, "r")
            self._value = self._file[_SAMPLE]
            self._offset = self._file[_OFFSET][()].astype(np.int64)
            self.sampling_rate_hz = int(self._file.attrs["sampling_rate_hz"])
            if (np.diff(self._offset, prepend=0, append=len(self._value)) < 0).any():
                raise ValueError(f"{_OFFSET} must rise to {len(self._value)}")
        except (OSError, KeyError, AttributeError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}: not a complete file of waveforms ({error}). "
                "Run python -m stages.prepare again."
            ) from None
        n_sample = np.diff(self._offset)
        rate = self.sampling_rate_hz
        self.n_frame = np.array([count_frames(int(number), rate) for number in n_sample], np.int64)

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether the file holds waveforms, rather than features or nothing that can be read."""
        import h5py

        try:
            with h5py.File(path, "r") as file:
                return _SAMPLE in file
        except OSError:
            return False

    def __len__(self) -> int:
        return len(self.n_frame)

    def samples(self, index: int) -> Waveform:
        """Samples of one utterance [sample] in [-1, 1]."""
        start, stop = self._offset[index], self._offset[index + 1]
        samples: Waveform = self._value[start:stop]
        return samples
