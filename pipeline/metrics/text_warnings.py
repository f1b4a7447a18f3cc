"""What users should know about the texts of a task before they trust its quality metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from pipeline.metrics.decodes import Decode
from pipeline.quality.normalisation import FORM, count_changed
from pipeline.quality.registry import Quality
from pipeline.quality.translation import bleu_counts
from pipeline.text_traces import traces_of

_BLEU_ORDER = 4


def text_warnings(decodes: Sequence[Decode], quality: Quality) -> Iterator[str]:
    """How many texts scoring brings to NFC, and how many still have traces of preprocessing.

    Also test sets whose BLEU is 0 whatever is decoded.
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


def _present(texts: Sequence[str | None]) -> list[str]:
    return [text for text in texts if text is not None]
