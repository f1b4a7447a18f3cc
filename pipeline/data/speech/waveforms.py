"""Waveforms of utterances in an HDF5 file, for models that compute their own features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.data.speech.utterance_arrays import Layout, UtteranceArrays, writing_arrays

Waveform = NDArray[np.float32]

_LAYOUT = Layout("waveforms", "/utterance/sample_offset", "/sample/value", "f4")
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
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing_arrays(path, _LAYOUT, sampling_rate_hz=sampling_rate_hz) as add:
        yield add


class WaveformFile:
    """The waveforms of `writing_waveforms`, which are read on demand.

    n_frame [S]: number of 10 ms in each utterance. Raises DataError if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = UtteranceArrays(path, _LAYOUT, "sampling_rate_hz")
        self.sampling_rate_hz = rate = self._file.attributes["sampling_rate_hz"]
        n_sample = self._file.length
        self.n_frame = np.array([count_frames(int(number), rate) for number in n_sample], np.int64)

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether the file holds waveforms, rather than features or nothing that can be read."""
        import h5py

        try:
            with h5py.File(path, "r") as file:
                return _LAYOUT.value in file
        except OSError:
            return False

    def __len__(self) -> int:
        return len(self.n_frame)

    def samples(self, index: int) -> Waveform:
        """Samples of one utterance [sample] in [-1, 1]."""
        return self._file.values(index)
