"""Transcripts are cut into subwords of the chosen kind; rows name groups and originals."""

from __future__ import annotations

import json
import logging
from itertools import pairwise, permutations
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile

from pipeline.data.speech.corpus import NO_AUDIO, NOT_SCORED, SpeechCorpus, Utterance
from pipeline.data.speech.prepared import (
    REQUIRED_CHARACTERS,
    learn_speech_subwords,
    write_test_set,
)
from pipeline.data.task_subwords import learn_subwords, learn_words
from pipeline.errors import ConfigError
from pipeline.run.settings import SpeechDataConfig
from tests.pipeline.data.speech.conftest import WriteAudio

TEXTS = [" ".join(words) for words in permutations(("seven", "eleven", "never", "open"), 3)]
N_UNIT = 44
SPEECH = SpeechDataConfig(
    sampling_rate_hz=8000, feature_bins=40, shortest_seconds=0.1, longest_seconds=36.0
)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_subwords_are_of_the_chosen_kind(kind: str) -> None:
    corpus = SpeechCorpus("n", "l", "d", Path(), [Utterance("x.wav", text) for text in TEXTS])
    units = learn_speech_subwords(SpeechDataConfig(unit_kind=kind, vocabulary_size=N_UNIT), corpus)
    expected = {
        "bpe": lambda: learn_subwords(
            TEXTS, N_UNIT, required_characters=REQUIRED_CHARACTERS, model_type="bpe"
        ),
        "unigram": lambda: learn_subwords(
            TEXTS, N_UNIT, required_characters=REQUIRED_CHARACTERS, model_type="unigram"
        ),
        "word": lambda: learn_words(TEXTS),
    }
    same = [name for name, make in expected.items() if make().vocabulary() == units.vocabulary()]
    assert same == [kind]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_vocabulary_without_room_for_the_characters_is_refused(kind: str) -> None:
    # The 37 required characters, the mark of a word's beginning and three control symbols.
    for more, least in (("", 41), ("ñé", 43)):
        texts = [f"{text} {more}".strip() for text in TEXTS]
        corpus = SpeechCorpus("n", "l", "d", Path(), [Utterance("x.wav", text) for text in texts])
        speech = SpeechDataConfig(unit_kind=kind, vocabulary_size=least)
        assert len(learn_speech_subwords(speech, corpus).vocabulary()) == least - 3
        speech.vocabulary_size -= 1
        with pytest.raises(ConfigError) as error:
            learn_speech_subwords(speech, corpus)
        assert str(error.value) == (
            f"data.speech.vocabulary_size: must be at least {least}, since each character of the "
            f"training text is a subword (got {least - 1}). Increase it."
        )


def test_segments_that_are_not_scored_are_no_warning(
    tmp_path: Path, write_audio: WriteAudio, caplog: pytest.LogCaptureFixture
) -> None:
    write_audio(tmp_path / "a.wav", 1)
    left_out = {"a.stm, line 1": NOT_SCORED, "a.stm, line 2": NOT_SCORED}
    for more, warnings in (
        ({}, []),
        ({"a.stm, line 3": NO_AUDIO}, ["1 left out or without sound, the first is a.stm, line 3"]),
    ):
        caplog.clear()
        corpus = SpeechCorpus(
            "n", "l", "d", tmp_path, [Utterance("a.wav", "seven")], left_out=left_out | more
        )
        with caplog.at_level(logging.INFO):
            size = write_test_set(tmp_path, "X", corpus, SPEECH, learn_words(TEXTS))
        assert size.counts[NOT_SCORED] == 2
        assert "X: segments that the corpus excludes from scoring: 2" in caplog.messages
        found = [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]
        assert [message.partition(": ")[2].partition(" (")[0] for message in found] == warnings


@pytest.mark.parametrize("groups_of", [None, "meetings"])
def test_speakers_of_one_segment_share_a_group_but_no_original(
    tmp_path: Path, write_audio: WriteAudio, groups_of: str | None
) -> None:
    write_audio(tmp_path / "mix.wav", 2)
    segments = [Utterance("mix.wav", text, 0.5, 1.5, "ES2004a") for text in ("seven", "never")]
    corpus = SpeechCorpus("n", "l", "d", tmp_path, segments, groups_of=groups_of)
    size = write_test_set(tmp_path, "AMI", corpus, SPEECH, learn_words(TEXTS))
    assert (size.n_utterance, size.n_text, size.n_group) == (2, 2, 1)
    with (tmp_path / "AMI.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert {row["source"] for row in rows} == {"mix.wav#t=0.50,1.50"}
    assert [row["original"] for row in rows] == ["AMI:0", "AMI:1"]
    assert {row["group"] for row in rows} == {f"{groups_of or 'n'}:ES2004a"}


def test_groups_are_not_counted_if_one_is_not_known(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    write_audio(tmp_path / "a.wav", 1)
    utterances = [Utterance("a.wav", None, group="a"), Utterance("a.wav", None)]
    corpus = SpeechCorpus("n", "l", "d", tmp_path, utterances)
    size = write_test_set(tmp_path, "C-FR", corpus, SPEECH, learn_words(TEXTS))
    assert (size.n_text, size.n_group) == (None, None)


def test_channels_are_read_and_marks_counted(tmp_path: Path) -> None:
    sides = 0.1 * np.random.default_rng(0).standard_normal((16000, 2))
    soundfile.write(tmp_path / "call.wav", sides, 8000)
    for place, name in enumerate("AB"):
        soundfile.write(tmp_path / f"{name}.wav", sides[:, place], 8000)
    call = [
        Utterance("call.wav", "seven", 0, 1, "call", channel, notes)
        for channel, notes in (("A", ("optional_words",)), ("B", ()), ("3", ()))
    ]
    alone = [Utterance(f"{name}.wav", "seven", 0, 1) for name in "AB"]
    corpus = SpeechCorpus("n", "l", "d", tmp_path, [*call, *alone])
    size = write_test_set(tmp_path, "X", corpus, SPEECH, learn_words(TEXTS))
    assert size.counts["optional_words"] == size.counts["no_channel"] == 1
    assert size.counts["mixed_down"] == 0
    assert size.faults == {"call.wav#t=0.00,1.00&track=3": "no_channel"}
    with h5py.File(tmp_path / "X.h5") as file:
        offset = file["/utterance/frame_offset"][:]
        frames = [file["/frame/feature"][i:j] for i, j in pairwise(offset)]
    np.testing.assert_array_equal(frames[0], frames[3])
    np.testing.assert_array_equal(frames[1], frames[4])
    assert not np.allclose(frames[0], frames[1])
