"""Disagreement of the members' own best hypotheses: X-BLEU and X-WER."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

from pipeline.errors import StoreError
from pipeline.statistics.kernel import Float64
from pipeline.store import Store

HEURISTICS = ("xbleu", "xwer")


def heuristic_measures(store: Store, member_stores: Sequence[Store]) -> dict[str, Float64]:
    """X-BLEU and X-WER of every sentence from the decodes of single members, in squared percent.

    Returns xbleu and xwer, [sentence]: mean over ordered pairs of members of (100 - BLEU)^2 and of
    WER^2 between their best hypotheses; 0 for a single member; NaN without the decodes of all
    members and where a member has no hypothesis. Raises StoreError where a member store is of
    another test set or of several members, and where they are not one of each member.
    Source: eqn:xbleu, eqn:xwer.
    """
    has_hypothesis = np.diff(store.hypothesis_offset) > 0
    if store.n_member == 1:
        return {name: np.where(has_hypothesis, 0.0, np.nan) for name in HEURISTICS}
    if heuristics_reason(store, member_stores):
        return {name: np.full(store.n_sentence, np.nan) for name in HEURISTICS}
    from pipeline.quality.speech import sentence_wer_percent
    from pipeline.quality.translation import sentence_bleu

    sources = store.sources()
    texts = [_texts(store, member_store, sources) for member_store in member_stores]
    _check_members(store, member_stores)
    present = has_hypothesis & np.all([[one is not None for one in row] for row in texts], axis=0)
    return {
        "xbleu": _mean_square(texts, present, lambda h, r: 100.0 - np.asarray(sentence_bleu(h, r))),
        "xwer": _mean_square(texts, present, lambda h, r: np.asarray(sentence_wer_percent(h, r))),
    }


def heuristics_reason(store: Store, member_stores: Sequence[Store]) -> str | None:
    """Why X-BLEU and X-WER have no value, or None."""
    if store.n_member > 1 and len(member_stores) != store.n_member:
        needed, given = store.n_member, len(member_stores)
        return f"needs the decodes of all {needed} single members, got {given}"
    return None


def _check_members(store: Store, member_stores: Sequence[Store]) -> None:
    if not all("members" in one.attributes for one in (store, *member_stores)):
        return  # nobody has named them
    names = [name for member_store in member_stores for name in member_store.members]
    if sorted(names) != sorted(store.members):
        raise StoreError(
            f"{store.path}: the stores of its members must be one each of "
            f"{', '.join(store.members)}, got those of {', '.join(names)}"
        )


def _texts(store: Store, member_store: Store, sources: list[str]) -> list[str | None]:
    if member_store.n_member != 1:
        raise StoreError(
            f"{member_store.path}: attribute n_member must be 1, as a single member decoded, "
            f"got {member_store.n_member}"
        )
    own, other = (one.attributes.get("test_set") for one in (store, member_store))
    if None not in (own, other) and own != other:
        raise StoreError(
            f"{member_store.path}: attribute test_set must be {own}, as of {store.path}, "
            f"got {other}"
        )
    if member_store.sources() != sources:
        raise StoreError(
            f"{member_store.path}: /sentence/source must be that of {store.path}, got another"
        )
    return member_store.best_texts()


def _mean_square(
    texts: list[list[str | None]],
    present: np.ndarray,
    dissimilarity_percent: Callable[[list[str], list[str]], Float64],
) -> Float64:
    rows = np.flatnonzero(present)
    chosen = [[text[row] or "" for row in rows] for text in texts]
    squares = [dissimilarity_percent(one, other) ** 2 for one, other in permutations(chosen, 2)]
    result = np.full(len(present), np.nan)
    result[rows] = np.mean(squares, axis=0)
    return result
