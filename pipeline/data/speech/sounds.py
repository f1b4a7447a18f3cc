"""The sound of test utterances as MP3, small enough to be embedded in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError

_OFFSET, _BYTE = "/utterance/sound_offset", "/sound/byte"
_CHUNK_BYTES = 2**16
_RATES_HZ = (8000, 16000)
_COMPRESSION = 0.9  # of 0 to 1: 2 kB per second at 8 kHz


@contextmanager
def writing_sounds(
    path: Path, sampling_rate_hz: int
) -> Iterator[Callable[[NDArray[np.float32]], None]]:
    """Write a new file of sounds; yields the function that appends one, possibly empty.

    File format for S utterances of N bytes in total: `/utterance/sound_offset` [S + 1] and
    `/sound/byte` [N], which holds one MP3 file per utterance, and nothing for an empty one.
    """
    import h5py

    offset = [0]
    with h5py.File(path, "w") as file:
        values = file.create_dataset(
            _BYTE, (0,), "u1", maxshape=(None,), chunks=(_CHUNK_BYTES,), track_times=False
        )

        def add(samples: NDArray[np.float32]) -> None:
            sound = np.frombuffer(_mp3(samples, sampling_rate_hz), "u1")
            offset.append(offset[-1] + len(sound))
            values.resize(offset[-1], axis=0)
            values[offset[-2] :] = sound

        yield add
        file.create_dataset(_OFFSET, data=np.array(offset, "i8"), track_times=False)


def _mp3(samples: NDArray[np.float32], sampling_rate_hz: int) -> bytes:
    import soundfile
    import soxr

    if not len(samples):
        return b""
    rate_hz = next((rate for rate in _RATES_HZ if rate >= sampling_rate_hz), _RATES_HZ[-1])
    if rate_hz != sampling_rate_hz:
        samples = soxr.resample(samples, sampling_rate_hz, rate_hz)
    file = BytesIO()
    soundfile.write(
        file,
        samples,
        rate_hz,
        format="MP3",
        subtype="MPEG_LAYER_III",
        bitrate_mode="CONSTANT",
        compression_level=_COMPRESSION,
    )
    return file.getvalue()


class SoundFile:
    """The sounds of `writing_sounds`, which are read on demand.

    n_byte [S]: size of each sound. Raises DataError if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        try:
            file = h5py.File(path, "r")
            self._byte = file[_BYTE]
            self._offset = file[_OFFSET][()].astype(np.int64)
            if (np.diff(self._offset, prepend=0, append=len(self._byte)) < 0).any():
                raise ValueError(f"{_OFFSET} must rise to {len(self._byte)}")
        except (OSError, KeyError, AttributeError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}: not a complete file of sounds ({error}). "
                "Run python -m stages.prepare again."
            ) from None
        self.n_byte = np.diff(self._offset)

    def mp3(self, index: int) -> bytes:
        """The sound of one utterance; empty if its audio was faulty."""
        start, stop = self._offset[index], self._offset[index + 1]
        sound: bytes = self._byte[start:stop].tobytes()
        return sound
