"""The words of transcripts, and what word and character errors of them are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.quality.registry import quality_metric, wer_quality
from pipeline.quality.transcripts import compared, compares_words, spoken_words
from pipeline.quality.weighted_metric import point_estimate

WHISPER = ["Well-known: Mr. Brown's!", "\u2014 Stop."]
REFERENCES = ["well known mister brown's", "stop it"]


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


@given(st.text())
def test_words_are_their_own_words_also_one_by_one(text: str) -> None:
    """References of stage prepare, and what models that learnt from them write, stay as they are.

    Labels of tokens normalise a hypothesis word by word.
    """
    words = spoken_words(text)
    assert spoken_words(words) == words
    assert " ".join(filter(None, compared(text.split(), "words"))) == words


def test_errors_of_words_by_hand() -> None:
    # as decoded: 3 substitutions and 1 deletion in 4 words; "it" for "Stop.", "stop" for the dash
    as_decoded, words = (quality_metric("wer_percent", "13a", name) for name in TRANSCRIPTS)
    assert as_decoded.sentence_error_percent(WHISPER, REFERENCES).tolist() == [100, 100]
    # words: "mr" for "mister", and "it" is missing
    assert words.sentence_error_percent(WHISPER, REFERENCES).tolist() == [25, 50]
    wer = words.weighted(WHISPER, REFERENCES)
    assert point_estimate(wer, 2) == pytest.approx(100 * 2 / 6)
    # characters: "iste" is missing, and " it"
    cer = words.secondary.weighted(WHISPER, REFERENCES)
    assert point_estimate(cer, 2) == pytest.approx(100 * 7 / (25 + 7))


TRANSCRIPTS = ("as_decoded", "words")


def test_prepared_references_have_the_same_errors_either_way() -> None:
    hypotheses, references = ["turn the lamp", "l'été", ""], ["turn on the lamp", "été", "off"]
    as_decoded, words = map(wer_quality, TRANSCRIPTS)
    assert (
        as_decoded.sentence_error_percent(hypotheses, references).tolist()
        == words.sentence_error_percent(hypotheses, references).tolist()
        == [25, 100, 100]
    )


def test_signatures_tell_them_apart() -> None:
    for quality, has_words in zip(map(wer_quality, TRANSCRIPTS), (False, True), strict=True):
        for signature in (
            quality.signature(), quality.secondary.signature(), quality.sentence_signature
        ):  # fmt: skip
            assert ("case:lc|transcripts:words|norm:NFC" in signature) is has_words
            assert ("case:mixed|norm:NFC" in signature) is not has_words
            assert compares_words(signature) is has_words
