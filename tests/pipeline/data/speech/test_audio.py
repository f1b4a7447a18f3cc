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
        ("call.sph", 8000, 2, "PCM_16"),
    ],
)
def test_every_format_gives_the_same_tone(
    tmp_path: Path, name: str, rate_hz: int, channels: int, subtype: str | None
) -> None:
    path = tmp_path / name
    sound = np.stack([_tone(rate_hz)] * channels, axis=1)
    container = "NIST" if name.endswith("sph") else None
    soundfile.write(path, sound, rate_hz, subtype=subtype, format=container)
    audio = read_audio(path, 8000)
    assert audio.fault is None
    assert ("mixed_down" in audio.notes) == (channels == 2)
    assert ("resampled" in audio.notes) == (rate_hz != 8000)
    assert abs(len(audio.samples) - 8000) <= 1
    middle = slice(1000, 7000)
    # MP3 is lossy and can be shifted by a sample or two.
    tolerance = 0.1 if name.endswith("mp3") else 0.01
    assert np.abs(audio.samples[middle] - _tone(8000)[middle]).max() < tolerance


@pytest.mark.parametrize("name", ["cut.flac", "cut.mp3", "cut.wav", "cut.sph"])
def test_truncated_files_are_faulty_and_have_no_samples(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    container = "NIST" if name.endswith("sph") else None
    soundfile.write(path, _tone(16000, 2), 16000, format=container)
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


def _remove_length(path: Path) -> None:
    """Remove the number of samples from the header of a FLAC file, as programs that stream do."""
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0  # the upper 4 of 36 bits
    content[22:26] = bytes(4)
    path.write_bytes(content)


def test_flac_without_length_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "streamed.flac"
    sound = _tone(16000, 20)
    soundfile.write(path, sound, 16000)
    _remove_length(path)
    with soundfile.SoundFile(path) as file:
        assert file.frames == 2**63 - 1
    audio = read_audio(path, 16000)
    assert audio.fault is None
    assert np.abs(audio.samples - sound).max() < 1e-4
    end = read_audio(path, 16000, 19.5, 20.05)
    assert (end.fault, len(end.samples)) == (None, 8000)
    assert np.abs(end.samples - sound[-8000:]).max() < 1e-4
    assert read_audio(path, 16000, 19.5, 22.0).fault == "cut_off"
    assert read_audio(path, 16000, 30.0, 31.0).fault == "cut_off"


def test_sphere_with_shorten_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.sph"
    soundfile.write(path, _tone(8000), 8000, format="NIST")
    coding = b"sample_coding -s3 pcm\n"
    content = path.read_bytes()
    assert coding in content
    path.write_bytes(content.replace(coding, b"sample_coding -s26 pcm,embedded-shorten-v2.00\n"))
    assert read_audio(path, 8000).fault == "shortened"


@pytest.mark.parametrize(
    ("channel", "place"), [("1", 0), ("A", 0), ("2", 1), ("b", 1), ("3", None), ("inLine", None)]
)
def test_channel_is_selected(tmp_path: Path, channel: str, place: int | None) -> None:
    path = tmp_path / "call.wav"
    sides = np.stack([_tone(8000), _tone(8000, loudness=0.1)], axis=1)
    soundfile.write(path, sides, 8000)
    audio = read_audio(path, 8000, channel=channel)
    if place is None:
        assert audio.fault == "no_channel"
    else:
        assert (audio.fault, audio.notes) == (None, ())
        assert np.abs(audio.samples - sides[:, place]).max() < 1e-3


def test_only_channel_is_used_whatever_its_name(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "one.wav", _tone(8000), 8000)
    assert len(read_audio(tmp_path / "one.wav", 8000, channel="B").samples) == 8000
