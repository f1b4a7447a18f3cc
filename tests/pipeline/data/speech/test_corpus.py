from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.speech.corpus import SpeechCorpus, Utterance, merged, spoken_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MISTER QUILTER'S  MANNER", "mister quilter's manner"),
        ("Où est-il\u00a0? «\u2019Là\u2019», l\u2019été !", "où est il là' l'été"),
        ("-3.5 percent: a, b", "3 5 percent a b"),
        ("e\u0301te\u0301", "été"),
        ("?!", ""),
    ],
)
def test_transcripts_are_words_in_lower_case(text: str, words: str) -> None:
    assert spoken_words(text) == words


def test_source_of_a_segment_has_its_times() -> None:
    assert Utterance("a/b.wav", None).source == "a/b.wav"
    assert Utterance("b.wav", "x", 1.5, 2.25).source == "b.wav#t=1.50,2.25"


def test_corpora_are_merged_below_their_common_folder(tmp_path: Path) -> None:
    parts = [
        SpeechCorpus(
            "n", "l", "d", tmp_path / name, [Utterance("x.wav", name)], left_out={"y": "z"}
        )
        for name in ("first", "second")
    ]
    corpus = merged(parts)
    assert corpus.folder == tmp_path.resolve()
    assert [utterance.file for utterance in corpus.utterances] == ["first/x.wav", "second/x.wav"]
    assert corpus.left_out == {"first/y": "z", "second/y": "z"}
