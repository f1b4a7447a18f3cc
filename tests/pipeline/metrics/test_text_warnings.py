from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipeline.metrics.text_warnings import text_warnings
from pipeline.quality.registry import wer_quality


def _decode(texts: list[str | None], references: list[str | None], is_forced: bool = False) -> Any:
    cell = SimpleNamespace(test_set="t")
    return SimpleNamespace(cell=cell, texts=texts, references=references, is_forced=is_forced)


def test_traces_of_preprocessing_are_counted_in_hypotheses_and_references() -> None:
    quality: Any = SimpleNamespace(tokeniser=None, transcripts=None)
    references = ["He did n't come .", None, "Good morning."]
    decodes = [
        _decode(["He did@@ n't come.", None, "Good mor@@ ning."], references),
        _decode(["He did n't come.", "", "Good &quot;morning&quot;."], references),
        _decode(references, references, is_forced=True),
    ]
    assert [warning.partition(".")[0] for warning in text_warnings(decodes, quality)] == [
        "hypotheses: 2 of 5 texts have subword markers (@@ or ▁)",
        "hypotheses: 1 of 5 texts have escapes of Moses' tokeniser, such as &apos;",
        "references: 1 of 2 texts have a space before a full stop or comma, as tokenised text has",
    ]
    good = _decode(["He didn't come."], ["He didn't come."])
    assert list(text_warnings([good], quality)) == []


def test_capitals_and_punctuation_that_references_lack_are_counted() -> None:
    decode = _decode(["Turn on.", "it's", None], ["turn on", "it's", None])
    (warning,) = text_warnings([decode], wer_quality("as_decoded"))
    assert warning.startswith("1 of 2 hypotheses have capitals, punctuation or other signs")
    assert "metrics.transcripts=words" in warning
    assert list(text_warnings([decode], wer_quality("words"))) == []
    for alike in (_decode(["turn on"], ["turn on"]), _decode(["On."], ["On!"])):
        assert list(text_warnings([alike], wer_quality("as_decoded"))) == []
