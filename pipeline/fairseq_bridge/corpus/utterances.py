"""The features of a set of utterances in an HDF5 file, read one utterance at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError

Features = NDArray[np.float32]


class UtteranceFile:
    """Features and, of a set for training, target units; S utterances of F frames in all.

    The file: `/utterance/frame_offset` [S + 1], `/frame/feature` [F, bin] and, where there are
    targets, `/utterance/token_offset` [S + 1] and `/token/id` [T] without EOS. In memory are
    n_frame [S], n_token [S] (0 without targets) and token_id [T]; frames are read when asked for.
    Raises DataError where the file is none such.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = path
        try:
            self._file = h5py.File(path, "r")
            self._feature = self._file["/frame/feature"]
            self.feature_bins = int(self._feature.shape[1])
            self._frame_offset = self._offsets("/utterance/frame_offset", len(self._feature))
            self.token_id = np.empty(0, np.int32)
            token_offset = np.zeros_like(self._frame_offset)
            if "token" in self._file:
                self.token_id = self._file["/token/id"][()]
                token_offset = self._offsets("/utterance/token_offset", len(self.token_id))
        except (OSError, KeyError, AttributeError, IndexError, ValueError) as error:
            raise DataError(f"{path} must be a whole file of utterances, got {error}") from None
        self._token_offset = token_offset
        self.n_frame = np.diff(self._frame_offset)
        self.n_token = np.diff(token_offset)

    def __len__(self) -> int:
        return len(self.n_frame)

    def features(self, place: int) -> Features:
        """The frames of an utterance [frame, bin].

        Raises DataError where a value is not finite, or the file does not have that utterance.
        """
        if not 0 <= place < len(self):
            raise DataError(f"{self.path} must hold utterance {place}, got {len(self)} utterances")
        start, stop = self._frame_offset[place], self._frame_offset[place + 1]
        found: Features = self._feature[start:stop].astype(np.float32, copy=False)
        if not np.isfinite(found).all():
            raise DataError(f"{self.path}: the features of utterance {place} must be finite")
        return found

    def tokens(self, place: int) -> NDArray[np.int64]:
        """The target units of an utterance [token], without EOS."""
        start, stop = self._token_offset[place], self._token_offset[place + 1]
        found: NDArray[np.int64] = self.token_id[start:stop].astype(np.int64)
        return found

    def _offsets(self, name: str, total: int) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = self._file[name][()].astype(np.int64)
        if offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 0).any():
            raise ValueError(f"{name} that does not go from 0 up to {total}")
        return offsets
