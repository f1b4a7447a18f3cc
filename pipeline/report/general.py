"""Tables of test sets that the paper does not have, and of a user's own measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from pipeline.metrics.cell import COPY_THROUGH, NO_REFERENCE, TEXT_MEASURES, Cell, Key
from pipeline.report.best import BEST_NOTE, competing
from pipeline.report.cells import CellIndex
from pipeline.report.ensemble_names import ensemble_name
from pipeline.report.names import METRICS, decoder_name, measure_header
from pipeline.report.paper_numbers import is_beyond_paper, paper_columns
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.store import SEARCHES
from pipeline.uncertainty.measures_of_sequences import SEQUENCE_MEASURES
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

# Metrics that compare a measure with errors or with another test set.
_DETECTION = {"prr": "Sentence error detection", "roc_auc": "Out-of-domain detection"}
_SETTINGS = {"ensemble": "Ensemble", "hypotheses": "Decoded by", "T": "T", "B": "B"}
_OWN_METRICS = (
    "Metrics of metrics.extra_metrics have no interval: they are called once per decode, with all "
    "of its sentences."
)
_BEST_OF_SET = BEST_NOTE.format(group="test set")


def performance(cells: pd.DataFrame) -> Table:
    """Quality, NLL and a user's own metrics, one row per model of each test set."""
    index = CellIndex(cells)
    own = [
        cell
        for cell in _cells_beyond_paper(index)
        if cell.metric == cell.column and cell.metric not in index.scores
    ]
    metrics = list(dict.fromkeys(cell.metric for cell in own))
    of_task = {(cell.task, cell.metric): cell.key for cell in own}
    rows: list[Row] = []
    for task, test_set in _test_sets(own):
        keys = [cell.key for cell in own if (cell.task, cell.test_set) == (task, test_set)]
        models = list(dict.fromkeys((key.ensemble, key.hypotheses) for key in keys))
        # Quality and NLL come from decodes of another regime. A metric that other test sets of the
        # task have gets a reason.
        of_metric = {
            metric: key._replace(test_set=test_set)
            for (of, metric), key in of_task.items()
            if of == task
        } | {key.metric: key for key in keys}
        columns = [
            competing(
                [
                    TableCell(index.cell(key._replace(ensemble=ensemble, hypotheses=hypotheses)))
                    for ensemble, hypotheses in models
                ]
            )
            if (key := of_metric.get(metric))
            else [None] * len(models)
            for metric in metrics
        ]
        for number, (ensemble, hypotheses) in enumerate(models):
            labels = (index.label(task), test_set, decoder_name(ensemble, hypotheses, ""))
            shown = tuple(column[number] for column in columns)
            rows.append(Row(labels, shown, rule=bool(rows) and number == 0))
    headings = ("Task", "Test set", "Model", *(METRICS.get(metric, metric) for metric in metrics))
    return Table(
        "beyond:performance",
        "Predictive performance on further test sets",
        (tuple(Heading(text) for text in headings),),
        tuple(rows),
        (_BEST_OF_SET, *([] if METRICS.keys() >= {*metrics} else [_OWN_METRICS])),
    )


def sentence_error_detection(cells: pd.DataFrame) -> Table:
    """PRR of the paper's measures and of a user's own, for the test sets beyond the paper."""
    index = CellIndex(cells)
    return _detection_table(
        "beyond:sentence-error-detection",
        "Sentence error detection on further test sets: PRR in %",
        [
            cell
            for cell in _cells_beyond_paper(index)
            if cell.metric == "prr" and cell.ensemble != "single"
        ],
        paper_columns("tab:sequence-error-detection"),
        ("ensemble", "hypotheses"),
        index,
    )


def ood_detection(cells: pd.DataFrame) -> Table:
    """ROC-AUC of the paper's measures and of a user's own, for the test sets beyond the paper."""
    index = CellIndex(cells)
    return _detection_table(
        "beyond:ood-detection",
        "Out-of-domain detection of further test sets: ROC-AUC in %",
        [
            cell
            for cell in _cells_beyond_paper(index)
            if cell.metric == "roc_auc"
            and cell.regime in SEARCHES
            and cell.hypotheses != "expr"
            and cell.ensemble != "single"
        ],
        [*paper_columns("tab:ood-detection"), COPY_THROUGH],
        ("ensemble", "T", "B"),
        index,
    )


def own_measures(cells: pd.DataFrame) -> Table:
    """PRR and ROC-AUC of a user's own measures, on every test set."""
    index = CellIndex(cells)
    own = [
        cell
        for cell in index.cells
        if cell.metric in _DETECTION and _is_own_measure(cell.column) and cell.regime in SEARCHES
    ]
    measures = list(dict.fromkeys(cell.column for cell in own))
    keys = dict.fromkeys(cell.key._replace(column="") for cell in own)
    rows = [
        Row(
            (
                index.label(key.task),
                key.test_set,
                decoder_name(key.ensemble, key.hypotheses, key.regime),
                _DETECTION[key.metric],
                key.T,
                key.B,
                "yes" if key.length_norm == "true" else "no",
            ),
            tuple(TableCell(index.cell(key._replace(column=name))) for name in measures),
        )
        for key in keys
    ]
    names = ("Task", "Test set", "Model", "Detected", "T", "B", "Length norm.")
    return Table(
        "beyond:own-measures",
        "Your own measures: PRR and ROC-AUC in %",
        (tuple(Heading(text) for text in (*names, *measures)),),
        tuple(rows),
    )


def _detection_table(
    label: str,
    title: str,
    own: Sequence[Cell],
    of_paper: Sequence[str],
    settings: tuple[str, ...],
    index: CellIndex,
) -> Table:
    """One row per test set and setting, one column per measure; length-normalised measures."""
    own = [cell for cell in own if cell.length_norm == "true"]
    added = [cell.column for cell in own if _is_own_measure(cell.column)]
    measures = list(dict.fromkeys([*of_paper, *added]))
    rows: list[Row] = []
    for task, test_set in _test_sets(own):
        keys = dict.fromkeys(
            cell.key._replace(column="")
            for cell in own
            if (cell.task, cell.test_set) == (task, test_set)
        )
        shown = [
            TableCell(index.cell(key._replace(column=name))) for key in keys for name in measures
        ]
        rivals = competing(shown)
        for number, key in enumerate(keys):
            labels = (index.label(task), test_set, *(_shown(key, name) for name in settings))
            of_row = rivals[number * len(measures) : (number + 1) * len(measures)]
            rows.append(Row(labels, tuple(of_row), rule=bool(rows) and number == 0))
    names = ["Task", "Test set", *(_SETTINGS[name] for name in settings)]
    return Table(label, title, measure_header(names, measures, "B"), tuple(rows), (_BEST_OF_SET,))


def _shown(key: Key, name: str) -> str:
    """A part of a key as the label of a row."""
    value = str(getattr(key, name))
    return ensemble_name(value) if name == "ensemble" else POSTERIORS.get(value, value)


def _is_own_measure(column: str) -> bool:
    return column not in SEQUENCE_MEASURES and column not in TEXT_MEASURES


def _test_sets(cells: Iterable[Cell]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((cell.task, cell.test_set) for cell in cells))


def _cells_beyond_paper(index: CellIndex) -> list[Cell]:
    """The cells of tasks and test sets that the paper's tables do not have.

    Test sets without references have no cells of metrics that need them.
    """
    return [cell for cell in index.cells if is_beyond_paper(cell) and cell.reason != NO_REFERENCE]
