"""The features of a set in one HDF5 file, written utterance by utterance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.data.speech.features import FRAME_SHIFT_SECONDS, FeatureSettings

if TYPE_CHECKING:
    import h5py

# Frames that are gathered before they are written.
_BLOCK_FRAMES = 16384


class FeatureFile:
    """An open file of features; see `writing_features`."""

    def __init__(self, file: h5py.File, bins: int, *, with_tokens: bool) -> None:
        chunk = (_BLOCK_FRAMES // 16, bins)
        self._file = file
        self._frames = file.create_dataset(
            "/frame/feature",
            (0, bins),
            "f4",
            maxshape=(None, bins),
            chunks=chunk,
            track_times=False,
        )
        self._waiting: list[NDArray[np.float32]] = []
        self._tokens: list[int] = []
        self._frame_offset, self._token_offset = [0], [0]
        self._with_tokens = with_tokens

    def add(self, frames: NDArray[np.float32], tokens: Sequence[int] = ()) -> None:
        """Add an utterance: features [frame, bin], perhaps of no frame; its target units."""
        self._waiting.append(frames)
        self._frame_offset.append(self._frame_offset[-1] + len(frames))
        self._tokens += tokens
        self._token_offset.append(len(self._tokens))
        if self._frame_offset[-1] - len(self._frames) >= _BLOCK_FRAMES:
            self._flush()

    def finish(self) -> None:
        """Write what waits, and where utterances begin."""
        self._flush()
        self._write("/utterance/frame_offset", self._frame_offset, "i8")
        if self._with_tokens:
            self._write("/utterance/token_offset", self._token_offset, "i8")
            self._write("/token/id", self._tokens, "i4")

    def _write(self, name: str, values: list[int], dtype: str) -> None:
        data = np.array(values, dtype=dtype)
        self._file.create_dataset(name, data=data, track_times=False)

    def _flush(self) -> None:
        if self._waiting:
            written = len(self._frames)
            self._frames.resize(self._frame_offset[-1], axis=0)
            self._frames[written:] = np.concatenate(self._waiting)
            self._waiting.clear()


@contextmanager
def writing_features(
    path: Path, settings: FeatureSettings, *, with_tokens: bool
) -> Iterator[FeatureFile]:
    """A new HDF5 file: /frame/feature [frame, bin], /utterance/frame_offset [utterance + 1].

    With tokens also /utterance/token_offset and /token/id. Attributes: feature_bins, sampling rate
    and frame shift. The same input gives the same bytes.
    """
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.attrs["feature_bins"] = settings.bins
        file.attrs["frame_shift_seconds"] = FRAME_SHIFT_SECONDS
        file.attrs["sampling_rate_hz"] = settings.sampling_rate_hz
        features = FeatureFile(file, settings.bins, with_tokens=with_tokens)
        yield features
        features.finish()
