"""What checks.json and the log say about the hypotheses of stores: fewer than B, equal texts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.store import SEARCHES, Store
from pipeline.uncertainty.equal_texts import compare_texts

_log = logging.getLogger(__name__)


def hypothesis_report(store: Store, beams: Sequence[int]) -> dict[str, Any]:
    """Return `regime`, `beam` and `equal_texts` of checks.json as plain values.

    beam.largest: the number of hypotheses that the search kept per sentence or, if the store does
    not name it or has more, the most of any sentence. beam.used: B -> the B that is really used,
    the smaller of B and the largest. beam.sentences_with_fewer: B -> number of sentences with fewer
    hypotheses than B; a search may find fewer than its beam. If members drew samples, B counts
    those of each member. equal_texts: number of hypotheses that share their text with a better one
    of their sentence, of these sentences, and of such hypotheses whose tokens are equal too.
    """
    counts = np.diff(store.hypothesis_offset)
    if store.regime == "sample" and store.combination == "member":
        counts = -(-counts // store.n_member)
    kept = store.attributes.get("n_best", store.attributes.get("beam", 1))
    largest = max(int(counts.max(initial=1)), int(kept))
    texts = compare_texts(store)
    sentence = np.searchsorted(store.hypothesis_offset, texts.surplus, side="right")
    return {
        "regime": store.regime,
        "beam": {
            "largest": largest,
            "used": {str(beam): min(int(beam), largest) for beam in beams},
            "sentences_with_fewer": {str(beam): int((counts < beam).sum()) for beam in beams},
        },
        "equal_texts": {
            "sentences": len(np.unique(sentence)),
            "hypotheses": len(texts.surplus),
            "with_equal_tokens": int(texts.repeated.sum()),
        },
    }


def log_hypotheses(reports: Sequence[Mapping[str, Any]]) -> None:
    """Log once per run what the stores lack: hypotheses up to B, and distinct texts.

    reports: the checks.json of all stores. References have one hypothesis and are left out.
    """
    decoded = [report for report in reports if report["regime"] != "teacher_forcing"]
    for beam in decoded[0]["beam"]["used"] if decoded else ():
        short = [report for report in decoded if report["beam"]["used"][beam] < int(beam)]
        if short:
            _log.warning(
                "uncertainty.beam=%s: %d of %d stores have fewer hypotheses per sentence; %d of "
                "their %d sentences have fewer than %s. Their measures are those of B=%s, and the "
                "cells say so. Decode with a larger decode.beam, or set a smaller "
                "uncertainty.beam.",
                beam,
                len(short),
                len(decoded),
                sum(report["beam"]["sentences_with_fewer"][beam] for report in short),
                sum(report["sentences"] for report in short),
                beam,
                ", ".join(map(str, sorted({report["beam"]["used"][beam] for report in short}))),
            )
    searched = [report for report in decoded if report["regime"] in SEARCHES]
    equal = [report for report in searched if report["equal_texts"]["hypotheses"]]
    if equal:
        _log.info(
            "uncertainty.equal_texts=%s: in %d of %d stores of searches, %d of %d sentences have "
            "hypotheses with equal texts; %d hypotheses share their text with a better one, %d of "
            "them their tokens too",
            equal[0]["settings"]["equal_texts"],
            len(equal),
            len(searched),
            sum(report["equal_texts"]["sentences"] for report in equal),
            sum(report["sentences"] for report in equal),
            sum(report["equal_texts"]["hypotheses"] for report in equal),
            sum(report["equal_texts"]["with_equal_tokens"] for report in equal),
        )
