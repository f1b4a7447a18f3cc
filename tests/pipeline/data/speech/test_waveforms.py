from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from pipeline.data.speech.corpus import SpeechCorpus, Utterance
from pipeline.data.speech.prepared import write_test_set
from pipeline.data.speech.waveforms import WaveformFile, count_frames, writing_waveforms
from pipeline.data.task_subwords import Words
from pipeline.decoding.test_set import read_test_set
from pipeline.decoding.tokenizer import SubwordTokenizer
from pipeline.errors import DataError
from pipeline.run.settings import SpeechDataConfig
from tests.pipeline.data.speech.conftest import WriteAudio


def _write(path: Path) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    waveforms = [random.uniform(-1, 1, length).astype(np.float32) for length in (161, 0, 70000)]
    with writing_waveforms(path, 16000) as add:
        for waveform in waveforms:
            add(waveform)
    return waveforms


def test_waveforms_are_read_as_they_were_written(tmp_path: Path) -> None:
    waveforms = _write(tmp_path / "a.h5")
    file = WaveformFile(tmp_path / "a.h5")
    assert WaveformFile.is_one(tmp_path / "a.h5")
    assert len(file) == 3
    for index, waveform in enumerate(waveforms):
        np.testing.assert_array_equal(file.samples(index), waveform)
    assert file.n_frame.tolist() == [2, 0, 438]
    _write(tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


@pytest.mark.parametrize(
    ("n_sample", "rate_hz", "n_frame"), [(0, 8000, 0), (80, 8000, 1), (81, 8000, 2), (1, 44100, 1)]
)
def test_frames_of_10_ms_are_counted(n_sample: int, rate_hz: int, n_frame: int) -> None:
    assert count_frames(n_sample, rate_hz) == n_frame


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    _write(path)
    with h5py.File(path, "a") as file:
        file["/utterance/sample_offset"][1] = 10**6
    with pytest.raises(DataError, match=r"a\.h5: not a complete file of waveforms \(.*must rise"):
        WaveformFile(path)
    path.write_bytes(path.read_bytes()[:500])
    assert not WaveformFile.is_one(path)
    with pytest.raises(DataError, match=r"a\.h5: not a complete file of waveforms"):
        WaveformFile(path)


def test_subwords_are_not_given_waveforms(tmp_path: Path, write_audio: WriteAudio) -> None:
    write_audio(tmp_path / "a.wav", 1)
    corpus = SpeechCorpus("n", "l", "d", tmp_path, [Utterance("a.wav", "red door")])
    speech = SpeechDataConfig(sampling_rate_hz=16000, shortest_seconds=0.1, longest_seconds=36.0)
    write_test_set(tmp_path, "X", corpus, speech, Words())
    (sentence,) = read_test_set(tmp_path / "X.jsonl")
    assert sentence.reference_subwords == ["red", "door"]
    assert sentence.expected_tokens == 100 // 20 + 1
    tokenizer = SubwordTokenizer(None, None, " ".join)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"X\.h5: has waveforms, .* with data/units=learnt"):
        tokenizer.source(sentence)
