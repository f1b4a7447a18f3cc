"""Features of utterances in an HDF5 file, read one utterance at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError

Features = NDArray[np.float32]


class UtteranceFile:
    """S utterances of F frames in total, with target tokens if the set is for training.

    File format: `/utterance/frame_offset` [S + 1] and `/frame/feature` [F, bin]; with targets also
    `/utterance/token_offset` [S + 1] and `/token/id` [T], without EOS. `n_frame` [S], `n_token` [S]
    (0 without targets) and `token_id` [T] are kept in memory; frames are read on demand. Raises
    DataError if the file is damaged or has another format.
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
            raise DataError(
                f"{path}: not a complete file of utterances ({error}). "
                "Run python -m stages.prepare again."
            ) from None
        self._token_offset = token_offset
        self.n_frame = np.diff(self._frame_offset)
        self.n_token = np.diff(token_offset)

    def __len__(self) -> int:
        return len(self.n_frame)

    def features(self, index: int) -> Features:
        """Features of one utterance [frame, bin].

        Raises DataError if a value is not finite or there is no such utterance.
        """
        if not 0 <= index < len(self):
            raise DataError(
                f"{self.path}: no utterance {index} (it has {len(self)} utterances). "
                "Run python -m stages.prepare again."
            )
        start, stop = self._frame_offset[index], self._frame_offset[index + 1]
        features: Features = self._feature[start:stop].astype(np.float32, copy=False)
        if not np.isfinite(features).all():
            raise DataError(
                f"{self.path}: features of utterance {index} must be finite. "
                "Run python -m stages.prepare again."
            )
        return features

    def tokens(self, index: int) -> NDArray[np.int64]:
        """Target token ids of one utterance [token], without EOS."""
        start, stop = self._token_offset[index], self._token_offset[index + 1]
        tokens: NDArray[np.int64] = self.token_id[start:stop].astype(np.int64)
        return tokens

    def _offsets(self, name: str, total: int) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = self._file[name][()].astype(np.int64)
        if offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 0).any():
            raise ValueError(f"{name} must rise from 0 to {total}")
        return offsets
