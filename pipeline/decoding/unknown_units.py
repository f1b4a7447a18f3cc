"""Sub-word units of a test set that a vocabulary lacks."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.decoding.test_set import Dictionary, PreparedSentence


def unknown_units(
    sentences: Iterable[PreparedSentence], source: Dictionary, target: Dictionary
) -> str:
    """How many units of sources and references are decoded as unknown, in words."""
    known = {"source": set(source.symbols), "reference": set(target.symbols)}
    unknown = dict.fromkeys(known, 0)
    total = dict.fromkeys(known, 0)
    for sentence in sentences:
        pieces = {"source": sentence.source_pieces, "reference": sentence.reference_pieces or []}
        for side, units in pieces.items():
            total[side] += len(units)
            unknown[side] += sum(unit not in known[side] for unit in units)
    return " and ".join(f"{unknown[side]} of {total[side]} {side} units" for side in known)
