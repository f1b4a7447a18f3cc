"""The paper's result tables: label -> shape, title and rows."""

from __future__ import annotations

from dataclasses import replace

from pipeline.errors import ConfigError
from pipeline.metrics.cell import COPY_THROUGH
from pipeline.report.cells import CellIndex
from pipeline.report.layouts import MeasureLayout, PerformanceLayout
from pipeline.report.paper import paper_cells
from pipeline.report.table import Table

_COMBINATIONS = {
    ("single", "-"): "Single, mean ± spread",
    ("random_init", "prex"): "Ensemble, PrEx",
    ("random_init", "expr"): "Ensemble, ExPr",
}
_KINDS = {
    ("checkpoint_average", "-"): "Average of checkpoints, mean ± spread",
    ("checkpoint", "prex"): "Ensemble of checkpoints, mean ± spread",
    ("random_init", "prex"): "Ensemble of random initialisations",
}
_OOD = "Out-of-domain detection: ROC-AUC in percent against the in-domain test set"
_PRR = "Error detection on sentences: prediction rejection ratio in percent"
_AUPR = "Error detection on tokens: average precision in percent"
_PREX = "Hypotheses of the product of expectations."
_EXPR = "Hypotheses of the expectation of products."
_COPIED = (
    "Copied share, beyond the paper: how much of the source's words the best hypothesis repeats; "
    "it takes no part in what is bold.",
)
_TER = ("% TER, the share of tokens that are errors, is what chance would reach.",)
_SET = ("task", "test_set")
_IN_BEAM = (*_SET, "T", "B")

_PERFORMANCE = PerformanceLayout(
    "Predictive performance of single models and of both ensemble combinations", _COMBINATIONS
)
_CHECKPOINTS = PerformanceLayout("Predictive performance of kinds of ensembles", _KINDS)
LAYOUTS: dict[str, PerformanceLayout | MeasureLayout] = {
    "tab:nmt-bleu-asr-wer": replace(_PERFORMANCE, with_own_metrics=True),
    "tab:sequence-error-detection": MeasureLayout(_PRR, _SET, notes=(_PREX,)),
    "tab:token-error-detection": MeasureLayout(_AUPR, ("test_set",), notes=(_PREX, *_TER)),
    "tab:ood-detection": MeasureLayout(_OOD, _IN_BEAM, (COPY_THROUGH,), (_PREX, *_COPIED)),
    "tab:ood-detection-adhoc": MeasureLayout(
        "Information-theoretic and heuristic measures: ROC-AUC in percent", _IN_BEAM
    ),
    "tab-apn:nmt-bleu-nll": _PERFORMANCE,
    "tab-apn:asr-wer-nll": _PERFORMANCE,
    "apn-tab:sequence-error-detection-expr": MeasureLayout(_PRR, _SET, notes=(_EXPR,)),
    "tab-apn:token-error-detection-prex": MeasureLayout(_AUPR, ("test_set",), notes=(_PREX, *_TER)),
    "tab-apn:token-error-detection-expr": MeasureLayout(_AUPR, ("test_set",), notes=(_EXPR, *_TER)),
    "tab-app:ood-detection-prex": MeasureLayout(_OOD, _IN_BEAM, (COPY_THROUGH,), (_PREX, *_COPIED)),
    "tab-apn:ood-detection-expr": MeasureLayout(_OOD, _IN_BEAM, notes=(_EXPR,)),
    "apn-tab:ood-detection-tf": MeasureLayout(f"{_OOD}, by teacher forcing", _SET),
    "apn-tab:sequence-error-detection-noln": MeasureLayout(
        f"{_PRR}, with and without length normalisation",
        (*_SET, "length_norm"),
        notes=(
            _PREX,
            "The paper's rows with length normalisation hold its numbers of the other hypotheses, "
            "those of the expectation of products.",
        ),
    ),
    "apn-tab:ood-detection-noln": MeasureLayout(
        f"{_OOD}, with and without length normalisation", (*_IN_BEAM, "length_norm"), notes=(_PREX,)
    ),
    "apn-tab:ood-detection-adhoc": MeasureLayout(
        "Information-theoretic and heuristic measures: ROC-AUC in percent", _IN_BEAM
    ),
    "tab-apn:nmt-bleu-nll-cpt": _CHECKPOINTS,
    "tab-apn:asr-wer-nll-cpt": _CHECKPOINTS,
    "tab-app:ood-detection-prex-cpt": MeasureLayout(
        f"{_OOD}, by kinds of ensembles",
        (*_SET, "ensemble"),
        notes=(_PREX, "The column that the paper heads H a second time is K (EPKL)."),
    ),
}


def paper_table(label: str, index: CellIndex) -> Table:
    """One of the paper's result tables by its label; ConfigError for a label it does not have."""
    if label not in LAYOUTS:
        raise ConfigError(
            f"report.paper_tables must list labels of {', '.join(LAYOUTS)}, got {label}"
        )
    return LAYOUTS[label].table(label, paper_cells(label), index)
