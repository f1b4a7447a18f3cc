"""Predictive performance against the number of members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from pipeline.metrics.performance import sentence_nll
from pipeline.quality.weighted_metric import point_estimate
from pipeline.report.figures.drawing import Sheet, look, panels
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.statistics.subsets import subsets
from pipeline.store import SUBSET, open_store
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_SUBSETS = 20
_MOST_TICKS = 8
_SHIFT = 0.06  # of the dots of each combination, in members
_COLUMNS = ["test_set", "metric", "hypotheses", "members", "subset", "value"]
_UNITS = {"nll": "NLL, nats per token", "bleu": "BLEU, percent", "wer_percent": "WER, percent"}
_Row: TypeAlias = tuple[str, str, str, int, str, float]


def ablation(evidence: TaskEvidence) -> Sheet:
    """NLL, and BLEU or WER, of each subset of the members, against their number.

    Data: one row per subset with test_set, metric, hypotheses (the combination), members (their
    number), subset (their names) and value. NLL is computed for all subsets of a size, or 20 drawn
    with the run's seed; BLEU and WER for the subsets that were decoded. Source:
    `fig-apn:ablation-prediction`, `fig-apn:ablation-prediction-asr`.
    """
    return Sheet(
        "Performance against the number of members",
        "Each dot is a subset of the ensemble's members, the line is their mean, and the number "
        "of subsets is in brackets below the number of members. NLL uses all subsets of a size, or "
        f"{_MOST_SUBSETS} random ones. BLEU and WER use the subsets that were decoded.",
        pd.DataFrame([*_nll_values(evidence), *_quality_values(evidence)], columns=_COLUMNS),
        _draw,
        "no in-domain test set was decoded or scored by teacher forcing",
    )


def _nll_values(evidence: TaskEvidence) -> Iterator[_Row]:
    for test_set, part in evidence.in_domain(evidence.forced()).items():
        names = evidence.decodes[part].members
        with open_store(evidence.decodes[part].path) as store:
            logprob, offset = store.read("/token/logprob"), store.token_offset
        for size in range(1, logprob.shape[1] + 1):
            for members in subsets(logprob.shape[1], size, _MOST_SUBSETS, evidence.evaluation.seed):
                nll = sentence_nll(logprob[:, members], offset)
                for hypotheses, values in (("prex", nll.prex), ("expr", nll.expr)):
                    if len(values) and np.isfinite(values).all():
                        subset = " ".join(names[member] for member in members)
                        yield test_set, "nll", hypotheses, size, subset, float(values.mean())


def _quality_values(evidence: TaskEvidence) -> Iterator[_Row]:
    """BLEU or WER of single members, of decoded subsets and of the whole ensemble."""
    quality = evidence.quality
    whole_parts = {part for name in POSTERIORS for part in evidence.searched(name).values()}
    whole = {name for part in whole_parts for name in evidence.decodes[part].members}
    for part, decode in evidence.decodes.items():
        cell, used = decode.cell, decode.scorable
        is_shown = part in whole_parts or (
            decode.is_search and cell.ensemble in ("single", SUBSET) and {*decode.members} <= whole
        )
        if not is_shown or not decode.in_domain or not used.any():
            continue
        metric = quality.weighted(*decode.scored_texts(used))
        value = point_estimate(metric, int(used.sum()))
        # A single member is the same under both combinations.
        for hypotheses in POSTERIORS if cell.hypotheses == "-" else (cell.hypotheses,):
            members = " ".join(decode.members)
            yield cell.test_set, quality.name, hypotheses, len(decode.members), members, value


def _draw(data: pd.DataFrame) -> Figure:
    test_sets = list(dict.fromkeys(data["test_set"]))
    metrics = dict.fromkeys(zip(data["test_set"], data["metric"], strict=True))
    shown = sorted(metrics, key=lambda pair: test_sets.index(pair[0]))
    figure, axes = panels(len(shown), most_columns=2)
    for axis, (test_set, metric) in zip(axes, shown, strict=True):
        rows = data[(data["test_set"] == test_set) & (data["metric"] == metric)]
        ends: dict[str, tuple[float, float]] = {}
        for name, shift in (("prex", -_SHIFT), ("expr", _SHIFT)):
            points = rows[rows["hypotheses"] == name]
            if points.empty:
                continue
            mean = points.groupby("members")["value"].mean()
            style = look(name) | {"marker": ""}
            axis.plot(mean.index + shift, mean, **style)
            dots = {"color": style["color"], "marker": look(name)["marker"], "alpha": 0.5}
            axis.scatter(points["members"] + shift, points["value"], s=9, linewidths=0, **dots)
            ends[name] = (mean.index[-1] + shift, mean.iloc[-1])
        axis.margins(x=0.12, y=0.12)
        _label_line_ends(axis, ends)
        axis.set_title(test_set)
        axis.set_ylabel(_UNITS.get(metric, metric))
        _count_subsets(axis, rows)
    return figure


def _label_line_ends(axis: Axes, ends: dict[str, tuple[float, float]]) -> None:
    """Write the name of each combination at the end of its line, the higher one above the other."""
    ordered = sorted(ends, key=lambda name: ends[name][1])
    for name, side in zip(ordered, ("top", "bottom"), strict=False):
        axis.annotate(
            POSTERIORS[name],
            ends[name],
            xytext=(6, 0),
            textcoords="offset points",
            color=look(name)["color"],
            fontsize=7,
            va=side if len(ends) > 1 else "center",
        )


def _count_subsets(axis: Axes, rows: pd.DataFrame) -> None:
    """Label each number of members with the number of subsets, per combination if they differ."""
    counts = rows.groupby(["members", "hypotheses"]).size().unstack(fill_value=0)
    names = [name for name in POSTERIORS if name in counts]
    differ = (counts.nunique(axis=1) > 1).any()
    sizes = counts.index[:: -(-len(counts) // _MOST_TICKS)]
    of_size = [counts.loc[size, names if differ else names[:1]] for size in sizes]
    labels = [
        f"{size}\n({', '.join(map(str, count))})"
        for size, count in zip(sizes, of_size, strict=True)
    ]
    axis.set_xticks(sizes, labels)
    of_which = f": {', '.join(POSTERIORS[name] for name in names)}" if differ else ""
    axis.set_xlabel(f"members (subsets{of_which})")
