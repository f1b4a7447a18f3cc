"""Tables beyond the paper: its questions, asked of test sets and measures that it lacks."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from pipeline.metrics.calibration import LEVELS
from pipeline.metrics.cell import COPY_THROUGH, NO_REFERENCE, Cell
from pipeline.report.cells import CellIndex
from pipeline.report.layouts import BEST_NOTE, MeasureLayout
from pipeline.report.names import MODELS, measure_header, task_name
from pipeline.report.paper import PaperCell, paper_cells
from pipeline.report.table import Heading, Row, Table, TableCell, mark_best

_SETS = ("TYPO", "CUT", "COPY")
_TOKEN_RATE = "token_error_rate_percent"
# What is flagged -> (what stands behind the name of a measure, the column of its base rate).
_FLAGGED = {
    "Tokens, as in the paper": ("", _TOKEN_RATE),
    "Words, largest of their tokens": ("_word_max", "wrong_words_percent"),
    "Words, mean of their tokens": ("_word_mean", "wrong_words_percent"),
    "Words missing before a token": ("_before_deletion", "before_deletion_percent"),
}


def ood_detection(cells: pd.DataFrame) -> Table:
    """ROC-AUC of the paper's measures on typing errors, cut sources and sources to be copied."""
    index = CellIndex(cells)
    tasks = [
        task
        for task in index.tasks
        if any(index.keys(task=task, test_set=test_set) for test_set in _SETS)
    ]
    of_one_set = [
        cell.key
        for cell in paper_cells("tab:ood-detection")
        if (cell.key.task, cell.key.test_set) == ("nmt_ende", "L-DE")
    ]
    wanted = [
        PaperCell(key._replace(task=task, test_set=test_set), None, None)
        for task in tasks or ["nmt_ende"]
        for test_set in _SETS
        for key in of_one_set
    ]
    layout = MeasureLayout(
        "Out-of-domain detection beyond the paper: ROC-AUC in percent against the in-domain set",
        ("task", "test_set", "T", "B"),
        (COPY_THROUGH,),
        (
            "TYPO: typing errors; CUT: the source cut short; COPY: the target language as source.",
            "The copied share takes no part in what is bold.",
        ),
    )
    return layout.table("beyond:ood-detection", wanted, index)


def copy_through(cells: pd.DataFrame) -> Table:
    """Percent of the source's words that the output repeats, of each test set and model."""
    index = CellIndex(cells)
    copied = [cell.key for cell in index.cells if cell.metric == "copied_percent"]
    sets = list(dict.fromkeys((key.task, key.test_set) for key in copied))
    rows: list[Row] = []
    for task, test_set in sets:
        key = next(one for one in copied if (one.task, one.test_set) == (task, test_set))
        own = [
            key._replace(
                ensemble=index.ensemble(task, ensemble) if hypotheses != "-" else ensemble,
                hypotheses=hypotheses,
            )
            for ensemble, hypotheses in MODELS
        ]
        cells_of_row = tuple(TableCell(index.cell(one)) for one in own)
        new_task = bool(rows) and rows[-1].labels[0] != task_name(task)
        rows.append(Row((task_name(task), test_set), cells_of_row, rule=new_task))
    return Table(
        "beyond:copy-through",
        "Copy-through: percent of the source's words that the translation repeats",
        ((Heading("Task"), Heading("Test set"), *(Heading(name) for name in MODELS.values())),),
        tuple(rows),
        ("A word is a run of letters and digits; names and numbers are copied rightly.",),
    )


def token_error_detection(cells: pd.DataFrame) -> Table:
    """Average precision of the paper's token measures for words and for missing words."""
    index = CellIndex(cells)
    paper = [one.key.column for one in paper_cells("tab-apn:token-error-detection-prex")]
    measures = [name for name in dict.fromkeys(paper) if name != _TOKEN_RATE]
    rows: list[Row] = []
    for rate in index.cells:
        if (rate.column, rate.hypotheses) != (_TOKEN_RATE, "prex") or rate.reason == NO_REFERENCE:
            continue
        of_set = rate.key
        for place, (name, (suffix, base)) in enumerate(_FLAGGED.items()):
            found = [
                TableCell(index.cell(of_set._replace(column=f"{measure}{suffix}", metric="aupr")))
                for measure in measures
            ]
            base_rate = TableCell(index.cell(of_set._replace(column=base)))
            labels = (task_name(of_set.task), of_set.test_set, of_set.ensemble, name)
            rule = bool(rows) and place == 0
            rows.append(Row(labels, (*mark_best(found), base_rate), rule=rule))
    groups, names = measure_header(("Task", "Test set", "Ensemble", "Flagged"), measures, "1")
    return Table(
        "beyond:token-error-detection",
        "Error detection on tokens, words and missing words: average precision in percent",
        ((*groups, Heading("")), (*names, Heading("Base rate, %"))),
        tuple(rows),
        (
            "Hypotheses of the product of expectations.",
            "A missing word is looked for in the token that begins the next word, or in EOS.",
            "The base rate, the share of what is to be flagged, is what chance would reach.",
            BEST_NOTE.format(group="row"),
        ),
    )


_CALIBRATION_NOTES = (
    "Token: whether it matches the reference in a Levenshtein alignment of sub-word units.",
    "Sequence: sentence BLEU / 100 or 1 - WER (at least 0) against the geometric mean of the "
    "token probabilities; only differences between systems tell something.",
)


def calibration(cells: pd.DataFrame) -> Table:
    """Expected calibration error in percent of every in-domain test set, model and level."""
    index = CellIndex(cells)
    keys = [cell.key for cell in index.cells if cell.metric == "ece"]
    rows: list[Row] = []
    for task, test_set in dict.fromkeys((key.task, key.test_set) for key in keys):
        first = next(key for key in keys if (key.task, key.test_set) == (task, test_set))
        for level in LEVELS:
            own = [
                first._replace(
                    ensemble=index.ensemble(task, ensemble) if hypotheses != "-" else ensemble,
                    hypotheses=hypotheses,
                    column=f"{level}_confidence",
                )
                for ensemble, hypotheses in MODELS
            ]
            labels = (task_name(task), test_set, level)
            rule = bool(rows) and rows[-1].labels[1] != test_set
            rows.append(Row(labels, tuple(TableCell(index.cell(key)) for key in own), rule))
    of = (Heading("Task"), Heading("Test set"), Heading("Of"))
    return Table(
        "beyond:calibration",
        "Expected calibration error of confidence in percent",
        ((*of, *(Heading(name) for name in MODELS.values())),),
        tuple(rows),
        _CALIBRATION_NOTES,
    )


# Metric of the cells of a rule -> (the right metric, the rule in words).
_RULES = {
    "prr_sbleu_floor": ("prr", "sentence BLEU with floor 1.1"),
    "prr_shifted": ("prr", "curve without its end, ties in file order"),
    "prr_released": ("prr", "both rules"),
    "aupr_trapezoid": ("aupr", "trapezoids of precision and recall"),
}
_RULE_NOTES = (
    "Each cell: the number by the released rule less the right one; both stand on the same "
    "sentences.",
    "With length normalisation; test sets without references have no rows.",
    "Made with metrics=released; a run without it has no such rows.",
)


def sentence_rules(cells: pd.DataFrame) -> Table:
    """Points of prediction rejection ratio that each released rule adds."""
    return _table(
        "beyond:released-rules",
        "What the released code's rules add to the prediction rejection ratio, in points",
        _columns("tab:sequence-error-detection"),
        "prr",
        CellIndex(cells),
    )


def token_rules(cells: pd.DataFrame) -> Table:
    """Points of average precision that the released rule adds."""
    return _table(
        "beyond:released-token-rules",
        "What the released code's rule adds to the average precision of tokens, in points",
        [one for one in _columns("tab-apn:token-error-detection-prex") if "rate" not in one],
        "aupr",
        CellIndex(cells),
    )


def _table(label: str, title: str, columns: list[str], right: str, index: CellIndex) -> Table:
    rows: list[Row] = []
    for metric, (of_right, rule) in _RULES.items():
        found = [
            cell.key._replace(column="")
            for cell in index.cells
            if (cell.metric, of_right, cell.length_norm) == (metric, right, "true")
            and cell.reason != NO_REFERENCE
        ]
        groups = dict.fromkeys(found)
        for key in groups:
            labels = (task_name(key.task), key.test_set, key.ensemble, key.hypotheses, rule)
            both = [
                (index.cell(key._replace(column=one)), key._replace(column=one, metric=right))
                for one in columns
            ]
            shown = [TableCell(_difference(cell, index.cell(other))) for cell, other in both]
            rows.append(Row(labels, tuple(shown), rule=bool(rows) and key == next(iter(groups))))
    names = ("Task", "Test set", "Ensemble", "Hypotheses", "Rule")
    return Table(label, title, measure_header(names, columns, "1"), tuple(rows), _RULE_NOTES)


def _difference(released: Cell, right: Cell) -> Cell:
    """Released less right, without an interval; the reason of the one that has no value."""
    metric = f"{released.metric}_less_{right.metric}"
    cell = replace(released, metric=metric, spread=None, low=None, high=None)
    if released.value is None or right.value is None:
        return replace(cell, value=None, reason=released.reason or right.reason)
    return replace(cell, value=released.value - right.value, reason="")


def _columns(label: str) -> list[str]:
    return list(dict.fromkeys(cell.key.column for cell in paper_cells(label)))
