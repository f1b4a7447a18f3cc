"""The marks of NIST's segment time marks (.stm), reduced to one plain transcript.

Sources: alternatives, optional words and names of utterances (trn format), doc/infmts.htm of NIST's
SCTK; classes of hesitations, doc/trans_rules/en20090415.glm there; pronunciations, noises and words
cut at the apostrophe, the .stm files of TED-LIUM.
"""

from __future__ import annotations

import re

TRANSCRIPT_NOTES = {
    "utterance_names": "(talk_17) at the end: the name of the utterance, removed",
    "alternatives": "{ um / uh / @ }: the first alternative is the reference; @ is no word",
    "optional_words": "(uh): kept, so that leaving them out is an error",
    "non_words": "[NOISE], <unk>, {COUGH}, %HESITATION: removed",
    "pronunciations": "word(2): the number is removed",
    "words_joined": "it 's, do n't: joined, in English only",
}
_LAST_PARENTHESIS = re.compile(r"\(([^()\s]+)\)$")
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

    Raises ValueError if braces do not match.
    """
    text = text.rstrip()
    is_english = language is not None and language.lower().partition("-")[0] == "en"
    notes = []
    if (start := _start_of_name(text, recording)) is not None:
        notes.append("utterance_names")
        text = text[:start]
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


def _start_of_name(text: str, recording: str) -> int | None:
    """Return where the name of the utterance starts, in parentheses at the end, if there is one.

    Optional words are in parentheses too. A name has no space, and has a digit or an underscore, or
    begins with the name of the recording. Hyphens and full stops alone do not make a name, because
    words have them: (uh-huh), (th-), (u.s.).
    """
    last = _LAST_PARENTHESIS.search(text)
    if last is None:
        return None
    name = last[1]
    is_pronunciation = re.search(r"\w\(\d+\)$", text)
    of_recording = re.match(rf"{re.escape(recording)}(?![^\W_])", name, re.IGNORECASE)
    is_name = not is_pronunciation and (of_recording or re.search(r"[\d_]", name))
    return last.start() if is_name else None
