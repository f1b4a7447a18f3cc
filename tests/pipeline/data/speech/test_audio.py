from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from pipeline.data.speech.audio import FAULTS, NOTES, read_audio


def _tone(rate_hz: int, seconds: float = 1.0, loudness: float = 0.3) -> NDArray[np.float32]:
    time = np.arange(round(rate_hz * seconds)) / rate_hz
    return (loudness * np.sin(2 * np.pi * 300 * time)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "rate_hz", "channels", "subtype"),
    [
        ("plain.wav", 8000, 1, "PCM_16"),
        ("cd.wav", 44100, 2, "PCM_24"),
        ("read.flac", 16000, 1, "PCM_16"),
        ("clip.mp3", 24000, 1, None),
    ],
)
def test_every_format_gives_the_same_tone(
    tmp_path: Path, name: str, rate_hz: int, channels: int, subtype: str | None
) -> None:
    path = tmp_path / name
    sound = np.stack([_tone(rate_hz)] * channels, axis=1)
    soundfile.write(path, sound, rate_hz, subtype=subtype)
    audio = read_audio(path, 8000)
    assert audio.fault is None
    assert ("mixed_down" in audio.notes) == (channels == 2)
    assert ("resampled" in audio.notes) == (rate_hz != 8000)
    assert abs(len(audio.samples) - 8000) <= 1
    middle = slice(1000, 7000)
    # MP3 is lossy and can be shifted by a sample or two.
    tolerance = 0.1 if name.endswith("mp3") else 0.01
    assert np.abs(audio.samples[middle] - _tone(8000)[middle]).max() < tolerance


@pytest.mark.parametrize("name", ["cut.flac", "cut.mp3", "cut.wav"])
def test_truncated_files_are_faulty_and_have_no_samples(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    soundfile.write(path, _tone(16000, 2), 16000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    audio = read_audio(path, 8000)
    assert audio.fault in ("cut_off", "unreadable")
    assert not len(audio.samples)


def test_file_without_audio_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("turn the lamp on\n")
    (tmp_path / "nothing.wav").write_bytes(b"")
    soundfile.write(tmp_path / "no_samples.wav", _tone(8000, 0), 8000)
    faults = {path.stem: read_audio(path, 8000).fault for path in tmp_path.iterdir()}
    assert faults == {"text": "unreadable", "nothing": "empty", "no_samples": "empty"}
    assert read_audio(tmp_path / "absent.wav", 8000).fault == "unreadable"
    assert set(faults.values()) <= set(FAULTS)


def test_clipped_audio_is_used_and_flagged(tmp_path: Path) -> None:
    path = tmp_path / "loud.wav"
    soundfile.write(path, np.clip(_tone(8000, 1, 3), -1, 1), 8000)
    audio = read_audio(path, 8000)
    assert (audio.fault, audio.notes) == (None, ("clipped",))
    assert set(audio.notes) <= set(NOTES)
    assert len(audio.samples) == 8000


def test_segment_is_cut_out_and_must_be_within_the_file(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    sound = np.concatenate([np.zeros(8000, dtype=np.float32), _tone(8000)])
    soundfile.write(path, sound, 8000)
    assert np.abs(read_audio(path, 8000, 1.0, 1.5).samples - _tone(8000, 0.5)).max() < 1e-3
    assert len(read_audio(path, 8000, 1.0, 2.05).samples) == 8000
    assert read_audio(path, 8000, 1.0, 4.0).fault == "cut_off"
    assert read_audio(path, 8000, 9.0, 9.5).fault == "cut_off"
