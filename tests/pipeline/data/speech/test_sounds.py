from __future__ import annotations

import io
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile

from pipeline.data.speech.corpus import SpeechCorpus, Utterance
from pipeline.data.speech.prepared import write_test_set
from pipeline.data.speech.sounds import SoundFile, writing_sounds
from pipeline.data.task_subwords import Words
from pipeline.errors import DataError
from pipeline.run.settings import SpeechDataConfig
from tests.pipeline.data.speech.conftest import WriteAudio


def _write(path: Path, rate_hz: int) -> None:
    time = np.arange(rate_hz, dtype=np.float32) / rate_hz
    with writing_sounds(path, rate_hz) as add:
        for waveform in (0.5 * np.sin(2 * np.pi * 440 * time), time[:0], time[: rate_hz // 2]):
            add(waveform.astype(np.float32))


@pytest.mark.parametrize(
    ("rate_hz", "expected_hz"), [(8000, 8000), (10000, 16000), (16000, 16000), (44100, 16000)]
)
def test_sounds_are_small_mp3_files(tmp_path: Path, rate_hz: int, expected_hz: int) -> None:
    _write(tmp_path / "a.h5", rate_hz)
    sounds = SoundFile(tmp_path / "a.h5")
    samples, actual_hz = soundfile.read(io.BytesIO(sounds.mp3(0)))
    assert actual_hz == expected_hz
    assert len(samples) / actual_hz == pytest.approx(1, abs=0.2)
    spectrum = np.abs(np.fft.rfft(samples))
    assert np.argmax(spectrum) * actual_hz / len(samples) == pytest.approx(440, abs=2)
    assert sounds.n_byte.tolist() == [len(sounds.mp3(0)), 0, len(sounds.mp3(2))]
    assert sounds.mp3(1) == b""
    assert sounds.n_byte[0] < 4000
    _write(tmp_path / "b.h5", rate_hz)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_a_damaged_file_of_sounds_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "a.h5", 8000)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["/utterance/sound_offset"][-1] += 1
    with pytest.raises(DataError, match=r"a\.h5: not a complete file of sounds .*stages\.prepare"):
        SoundFile(tmp_path / "a.h5")


def test_a_test_set_keeps_the_sound_of_its_utterances(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    write_audio(tmp_path / "a.wav", 1)
    (tmp_path / "b.wav").write_bytes(b"not audio")
    corpus = SpeechCorpus(
        "n", "l", "d", tmp_path, [Utterance("b.wav", "two"), Utterance("a.wav", "one")]
    )
    speech = SpeechDataConfig(
        sampling_rate_hz=8000, feature_bins=40, shortest_seconds=0.1, longest_seconds=36.0
    )
    write_test_set(tmp_path / "test", "X", corpus, speech, Words(), keep_sound=True)
    faulty, good = SoundFile(tmp_path / "test" / "X.sounds.h5").n_byte
    assert faulty == 0
    assert good > 1000
    write_test_set(tmp_path / "dev", "X", corpus, speech, Words())
    assert not (tmp_path / "dev" / "X.sounds.h5").exists()
