"""Transcripts are cut into subwords of the chosen kind."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from pipeline.data.speech.corpus import SpeechCorpus, Utterance
from pipeline.data.speech.prepared import REQUIRED_CHARACTERS, learn_speech_subwords
from pipeline.data.task_subwords import learn_subwords, learn_words
from pipeline.run.settings import SpeechDataConfig

TEXTS = [" ".join(words) for words in permutations(("seven", "eleven", "never", "open"), 3)]
N_UNIT = 44


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
