"""The marks of NIST's segment time marks (.stm), reduced to one plain transcript.

Sources: alternatives and optional words, doc/infmts.htm of NIST's SCTK; classes of hesitations,
doc/trans_rules/en20090415.glm there; pronunciations, noises and words cut at the apostrophe, the
.stm files of TED-LIUM.
"""

from __future__ import annotations

import re

TRANSCRIPT_NOTES = {
    "alternatives": "{ um / uh / @ }: the first alternative is the reference; @ is no word",
    "optional_words": "(uh): kept, so that leaving them out is an error",
    "non_words": "[NOISE], <unk>, {COUGH}, %HESITATION: removed",
    "pronunciations": "word(2): the number is removed",
    "words_joined": "it 's, do n't: joined, in English only",
}
# Note, pattern, replacement. Each is applied until nothing matches, because marks can be nested.
_RULES = [
    (
        "non_words",
        re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\{[^{}\s/]+\}|%(?:hesitation|bcack|bcnack)\b", re.I),
        " ",
    ),
    ("alternatives", re.compile(r"\{([^{}/]*)(?:/[^{}]*)?\}"), r" \1 "),
    ("pronunciations", re.compile(r"(?<=\w)\(\d+\)"), ""),
    ("optional_words", re.compile(r"\(([^()]*\w[^()]*)\)"), r" \1 "),
    (
        "words_joined",
        re.compile(r"(?<=\w)\s+(['\u2019`](?:s|m|d|t|re|ve|ll)|n['\u2019`]t)(?![\w'])", re.I),
        r"\1",
    ),
]


def plain_transcript(
    text: str, recording: str, language: str | None
) -> tuple[str, tuple[str, ...]]:
    """Remove the marks of a transcript; returns it with those of `TRANSCRIPT_NOTES` that apply.

    A name of the utterance in parentheses at the end, which begins with the recording's, is
    removed. Raises ValueError if braces do not match.
    """
    text = re.sub(rf"\({re.escape(recording)}-[^()]*\)$", "", text.rstrip())
    is_english = language is not None and language.lower().partition("-")[0] == "en"
    notes = []
    for note, pattern, replacement in _RULES:
        if note == "words_joined" and not is_english:
            continue
        if pattern.search(text):
            notes.append(note)
        while pattern.search(text):
            text = pattern.sub(replacement, text)
        if note == "alternatives" and re.search("[{}]", text):
            raise ValueError("has a brace { or } without the other one")
    return text, tuple(notes)
