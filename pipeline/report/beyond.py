"""Tables that the paper does not have: copied words, calibration, words, the released rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from pipeline.errors import ConfigError
from pipeline.metrics.calibration import LEVELS
from pipeline.metrics.cell import NO_REFERENCE, Cell, Key
from pipeline.report.best import BEST_NOTE, competing
from pipeline.report.cells import CellIndex
from pipeline.report.ensemble_names import ensemble_name
from pipeline.report.names import MODELS, decoder_name, measure_header
from pipeline.report.paper_numbers import paper_columns
from pipeline.report.table import Heading, Row, Table, TableCell

_TOKEN_RATE = "token_error_rate_percent"
# What is to be detected -> (suffix of the measures' names, column of its base rate).
_TARGETS = {
    "Tokens, as in the paper": ("", _TOKEN_RATE),
    "Words, maximum over tokens": ("_word_max", "wrong_words_percent"),
    "Words, mean over tokens": ("_word_mean", "wrong_words_percent"),
    "Words missing before a token": ("_before_deletion", "before_deletion_percent"),
}
# Metric computed by a released rule -> (the same metric by the default rule, the rule in words).
_RELEASED_RULES = {
    "prr_sbleu_floor": ("prr", "sentence BLEU with floor 1.1"),
    "prr_shifted": ("prr", "curve without its end, ties in file order"),
    "prr_released": ("prr", "both rules"),
    "aupr_trapezoid": ("aupr", "area by the trapezoidal rule"),
}
_RELEASED_NOTES = (
    "Each cell is the value under the released rule minus the value under the default rule, for "
    "the same sentences.",
    "With length normalisation. Test sets without references have no rows.",
    "Requires metrics=released. Other runs have no rows.",
)


def tables_beyond_paper(
    functions: Mapping[str, Callable[[pd.DataFrame], Table]], cells: pd.DataFrame
) -> list[Table]:
    """Call each function of report.tables (label -> function) with the cells of all tasks.

    Raises ConfigError if a function does not return a Table.
    """
    tables = []
    for label, function in functions.items():
        table = function(cells)
        if not isinstance(table, Table):
            raise ConfigError(
                f"report.tables.{label}: the function must return a Table (got {table!r}). "
                "Name another function."
            )
        tables.append(table)
    return tables


def copy_through(cells: pd.DataFrame) -> Table:
    """Percentage of the source's words that the output repeats, per test set and model."""
    index = CellIndex(cells)
    keys = [cell.key for cell in index.cells if cell.metric == "copied_percent"]
    rows: list[Row] = []
    previous_task = None
    for key in _first_of_each_test_set(keys):
        labels = (index.label(key.task), key.test_set)
        rule = bool(rows) and key.task != previous_task
        rows.append(Row(labels, _cells_of_models(index, key), rule))
        previous_task = key.task
    return Table(
        "beyond:copy-through",
        "Copied words: share of the source's words that the translation repeats, in %",
        ((Heading("Task"), Heading("Test set"), *(Heading(name) for name in MODELS.values())),),
        tuple(rows),
        (
            "A word is a sequence of letters and digits. Names and numbers are often copied "
            "correctly.",
        ),
    )


def calibration(cells: pd.DataFrame) -> Table:
    """Expected calibration error in percent, per in-domain test set, level and model."""
    index = CellIndex(cells)
    keys = [cell.key for cell in index.cells if cell.metric == "ece"]
    rows = [
        Row(
            (index.label(key.task), key.test_set, level),
            _cells_of_models(index, key._replace(column=f"{level}_confidence")),
            rule=number > 0 and level == LEVELS[0],
        )
        for number, key in enumerate(_first_of_each_test_set(keys))
        for level in LEVELS
    ]
    labels = (Heading("Task"), Heading("Test set"), Heading("Level"))
    return Table(
        "beyond:calibration",
        "Expected calibration error (ECE) in %",
        ((*labels, *(Heading(name) for name in MODELS.values())),),
        tuple(rows),
        (
            "Token level: the probability of a token, compared with whether the token matches the "
            "reference in a Levenshtein alignment of subwords.",
            "Sequence level: the geometric mean of the token probabilities, compared with sentence "
            "BLEU / 100 or 1 - WER (at least 0). Only differences between systems are meaningful.",
        ),
    )


def token_error_detection(cells: pd.DataFrame) -> Table:
    """Average precision of the paper's token measures, also for words and missing words."""
    index = CellIndex(cells)
    measures = _measures_of("tab-apn:token-error-detection-prex")
    rows: list[Row] = []
    for rate in index.cells:
        if (rate.column, rate.hypotheses) != (_TOKEN_RATE, "prex") or rate.reason == NO_REFERENCE:
            continue
        key = rate.key
        rule = bool(rows)
        for target, (suffix, base) in _TARGETS.items():
            detection = [
                TableCell(index.cell(key._replace(column=f"{measure}{suffix}", metric="aupr")))
                for measure in measures
            ]
            base_rate = TableCell(index.cell(key._replace(column=base)))
            labels = (index.label(key.task), key.test_set, ensemble_name(key.ensemble), target)
            rows.append(Row(labels, (*competing(detection), base_rate), rule))
            rule = False
    groups, names = measure_header(("Task", "Test set", "Ensemble", "Detected"), measures, "1")
    return Table(
        "beyond:token-error-detection",
        "Detection of wrong tokens, wrong words and missing words: AUPR in %",
        ((*groups, Heading("")), (*names, Heading("Base rate, %"))),
        tuple(rows),
        (
            "Hypotheses decoded with PrEx, the product of expectations.",
            "A missing word is attributed to the first token of the next word, or to EOS.",
            "Base rate: the share of items to be detected, which is the average precision of "
            "chance.",
            BEST_NOTE.format(group="row"),
        ),
    )


def sentence_rules(cells: pd.DataFrame) -> Table:
    """Table of the points that each released rule adds to the prediction rejection ratio."""
    return _rules_table(
        "beyond:released-rules",
        "Effect of the released code's rules on PRR, in points",
        _measures_of("tab:sequence-error-detection"),
        "prr",
        CellIndex(cells),
    )


def token_rules(cells: pd.DataFrame) -> Table:
    """Table of the points that the released rule adds to token-level average precision."""
    return _rules_table(
        "beyond:released-token-rules",
        "Effect of the released code's rule on AUPR of tokens, in points",
        _measures_of("tab-apn:token-error-detection-prex"),
        "aupr",
        CellIndex(cells),
    )


def _rules_table(
    label: str, title: str, measures: Sequence[str], metric: str, index: CellIndex
) -> Table:
    rows: list[Row] = []
    for released_metric, (default_metric, rule) in _RELEASED_RULES.items():
        keys = dict.fromkeys(
            cell.key._replace(column="")
            for cell in index.cells
            if (cell.metric, default_metric) == (released_metric, metric)
            and cell.length_norm == "true"
            and cell.reason != NO_REFERENCE
        )
        for number, key in enumerate(keys):
            model = decoder_name(key.ensemble, key.hypotheses, key.regime)
            labels = (index.label(key.task), key.test_set, model, rule)
            differences = tuple(
                TableCell(
                    _difference(
                        index.cell(key._replace(column=measure)),
                        index.cell(key._replace(column=measure, metric=metric)),
                    )
                )
                for measure in measures
            )
            rows.append(Row(labels, differences, rule=bool(rows) and number == 0))
    names = ("Task", "Test set", "Model", "Rule")
    return Table(label, title, measure_header(names, measures, "1"), tuple(rows), _RELEASED_NOTES)


def _difference(released: Cell, default: Cell) -> Cell:
    """Released minus default, without an interval; if a value is absent, the reason why."""
    metric = f"{released.metric}_less_{default.metric}"
    cell = replace(released, metric=metric, spread=None, low=None, high=None)
    if released.value is None or default.value is None:
        return replace(cell, value=None, reason=released.reason or default.reason)
    return replace(cell, value=released.value - default.value, reason="")


def _cells_of_models(index: CellIndex, key: Key) -> tuple[TableCell, ...]:
    """The cells of the single models and of both combinations, at the key of any of them."""
    return tuple(
        TableCell(
            index.cell(
                key._replace(
                    ensemble=ensemble if hypotheses == "-" else index.ensemble(key.task, ensemble),
                    hypotheses=hypotheses,
                )
            )
        )
        for ensemble, hypotheses in MODELS
    )


def _first_of_each_test_set(keys: Sequence[Key]) -> list[Key]:
    by_set: dict[tuple[str, str], Key] = {}
    for key in keys:
        by_set.setdefault((key.task, key.test_set), key)
    return list(by_set.values())


def _measures_of(label: str) -> list[str]:
    """The measures of one of the paper's tables, without the error rate next to them."""
    return [name for name in paper_columns(label) if name != _TOKEN_RATE]
