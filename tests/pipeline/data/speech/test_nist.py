"""The marks of .stm files become plain transcripts.

The examples of alternatives and optional words are those of doc/infmts.htm of NIST's SCTK.
"""

from __future__ import annotations

import pytest

from pipeline.data.speech.nist import TRANSCRIPT_NOTES, plain_transcript
from pipeline.quality.transcripts import spoken_words


@pytest.mark.parametrize(
    ("text", "words", "notes"),
    [
        ("i've { um / uh / @ } as far", "i've um as far", ("alternatives",)),
        ("{ @ / uh } so", "so", ("alternatives",)),
        ("{he is / he has} gone", "he is gone", ("alternatives",)),
        ("{ a / { b / c } } d", "a d", ("alternatives",)),
        ("{ { a / b } / c } d", "a d", ("alternatives",)),
        ("i am a (farmer)", "i am a farmer", ("optional_words",)),
        ("so ((maybe) not) (())", "so maybe not", ("optional_words",)),
        ("uh %uh yes", "uh uh yes", ()),
        ("(%HESITATION) yes %bcack", "yes", ("non_words",)),
        ("a [NOISE] b <unk> c {COUGH} d <sil>", "a b c d", ("non_words",)),
        ("for(2) the(3)", "for the", ("pronunciations",)),
        ("it 's they 're do n't can \u2019t", "it's they're don't can't", ("words_joined",)),
        ("'s a plan", "s a plan", ()),
        ("plain words (talk-12.50-13.00-<o,f0,male>)", "plain words", ("utterance_names",)),
    ],
)
def test_marks_become_words_or_are_removed(text: str, words: str, notes: tuple[str, ...]) -> None:
    plain, found = plain_transcript(text, "talk", "en")
    assert (spoken_words(plain), found) == (words, notes)
    assert set(found) <= set(TRANSCRIPT_NOTES)


@pytest.mark.parametrize(
    "name",
    [
        *("rec2-1", "rec2_1", "rec2_spk0-0000172-0000408", "rec2", "REC2", "rec2.1", "rec2-a"),
        *("utt-17", "17", "talk_a"),
    ],
)
def test_names_of_utterances_are_removed(name: str) -> None:
    for text in (f"so (uh) it is ({name})", f"so (uh) it is({name.replace('17', 'a_17')})  "):
        plain, notes = plain_transcript(text, "rec2", "en")
        assert (spoken_words(plain), notes) == (
            "so uh it is",
            ("utterance_names", "optional_words"),
        )


@pytest.mark.parametrize(
    "text",
    ["so (uh)", "so (uh-huh)", "so (th-)", "so (u.s.)", "so (17 times)", "(17) so", "so (records)"],
)
def test_optional_words_are_no_names(text: str) -> None:
    plain, notes = plain_transcript(text, "rec", "en")
    assert (plain.split(), notes) == (
        text.replace("(", "").replace(")", "").split(),
        ("optional_words",),
    )


def test_number_of_a_pronunciation_at_the_end_is_no_name() -> None:
    plain, notes = plain_transcript("what for(2)", "talk", "en")
    assert (plain, notes) == ("what for", ("pronunciations",))


@pytest.mark.parametrize("language", ["nl", None, "ens"])
def test_words_are_joined_in_english_only(language: str | None) -> None:
    assert plain_transcript("ik ga 's avonds", "talk", language) == ("ik ga 's avonds", ())


@pytest.mark.parametrize("text", ["{ a / b", "a / b }", "} a {"])
def test_braces_that_do_not_match_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="brace"):
        plain_transcript(text, "talk", "en")
