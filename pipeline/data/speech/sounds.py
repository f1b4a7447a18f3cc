"""The sound of test utterances as MP3, small enough to be embedded in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.data.speech.utterance_arrays import Layout, UtteranceArrays, writing_arrays

_LAYOUT = Layout("sounds", "/utterance/sound_offset", "/sound/byte", "u1")
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
    with writing_arrays(path, _LAYOUT) as add:
        yield lambda samples: add(np.frombuffer(_mp3(samples, sampling_rate_hz), "u1"))


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
        self._file = UtteranceArrays(path, _LAYOUT)
        self.n_byte = self._file.length

    def mp3(self, index: int) -> bytes:
        """The sound of one utterance; empty if its audio was faulty."""
        return self._file.values(index).tobytes()
