"""Three tables of the paper in its layout: (cells of all tasks) -> table.

Rows and columns are the paper's; those of tasks that were not run are left out. Where a run has
another ensemble, temperature or beam than the paper, its own stand in their place.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pipeline.metrics.cell import Key
from pipeline.report.cells import CellIndex
from pipeline.report.paper_table import PaperTable
from pipeline.report.table import Heading, Row, Table, mark_best

_TASKS = {"nmt_ende": "EN-DE", "nmt_enfr": "EN-FR", "asr": "ASR"}
_METRICS = {"bleu": "BLEU", "wer_percent": "WER %", "nll": "NLL, nats per token"}
_MODELS = {"-": "Single, mean ± spread", "prex": "Ensemble, PrEx", "expr": "Ensemble, ExPr"}
_GROUPS = (
    Heading("PrEx, total", 2),
    Heading("ExPr, total", 2),
    Heading("PrEx, knowledge", 4),
    Heading("ExPr, knowledge", 4),
)
_LETTERS = {"entropy": "H", "mi": "I", "epkl": "K", "rmi": "M"}
_ESTIMATORS = {"c": "C-IW", "s": "S-IW"}
_BEST_NOTE = (
    "Bold: the best of its {group}, and alike what lies within the 95 % interval of the best."
)


def predictive_performance(cells: pd.DataFrame) -> Table:
    """Corpus quality and negative log-likelihood of single models and of both combinations.

    Metrics of the user's own (metrics.extra_metrics) follow the paper's columns.
    """
    label = "tab:nmt-bleu-asr-wer"
    index = CellIndex(cells)
    paper = PaperTable(label, index)
    columns = [key for key in paper.keys if key.ensemble == "single"] + _own_metrics(index)
    models = list(dict.fromkeys((key.ensemble, key.hypotheses) for key in paper.keys))
    grid = [
        mark_best(
            [
                paper.cell(key._replace(ensemble=ensemble, hypotheses=hypotheses))
                for ensemble, hypotheses in models
            ]
        )
        for key in columns
    ]
    rows = [
        Row((_MODELS[hypotheses],), tuple(column[place] for column in grid))
        for place, (_, hypotheses) in enumerate(models)
    ]
    return Table(
        label,
        "Predictive performance of single models and of both ensemble combinations",
        (
            (Heading("Model"), *_spans([_METRICS.get(key.metric, key.metric) for key in columns])),
            (Heading(""), *(Heading(_set_name(key)) for key in columns)),
        ),
        tuple(rows),
        (_BEST_NOTE.format(group="column"),),
    )


def sequence_error_detection(cells: pd.DataFrame) -> Table:
    """Prediction rejection ratios of the twelve information-theoretic measures at B = 1."""
    label = "tab:sequence-error-detection"
    paper = PaperTable(label, CellIndex(cells))
    rows: list[Row] = []
    for task, test_set in paper.test_sets:
        row = mark_best([paper.cell(key) for key in paper.keys_of(task, test_set)])
        other_task = bool(rows) and rows[-1].labels[0] != _TASKS[task]
        rows.append(Row((_TASKS[task], test_set), tuple(row), rule=other_task))
    return Table(
        label,
        "Error detection on sentences: prediction rejection ratio in percent",
        _measure_header(("Task", "Test set"), paper.columns, "1"),
        tuple(rows),
        (_BEST_NOTE.format(group="row"),),
    )


def ood_detection(cells: pd.DataFrame) -> Table:
    """ROC-AUC of the twelve information-theoretic measures against the in-domain test set."""
    label = "tab:ood-detection"
    paper = PaperTable(label, CellIndex(cells))
    rows: list[Row] = []
    for task, test_set in paper.test_sets:
        settings = paper.settings(task, test_set)
        first = paper.keys_of(task, test_set)[0]
        keys = [
            first._replace(T=temperature, B=beam, column=column)
            for temperature, beam in settings
            for column in paper.columns
        ]
        marked = mark_best([paper.cell(key) for key in keys])
        width = len(paper.columns)
        for place, setting in enumerate(settings):
            row = marked[place * width : (place + 1) * width]
            labels = (_TASKS[task], test_set, *setting)
            rows.append(Row(labels, tuple(row), rule=bool(rows) and place == 0))
    return Table(
        label,
        "Out-of-domain detection: ROC-AUC in percent against the in-domain test set",
        _measure_header(("Task", "OOD set", "T", "B"), paper.columns, "B"),
        tuple(rows),
        (_BEST_NOTE.format(group="test set"),),
    )


def _own_metrics(index: CellIndex) -> list[Key]:
    """The columns of the user's own metrics, as keys of their single models."""
    keys = [
        key
        for key in (cell.key for cell in index.cells)
        if key.column == key.metric and key.metric not in _METRICS
    ]
    return list(dict.fromkeys(key._replace(ensemble="single", hypotheses="-") for key in keys))


def _set_name(key: Key) -> str:
    return f"ASR {key.test_set}" if key.task == "asr" else _TASKS[key.task]


def _spans(names: Sequence[str]) -> list[Heading]:
    """Headings over runs of equal names."""
    headings: list[Heading] = []
    for name in names:
        if headings and headings[-1].text == name:
            headings[-1] = Heading(name, headings[-1].span + 1)
        else:
            headings.append(Heading(name))
    return headings


def _measure_header(
    labels: Sequence[str], columns: Sequence[str], beam: str
) -> tuple[tuple[Heading, ...], ...]:
    return (
        (*(Heading(label) for label in labels), *_GROUPS),
        (*(Heading("") for _ in labels), *(_measure(name, beam) for name in columns)),
    )


def _measure(name: str, beam: str) -> Heading:
    _, kind, estimator = name.split("_")
    letter, way = _LETTERS[kind], _ESTIMATORS[estimator]
    latex = rf"$\hat{{\mathcal{{{letter}}}}}^{{({beam})}}_{{\mathrm{{{way}}}}}$"
    return Heading(f"{letter} {way}", latex=latex)
