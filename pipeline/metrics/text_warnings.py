"""What users should know about the texts of a task before they trust its quality metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from pipeline.metrics.decodes import Decode
from pipeline.quality.normalisation import FORM, count_changed
from pipeline.quality.registry import Quality
from pipeline.quality.transcripts import AS_DECODED, WORDS, compared
from pipeline.quality.translation import bleu_counts
from pipeline.text_traces import traces_of

_BLEU_ORDER = 4
_MIN_SHARE = 0.05  # of hypotheses; an unknown symbol is written as <unk>


def text_warnings(decodes: Sequence[Decode], quality: Quality) -> Iterator[str]:
    """How many texts scoring brings to NFC, and how many still have traces of preprocessing.

    Also test sets whose BLEU is 0 whatever is decoded, and hypotheses in another orthography than
    their references, if WER compares texts as decoded.
    """
    references = {decode.cell.test_set: _present(decode.references) for decode in decodes}
    hypotheses = [_present(decode.texts) for decode in decodes if not decode.is_forced]
    counts = [
        (sum(map(count_changed, texts)), sum(map(len, texts)))
        for texts in (hypotheses, references.values())
    ]
    if any(changed for changed, _ in counts):
        (hypothesis, of_hypotheses), (reference, of_references) = counts
        yield (
            f"{hypothesis} of {of_hypotheses} hypotheses and {reference} of {of_references} "
            f"references are brought to Unicode form {FORM} before scoring"
        )
    # A test set has one reference, whichever of its decodes are compared with it.
    yield from traces_of(chain.from_iterable(hypotheses)).warnings("hypotheses")
    yield from traces_of(chain.from_iterable(references.values())).warnings("references")
    if quality.transcripts == AS_DECODED:
        yield from _other_signs([*chain(*hypotheses)], [*chain(*references.values())])
    if quality.tokeniser is None:
        return
    for test_set, texts in references.items():
        lengths = bleu_counts(texts, texts, quality.tokeniser).reference_tokens
        if texts and lengths.max() < _BLEU_ORDER:
            yield (
                f"{test_set}: no reference has {_BLEU_ORDER} tokens under the tokeniser "
                f"{quality.tokeniser}, so that even a perfect output has BLEU 0. Choose another "
                "metrics.bleu_tokenize, such as char."
            )


def _other_signs(hypotheses: Sequence[str], references: Sequence[str]) -> Iterator[str]:
    """Whether hypotheses are written with capitals and punctuation, and references without."""
    if not references or compared(references, WORDS) != references:
        return
    pairs = zip(compared(hypotheses, WORDS), hypotheses, strict=True)
    n_other = sum(words != text for words, text in pairs)
    if n_other >= max(1, _MIN_SHARE * len(hypotheses)):
        yield (
            f"{n_other} of {len(hypotheses)} hypotheses have capitals, punctuation or other signs, "
            "which no reference has; each of them makes its word an error. With "
            "metrics.transcripts=words, lower-case words without them are compared."
        )


def _present(texts: Sequence[str | None]) -> list[str]:
    return [text for text in texts if text is not None]
