"""The paper's result tables by label: title, layout and notes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import ConfigError
from pipeline.metrics.cell import COPY_THROUGH
from pipeline.report.cells import CellIndex
from pipeline.report.layouts import MeasureLayout, PerformanceLayout
from pipeline.report.paper_numbers import paper_cells
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
_OOD = "Out-of-domain (OOD) detection: ROC-AUC in percent against the in-domain test set"
_HEURISTIC = f"{_OOD}, heuristic measures"
_PRR = "Sentence-level error detection: prediction rejection ratio (PRR) in percent"
_AUPR = "Token-level error detection: average precision in percent"
_PREX = "Hypotheses decoded with PrEx, the product of expectations."
_EXPR = "Hypotheses decoded with ExPr, the expectation of products."
_COPIED = (
    "Copied share (not in the paper): the share of the source's words that the best hypothesis "
    "repeats. It is never set in bold.",
)
_TER = ("% TER: the share of tokens that are errors, which is the average precision of chance.",)
_SET = ("task", "test_set")
_IN_BEAM = (*_SET, "T", "B")

_PERFORMANCE = PerformanceLayout(
    "Predictive performance of single models and ensembles", _COMBINATIONS
)
_CHECKPOINTS = PerformanceLayout("Predictive performance by kind of ensemble", _KINDS)
LAYOUTS: dict[str, PerformanceLayout | MeasureLayout] = {
    "tab:nmt-bleu-asr-wer": replace(_PERFORMANCE, with_own_metrics=True),
    "tab:sequence-error-detection": MeasureLayout(_PRR, _SET, notes=(_PREX,)),
    "tab:token-error-detection": MeasureLayout(_AUPR, ("test_set",), notes=(_PREX, *_TER)),
    "tab:ood-detection": MeasureLayout(_OOD, _IN_BEAM, (COPY_THROUGH,), (_PREX, *_COPIED)),
    "tab:ood-detection-adhoc": MeasureLayout(_HEURISTIC, _IN_BEAM),
    "tab-apn:nmt-bleu-nll": _PERFORMANCE,
    "tab-apn:asr-wer-nll": _PERFORMANCE,
    "apn-tab:sequence-error-detection-expr": MeasureLayout(_PRR, _SET, notes=(_EXPR,)),
    "tab-apn:token-error-detection-prex": MeasureLayout(_AUPR, ("test_set",), notes=(_PREX, *_TER)),
    "tab-apn:token-error-detection-expr": MeasureLayout(_AUPR, ("test_set",), notes=(_EXPR, *_TER)),
    "tab-app:ood-detection-prex": MeasureLayout(_OOD, _IN_BEAM, (COPY_THROUGH,), (_PREX, *_COPIED)),
    "tab-apn:ood-detection-expr": MeasureLayout(_OOD, _IN_BEAM, notes=(_EXPR,)),
    "apn-tab:ood-detection-tf": MeasureLayout(f"{_OOD}, teacher forcing", _SET),
    "apn-tab:sequence-error-detection-noln": MeasureLayout(
        f"{_PRR}, with and without length normalisation",
        (*_SET, "length_norm"),
        notes=(
            _PREX,
            "In the rows with length normalisation the paper repeats its numbers for hypotheses "
            "decoded with ExPr.",
        ),
    ),
    "apn-tab:ood-detection-noln": MeasureLayout(
        f"{_OOD}, with and without length normalisation", (*_IN_BEAM, "length_norm"), notes=(_PREX,)
    ),
    "apn-tab:ood-detection-adhoc": MeasureLayout(_HEURISTIC, _IN_BEAM),
    "tab-apn:nmt-bleu-nll-cpt": _CHECKPOINTS,
    "tab-apn:asr-wer-nll-cpt": _CHECKPOINTS,
    "tab-app:ood-detection-prex-cpt": MeasureLayout(
        f"{_OOD}, by kind of ensemble",
        (*_SET, "ensemble"),
        notes=(_PREX, "The second column that the paper heads H is K (EPKL)."),
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
    return LAYOUTS[label].table(label, paper_cells(label), index)
