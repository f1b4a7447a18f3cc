"""Measures of samples, which need no hypothesis of their own, as measures of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.metrics.measure_files import MeasuredDecode, SentenceMeasures

_SAMPLE, _BY_MEMBERS = "sample", "member"


def with_measures_of_samples(measured: Sequence[MeasuredDecode]) -> list[MeasuredDecode]:
    """The decodes that are no samples; a search has the measures of its samples, too.

    Samples belong to a search if the same ensemble drew them for the same test set, from the
    posterior that the search maximises or by every member. Their measures, such as Monte-Carlo
    entropy, are about a sentence and not about a hypothesis. The most samples of the grid are used
    at every setting of the search. A measure that the search has itself is kept.
    """
    samples = [decode for decode in measured if decode.decode.cell.regime == _SAMPLE]
    others = [decode for decode in measured if decode.decode.cell.regime != _SAMPLE]
    return [_with_samples(decode, samples) for decode in others]


def _with_samples(search: MeasuredDecode, samples: Sequence[MeasuredDecode]) -> MeasuredDecode:
    if not search.decode.is_search:
        return search
    for drawn in samples:
        if _is_sample_of(drawn, search):
            most = _with_most_samples(drawn)
            signature = drawn.decode.cell.signature
            grid = [_joined(at, most.get(at.length_norm), signature) for at in search.grid]
            search = replace(search, grid=grid)
    return search


def _is_sample_of(drawn: MeasuredDecode, search: MeasuredDecode) -> bool:
    own, other = drawn.decode.cell, search.decode.cell
    return (own.ensemble, drawn.decode.members, own.test_set) == (
        other.ensemble,
        search.decode.members,
        other.test_set,
    ) and own.hypotheses in (other.hypotheses, _BY_MEMBERS)


def _with_most_samples(drawn: MeasuredDecode) -> dict[bool, SentenceMeasures]:
    """Length norm -> the measures of the most samples; T has no effect on them."""
    ordered = sorted(drawn.grid, key=lambda measures: measures.beam)
    return {measures.length_norm: measures for measures in ordered}


def _joined(
    search: SentenceMeasures, drawn: SentenceMeasures | None, signature: str
) -> SentenceMeasures:
    if drawn is None:
        return search
    added = {name: values for name, values in drawn.values.items() if name not in search.values}
    return replace(
        search,
        values={**search.values, **added},
        why_null={**drawn.why_null, **search.why_null},
        samples={**search.samples, **dict.fromkeys(added, signature)},
    )
