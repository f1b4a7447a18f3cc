from __future__ import annotations

import time
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from pipeline.data.speech.audio import FeatureSettings, features, writing_features

_PLAIN = FeatureSettings(8000, 40)


def _noise(seconds: float, seed: int = 0) -> NDArray[np.float32]:
    chance = np.random.default_rng(seed)
    return (0.1 * chance.standard_normal(round(8000 * seconds))).astype(np.float32)


def test_frames_have_10_ms_and_are_normalised_per_utterance() -> None:
    frames = features(_noise(1.5), _PLAIN)
    assert (frames.shape, frames.dtype) == ((150, 40), np.float32)
    np.testing.assert_allclose(frames.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(frames.std(axis=0), 1, atol=1e-3)


def test_loudness_does_not_change_the_features() -> None:
    quiet, loud = features(_noise(1) / 4, _PLAIN), features(_noise(1), _PLAIN)
    np.testing.assert_allclose(quiet, loud, atol=1e-2)


def test_silence_gives_zeros_and_no_nan() -> None:
    np.testing.assert_allclose(features(np.zeros(4000, dtype=np.float32), _PLAIN), 0, atol=0.01)


def test_low_tones_are_in_low_bins() -> None:
    time = np.arange(4000) / 8000
    low, high = (np.sin(2 * np.pi * pitch * time) for pitch in (300, 3000))
    frames = features(np.concatenate([low, high]).astype(np.float32), _PLAIN)
    rise = frames[50:].mean(axis=0) - frames[:50].mean(axis=0)
    assert rise[:8].mean() < 0 < rise[-12:].mean()


def test_file_restores_the_features_and_repeats_bit_by_bit(tmp_path: Path) -> None:
    utterances = [features(_noise(seconds), _PLAIN) for seconds in (0.5, 200, 0.3)]
    utterances.insert(1, np.zeros((0, 40), dtype=np.float32))
    for name in ("a.h5", "b.h5"):
        time.sleep(1.1)  # HDF5 stores times in seconds
        with writing_features(tmp_path / name, _PLAIN, with_tokens=True) as file:
            for number, frames in enumerate(utterances):
                file.add(frames, [4] * number)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    with h5py.File(tmp_path / "a.h5") as file:
        offset = file["/utterance/frame_offset"][:]
        assert offset.tolist() == [0, 50, 50, 20050, 20080]
        np.testing.assert_array_equal(file["/frame/feature"][:], np.concatenate(utterances))
        assert file["/utterance/token_offset"][:].tolist() == [0, 0, 1, 3, 6]
        assert file["/token/id"].dtype == np.int32
        assert dict(file.attrs) == {
            "feature_bins": 40,
            "frame_shift_seconds": 0.01,
            "sampling_rate_hz": 8000,
        }
