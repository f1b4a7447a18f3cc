"""Disagreement of the members' own best hypotheses: X-BLEU, X-WER and X-chrF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError, StoreError
from pipeline.quality.speech import sentence_wer_percent_of_pairs
from pipeline.quality.tokenisers import DEFAULT, check_tokeniser
from pipeline.quality.transcripts import AS_DECODED, compared
from pipeline.quality.translation import sentence_bleu_of_pairs
from pipeline.statistics.posterior import Float64
from pipeline.store import Store
from pipeline.uncertainty.lexical import dissimilarity
from pipeline.uncertainty.measures_of_sequences import Estimator, measures_by

HEURISTICS = tuple(measures_by(Estimator.MEMBER_DECODES))


def heuristic_measures(
    store: Store,
    member_stores: Sequence[Store],
    tokeniser: str = DEFAULT,
    transcripts: str = AS_DECODED,
) -> dict[str, Float64]:
    """Compute X-BLEU, X-WER and X-chrF of each sentence from the decodes of single members.

    Returns name -> [sentence]: the mean over ordered pairs of members of (100 - BLEU)^2, of WER^2,
    both in squared percent, and of 100 - chrF, in percent, between their best hypotheses.
    tokeniser: that of BLEU; transcripts: WER of texts `as_decoded`, or of their lower-case `words`.
    They are 0 for a single member, and NaN without the decodes of all members and where a member
    has no hypothesis. Raises StoreError if a member store has another test set or several members,
    or if they are not one per member. Source: eqn:xbleu, eqn:xwer; X-BLEU is the BLEU variance of
    Xiao et al., "Wat zei je? Detecting out-of-distribution translations with variational
    transformers", 2020, and X-chrF D-Lex-Sim of Fomicheva et al., TACL 8, 2020, with chrF in the
    place of METEOR.
    """
    has_hypothesis = np.diff(store.hypothesis_offset) > 0
    if store.n_member == 1:
        return {name: np.where(has_hypothesis, 0.0, np.nan) for name in HEURISTICS}
    if heuristics_reason(store, member_stores):
        return {name: np.full(store.n_sentence, np.nan) for name in HEURISTICS}
    sources = store.sources()
    texts = [_texts(store, member_store, sources) for member_store in member_stores]
    _check_members(store, member_stores)
    present = has_hypothesis & _is_present(texts)
    return {
        "xbleu": _mean_squares(texts, present, _bleu_loss(tokeniser)),
        "xwer": _mean_squares(texts, present, _wer(transcripts)),
        "xchrf": _chrf_loss(texts, present),
    }


def xbleu(texts_by_system: Mapping[str, Sequence[str | None]], tokeniser: str = DEFAULT) -> Float64:
    """Compute X-BLEU of each sentence from the texts of several systems.

    texts_by_system: name of a system -> [sentence], None where it has no text. Returns [sentence]
    in squared percent: the mean over ordered pairs of systems of (100 - BLEU)^2 between their
    texts, NaN where a system has none. It is 0 for a single system. tokeniser: that of BLEU. Raises
    DataError without systems and if a system has more texts than another, ConfigError for an
    unknown tokeniser, MachineError if it does not work here. Source: eqn:xbleu.
    """
    names, texts = list(texts_by_system), list(texts_by_system.values())
    if not names:
        raise DataError("texts_by_system: no system. Give the texts of at least one.")
    for name, of_system in texts_by_system.items():
        if len(of_system) != len(texts[0]):
            raise DataError(
                f"texts_by_system: system {name} has {len(of_system)} texts and system {names[0]} "
                f"has {len(texts[0])}. Give each system one text per sentence, None for no text."
            )
    check_tokeniser(tokeniser, "tokeniser")
    present = _is_present(texts)
    if len(texts) == 1:
        return np.where(present, 0.0, np.nan)
    return _mean_squares(texts, present, _bleu_loss(tokeniser))


def heuristics_reason(store: Store, member_stores: Sequence[Store]) -> str | None:
    """Return why X-BLEU, X-WER and X-chrF have no value, or None."""
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


def _is_present(texts_of_systems: Sequence[Sequence[str | None]]) -> NDArray[np.bool_]:
    """Whether every system has a text, [sentence]."""
    every = zip(*texts_of_systems, strict=True)
    return np.array([None not in texts for texts in every], dtype=np.bool_)


def _bleu_loss(tokeniser: str) -> Callable[[list[list[str]]], Float64]:
    return lambda texts_of_systems: 100.0 - sentence_bleu_of_pairs(texts_of_systems, tokeniser)


def _wer(transcripts: str) -> Callable[[list[list[str]]], Float64]:
    return lambda texts_of_systems: sentence_wer_percent_of_pairs(
        [compared(texts, transcripts) for texts in texts_of_systems]
    )


def _chrf_loss(
    texts_of_systems: Sequence[Sequence[str | None]], present: NDArray[np.bool_]
) -> Float64:
    """Mean of 100 - chrF over ordered pairs of systems, [sentence]; NaN where it is not present."""
    rows = np.flatnonzero(present)
    texts = [texts[row] or "" for row in rows.tolist() for texts in texts_of_systems]
    result = np.full(len(present), np.nan)
    result[rows] = dissimilarity(texts, len(texts_of_systems) * np.arange(len(rows) + 1))
    return result


def _mean_squares(
    texts_of_systems: Sequence[Sequence[str | None]],
    present: NDArray[np.bool_],
    dissimilarity_percent: Callable[[list[list[str]]], Float64],
) -> Float64:
    """Mean squares of dissimilarities [system, system, sentence] over ordered pairs, [sentence].

    present [sentence]: where every system has a text; NaN elsewhere.
    """
    rows = np.flatnonzero(present)
    percent = dissimilarity_percent(
        [[texts[row] or "" for row in rows.tolist()] for texts in texts_of_systems]
    )
    pairs = permutations(range(len(texts_of_systems)), 2)
    result = np.full(len(present), np.nan)
    result[rows] = np.mean([percent[a, b] ** 2 for a, b in pairs], axis=0)
    return result
