"""Disagreement of the members' own best hypotheses: X-BLEU and X-WER."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

from pipeline.errors import StoreError
from pipeline.quality.speech import sentence_wer_percent
from pipeline.quality.tokenisers import DEFAULT
from pipeline.quality.translation import sentence_bleu
from pipeline.statistics.posterior import Float64
from pipeline.store import Store
from pipeline.uncertainty.measures_of_sequences import Estimator, measures_by

HEURISTICS = tuple(measures_by(Estimator.MEMBER_DECODES))


def heuristic_measures(
    store: Store, member_stores: Sequence[Store], tokeniser: str = DEFAULT
) -> dict[str, Float64]:
    """Compute X-BLEU and X-WER of each sentence from the decodes of single members.

    Returns name -> [sentence] in squared percent: the mean over ordered pairs of members of
    (100 - BLEU)^2 and of WER^2 between their best hypotheses. tokeniser: that of BLEU. They are 0
    for a single member, and NaN without the decodes of all members and where a member has no
    hypothesis. Raises StoreError if a member store has another test set or several members, or if
    they are not one per member. Source: eqn:xbleu, eqn:xwer.
    """
    has_hypothesis = np.diff(store.hypothesis_offset) > 0
    if store.n_member == 1:
        return {name: np.where(has_hypothesis, 0.0, np.nan) for name in HEURISTICS}
    if heuristics_reason(store, member_stores):
        return {name: np.full(store.n_sentence, np.nan) for name in HEURISTICS}
    sources = store.sources()
    texts = [_texts(store, member_store, sources) for member_store in member_stores]
    _check_members(store, member_stores)
    is_present = [[text is not None for text in member_texts] for member_texts in texts]
    present = has_hypothesis & np.all(is_present, axis=0)
    return {
        "xbleu": _mean_square(texts, present, lambda h, r: 100.0 - sentence_bleu(h, r, tokeniser)),
        "xwer": _mean_square(texts, present, sentence_wer_percent),
    }


def heuristics_reason(store: Store, member_stores: Sequence[Store]) -> str | None:
    """Return why X-BLEU and X-WER have no value, or None."""
    if store.n_member > 1 and len(member_stores) != store.n_member:
        needed, given = store.n_member, len(member_stores)
        return f"needs the decodes of all {needed} single members, got {given}"
    return None


def _check_members(store: Store, member_stores: Sequence[Store]) -> None:
    if not all("members" in opened.attributes for opened in (store, *member_stores)):
        return
    names = [name for member_store in member_stores for name in member_store.members]
    if sorted(names) != sorted(store.members):
        raise StoreError(
            f"io.member_stores: must be one store of each member of {store.path}, "
            f"{', '.join(store.members)} (got {', '.join(names)})."
        )


def _texts(store: Store, member_store: Store, sources: list[str]) -> list[str | None]:
    """Return the best hypotheses of a member after checking that they fit this store."""
    if member_store.n_member != 1:
        raise StoreError(
            f"{member_store.path}: attribute n_member must be 1 (got {member_store.n_member}). "
            f"Give the decodes of single members."
        )
    expected, given = (opened.attributes.get("test_set") for opened in (store, member_store))
    if None not in (expected, given) and expected != given:
        raise StoreError(
            f"{member_store.path}: attribute test_set must be {expected}, as in {store.path} "
            f"(got {given})."
        )
    if member_store.sources() != sources:
        raise StoreError(
            f"{member_store.path}: /sentence/source differs from that of {store.path}. "
            f"Give decodes of the same sentences."
        )
    return member_store.best_texts()


def _mean_square(
    texts: list[list[str | None]],
    present: np.ndarray,
    dissimilarity_percent: Callable[[list[str], list[str]], Float64],
) -> Float64:
    """Average squared dissimilarities over ordered pairs of members, [sentence].

    texts [member][sentence]; present [sentence]: where every member has a text, NaN elsewhere.
    """
    rows = np.flatnonzero(present)
    chosen = [[text[row] or "" for row in rows] for text in texts]
    squares = [
        dissimilarity_percent(hypotheses, references) ** 2
        for hypotheses, references in permutations(chosen, 2)
    ]
    result = np.full(len(present), np.nan)
    result[rows] = np.mean(squares, axis=0)
    return result
