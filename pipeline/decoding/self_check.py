"""A decoder's own proof on some sentences: re-scored alike, alone and in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.blocks import Decoder
from pipeline.decoding.scoring import score_in_chunks
from pipeline.decoding.test_set import Sentence
from pipeline.errors import PipelineError
from pipeline.store import Hypothesis
from pipeline.store.statistics import STATISTICS

Array = NDArray[np.floating[Any]]
_TOLERANCE = 1e-4
SELF_CHECK_SENTENCES = 64
_ALONE_SENTENCES = 16


def self_check(decoder: Decoder, sentences: Sequence[Sentence], combination: str) -> float:
    """The largest difference of a score or statistic of the best hypotheses, in nats.

    All sentences that can be decoded, in one batch: teacher forcing of each best hypothesis against
    the decoder, and the first 16 decoded alone against the batch (where two hypotheses have the
    same score, either may be first). Raises PipelineError naming the sentence where it exceeds
    1e-4.
    """
    longest = decoder.model.max_source_tokens
    batch = [one for one in sentences if not one.is_empty and len(one.source) <= longest]
    if not batch:
        return 0.0
    together = _best(decoder, batch, combination)
    largest = 0.0
    for sentence in batch[:_ALONE_SENTENCES]:
        alone = _best(decoder, [sentence], combination).get(sentence.id)
        largest = max(largest, _agree(sentence.id, "alone", alone, together.get(sentence.id)))
    # What one member drew has the score of that member.
    common = {place: best for place, best in together.items() if best.member < 0}
    targets = [
        replace(one, target=common[one.id].token_id.tolist()) for one in batch if one.id in common
    ]
    scored = score_in_chunks(decoder.model, targets, combination, decoder.decode)
    for sentence, (again,) in zip(targets, scored, strict=True):
        best = common[sentence.id]
        if decoder.decode.unk_penalty:
            again = replace(again, score=best.score)
        largest = max(largest, _agree(sentence.id, "re-scored", again, best))
    return largest


def _best(decoder: Decoder, batch: Sequence[Sentence], combination: str) -> dict[int, Hypothesis]:
    found = decoder.search(decoder.model, batch, combination, decoder.decode)
    return {one.id: best[0] for one, best in zip(batch, found, strict=True) if best}


def _agree(sentence: int, how: str, one: Hypothesis | None, other: Hypothesis | None) -> float:
    """The largest difference of two hypotheses of a sentence that should be the same."""
    if one is None and other is None:
        return 0.0
    difference = np.inf
    if one is not None and other is not None:
        difference = abs(one.score - other.score)
        if one.token_id.tolist() == other.token_id.tolist():
            pairs = [
                (getattr(one.statistics, name), getattr(other.statistics, name))
                for name in STATISTICS
            ]
            difference = max(difference, *(_distance(*pair) for pair in pairs))
    if difference > _TOLERANCE:
        raise PipelineError(
            f"the best hypothesis of sentence {sentence} must be the same {how} to "
            f"{_TOLERANCE} nats, got a difference of {difference}"
        )
    return float(difference)


def _distance(one: Array, other: Array) -> float:
    with np.errstate(invalid="ignore"):
        difference = np.where(one == other, 0.0, np.abs(one - other))
    largest: float = difference.max(initial=0.0)
    return largest
