from __future__ import annotations

from pathlib import Path

from pipeline.data.speech.corpus import SpeechCorpus, Utterance, merged


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
