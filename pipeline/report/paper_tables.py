"""The paper's result tables by label: title, layout and notes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import ConfigError
from pipeline.metrics.cell import COPY_THROUGH
from pipeline.report.cells import CellIndex
from pipeline.report.layouts import MeasureLayout, PerformanceLayout
from pipeline.report.paper_numbers import TABLE_NUMBERS, paper_cells
from pipeline.report.table import Table

_COMBINATIONS = {
    ("single", "-"): "Single, mean ± spread",
    ("random_init", "prex"): "Ensemble, PrEx",
    ("random_init", "expr"): "Ensemble, ExPr",
}
_KINDS = {
    ("checkpoint_average", "-"): "Checkpoint average, mean ± spread",
    ("checkpoint", "prex"): "Checkpoint ensemble, mean ± spread",
    ("random_init", "prex"): "Ensemble from random initialisations",
}
# Each caption: what is shown, then how this table differs from similar ones, then the metric.
_PRR = "Sentence error detection{}: PRR in %"
_AUPR = "Token error detection{}: AUPR in %"
_OOD = "Out-of-domain detection{}: ROC-AUC in %"
_PREX = "Hypotheses decoded with PrEx, the product of expectations."
_EXPR = "Hypotheses decoded with ExPr, the expectation of products."
_AGAINST = "ROC-AUC compares each test set with the in-domain test set of its task."
_COPIED = (
    "Copied share (not in the paper): the share of the source's words that the best hypothesis "
    "repeats. It is never set in bold.",
)
_TER = ("% TER: the share of tokens that are errors, which is the average precision of chance.",)
_SET = ("task", "test_set")
_IN_BEAM = (*_SET, "T", "B")

_TOKENS = ("test_set",)
_WITH_COPIED = MeasureLayout(
    _OOD.format(""), _IN_BEAM, (COPY_THROUGH,), (_PREX, _AGAINST, *_COPIED)
)
LAYOUTS: dict[str, PerformanceLayout | MeasureLayout] = {
    "tab:nmt-bleu-asr-wer": PerformanceLayout(
        "Predictive performance: BLEU, WER and NLL", _COMBINATIONS, with_own_metrics=True
    ),
    "tab:sequence-error-detection": MeasureLayout(_PRR.format(""), _SET, notes=(_PREX,)),
    "tab:token-error-detection": MeasureLayout(_AUPR.format(""), _TOKENS, notes=(_PREX, *_TER)),
    "tab:ood-detection": _WITH_COPIED,
    "tab:ood-detection-adhoc": MeasureLayout(
        _OOD.format(" by heuristic measures"), _IN_BEAM, notes=(_PREX, _AGAINST)
    ),
    "tab-apn:nmt-bleu-nll": PerformanceLayout(
        "Predictive performance in translation", _COMBINATIONS
    ),
    "tab-apn:asr-wer-nll": PerformanceLayout(
        "Predictive performance in speech recognition", _COMBINATIONS
    ),
    "apn-tab:sequence-error-detection-expr": MeasureLayout(
        _PRR.format(" for ExPr hypotheses"), _SET, notes=(_EXPR,)
    ),
    "tab-apn:token-error-detection-prex": MeasureLayout(
        _AUPR.format(" by all measures"), _TOKENS, notes=(_PREX, *_TER)
    ),
    "tab-apn:token-error-detection-expr": MeasureLayout(
        _AUPR.format(" for ExPr hypotheses"), _TOKENS, notes=(_EXPR, *_TER)
    ),
    "tab-app:ood-detection-prex": replace(_WITH_COPIED, title=_OOD.format(", EN-FR")),
    "tab-apn:ood-detection-expr": MeasureLayout(
        _OOD.format(" for ExPr hypotheses"), _IN_BEAM, notes=(_EXPR, _AGAINST)
    ),
    "apn-tab:ood-detection-tf": MeasureLayout(
        _OOD.format(" by teacher forcing"), _SET, notes=(_AGAINST,)
    ),
    "apn-tab:sequence-error-detection-noln": MeasureLayout(
        _PRR.format(" with and without length normalisation"),
        (*_SET, "length_norm"),
        notes=(
            _PREX,
            "In the rows with length normalisation the paper repeats its numbers for hypotheses "
            "decoded with ExPr.",
        ),
    ),
    "apn-tab:ood-detection-noln": MeasureLayout(
        _OOD.format(" with and without length normalisation"),
        (*_IN_BEAM, "length_norm"),
        notes=(_PREX, _AGAINST),
    ),
    "apn-tab:ood-detection-adhoc": MeasureLayout(
        _OOD.format(" by all heuristic measures"),
        _IN_BEAM,
        notes=(_PREX, _AGAINST),
    ),
    "tab-apn:nmt-bleu-nll-cpt": PerformanceLayout(
        "Predictive performance in translation by kind of ensemble", _KINDS
    ),
    "tab-apn:asr-wer-nll-cpt": PerformanceLayout(
        "Predictive performance in speech recognition by kind of ensemble", _KINDS
    ),
    "tab-app:ood-detection-prex-cpt": MeasureLayout(
        _OOD.format(" by kind of ensemble"),
        (*_SET, "ensemble"),
        notes=(_PREX, _AGAINST, "The second column that the paper heads H is K (EPKL)."),
    ),
}


def is_about(table: Table, tasks: Sequence[str]) -> bool:
    """Whether one of the tasks is in a table of the paper."""
    return any(cell.key.task in tasks for cell in paper_cells(table.label))


def paper_table(label: str, index: CellIndex) -> Table:
    """One of the paper's result tables. Raises ConfigError for a label that the paper lacks."""
    if label not in LAYOUTS:
        raise ConfigError(
            f"report.paper_tables: the paper has no table {label}. "
            f"Choose from {', '.join(LAYOUTS)}."
        )
    table = LAYOUTS[label].table(label, paper_cells(label), index)
    return replace(table, number=TABLE_NUMBERS[label])
