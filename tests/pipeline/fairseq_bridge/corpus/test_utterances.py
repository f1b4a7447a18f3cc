from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.fairseq_bridge.corpus.utterances import UtteranceFile
from tests.speech_toy import write_features

FEATURES = [np.full((length, 3), length, np.float32) for length in (2, 0, 5)]


def test_each_utterance_has_its_own_frames_and_tokens(tmp_path: Path) -> None:
    write_features(tmp_path / "a.h5", FEATURES, [[4, 5], [], [6]])
    utterances = UtteranceFile(tmp_path / "a.h5")
    assert (len(utterances), utterances.feature_bins) == (3, 3)
    assert utterances.n_frame.tolist() == [2, 0, 5]
    assert utterances.n_token.tolist() == [2, 0, 1]
    for index, features in enumerate(FEATURES):
        assert np.array_equal(utterances.features(index), features)
    assert [utterances.tokens(index).tolist() for index in range(3)] == [[4, 5], [], [6]]
    with pytest.raises(DataError, match=r"no utterance 3 \(it has 3 utterances"):
        utterances.features(3)


def test_a_test_set_has_no_target_tokens(tmp_path: Path) -> None:
    write_features(tmp_path / "a.h5", FEATURES, [], with_targets=False)
    assert UtteranceFile(tmp_path / "a.h5").n_token.tolist() == [0, 0, 0]


def test_features_that_are_not_finite_are_rejected(tmp_path: Path) -> None:
    features = [np.zeros((2, 3)), np.full((2, 3), np.nan)]
    write_features(tmp_path / "a.h5", features, [], with_targets=False)
    utterances = UtteranceFile(tmp_path / "a.h5")
    assert not utterances.features(0).any()
    with pytest.raises(DataError, match=r"a\.h5: features of utterance 1 must be finite"):
        utterances.features(1)


def _without(name: str) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file[name]

    return change


def _shorter(file: Any) -> None:
    file["/utterance/frame_offset"][-1] = 6


def _backwards(file: Any) -> None:
    file["/utterance/frame_offset"][1] = 3


@pytest.mark.parametrize(
    "change",
    [_without("/frame/feature"), _without("/utterance/token_offset"), _shorter, _backwards],
)
def test_damaged_files_are_rejected(tmp_path: Path, change: Callable[[Any], None]) -> None:
    path = tmp_path / "a.h5"
    write_features(path, FEATURES, [[4, 5], [], [6]])
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(DataError, match=r"a\.h5: not a complete file of utterances"):
        UtteranceFile(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"a\.h5: not a complete file of utterances"):
        UtteranceFile(path)
