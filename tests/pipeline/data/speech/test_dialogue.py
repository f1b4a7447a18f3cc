"""Game dialogue as speech: distinct lines, none of the training texts, grouped by level."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.speech import synthetic
from pipeline.data.speech.espeak import Espeak
from pipeline.data.text.corpus import Corpus, Paragraph
from pipeline.run.settings import DataConfig

_PARAGRAPHS = [
    Paragraph("caves", {"en": ["Open the red door!", "What a strange cave."]}),
    Paragraph("ship", {"en": ["What a strange cave!", "There is an old anchor."]}),
]


def test_dialogue_has_no_text_twice_or_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Corpus("g", "l", "d", {}, frozenset(["en"]), lambda: iter(_PARAGRAPHS))
    monkeypatch.setattr(synthetic, "read_game_dialogue", lambda *_: game)
    monkeypatch.setattr(synthetic, "synthesise", lambda *_: Path())
    corpus = synthetic.dialogue_corpus(
        DataConfig(), 9, 0, "n", Espeak("", {}, {}), {"open the red door"}
    )
    assert {(utterance.reference, utterance.group) for utterance in corpus.utterances} == {
        ("what a strange cave", "caves"),
        ("there is an old anchor", "ship"),
    }
    assert len(corpus.utterances) == 2
    assert corpus.left_out == {"open the red door": "text of the training set"}
