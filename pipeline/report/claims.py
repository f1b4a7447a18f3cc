"""Claims about cells, the verdicts on them, and the files that list the verdicts."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.metrics.cell import Cell, Key, number_text
from pipeline.report.formats import escape_markdown, markdown_table

SET_SEPARATOR = ";"  # between test sets in claims.csv
HOLDS, DOES_NOT_HOLD, UNDECIDED = "holds", "does not hold", "undecided"
_UNITS = {
    "nll": "nats per token",
    "bleu": "BLEU points",
    "wer_percent": "WER points",
    "prr": "PRR points",
    "roc_auc": "ROC-AUC points",
    "aupr": "AUPR points",
}


@dataclass(frozen=True)
class Side:
    """One side of a comparison: cells of one test set, reduced to one number.

    `columns` are the measures to compare; if empty, the measure of the table. `changes` are other
    parts of the key that differ from the table's: ensemble, hypotheses, T, B or length_norm. The
    number is the best of the cells if `best`, otherwise their mean.
    """

    columns: tuple[str, ...] = ()
    changes: Mapping[str, str] = field(default_factory=dict)
    best: bool = True


@dataclass(frozen=True)
class Claim:
    """The claim that `better` beats `worse` by one of `metrics`. A side may be a constant.

    `tables` are the paper's tables that the claim is about. They give the tasks, test sets and
    settings, with the largest B of each test set. `family` restricts them to tasks of translation
    or speech, and `test_sets` to some test sets, unless empty. The claim is also tested on test
    sets and tasks that the paper does not have, in the same settings, unless `test_sets` names
    some. `source` is the place in the paper where the claim is made, such as `Table 1`.
    """

    statement: str
    source: str
    tables: tuple[str, ...]
    metrics: tuple[str, ...]
    better: Side | float
    worse: Side | float
    family: str = ""
    test_sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The result of testing one claim in one task.

    `label` names the task in tables, and says if `test_sets` are those that the paper lacks.
    `value` is the advantage of the better side in the unit of `metric`, averaged over `n_set` test
    sets, with its 95 % interval. `n_supporting` and `n_contradicting` count the test sets whose own
    interval lies above or below 0. `n_run` counts the training runs, or ensembles without one of
    their runs, that were compared by themselves, and `n_run_agreeing` those with a difference of
    the same sign; `compared` says it in words. `cells` are the keys of the compared cells.
    `reason` says why the claim is undecided, which test sets were left out, and in which runs or
    numbers of members the sides differ.
    """

    name: str
    claim: Claim
    task: str
    verdict: str
    label: str = ""
    test_sets: tuple[str, ...] = ()
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_set: int = 0
    n_supporting: int = 0
    n_contradicting: int = 0
    n_run: int = 0
    n_run_agreeing: int = 0
    compared: str = ""
    reason: str = ""
    cells: tuple[Key, ...] = ()

    @property
    def difference(self) -> str:
        """The value with its interval and unit as text; empty if there is no value."""
        if self.value is None or self.low is None or self.high is None:
            return ""
        decimals = 3 if self.metric == "nll" else 1
        value, low, high = (f"{bound:z.{decimals}f}" for bound in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}] {_UNITS.get(self.metric, self.metric)}"

    @property
    def cell_names(self) -> list[str]:
        """The names of `cells` in the tracker."""
        return [Cell(**key._asdict()).tracked_name for key in self.cells]


_CSV_COLUMNS = (
    "claim",
    "task",
    "test_sets",
    "verdict",
    "metric",
    "value",
    "low",
    "high",
    "n_set",
    "n_supporting",
    "n_contradicting",
    "n_run",
    "n_run_agreeing",
    "statement",
    "source",
    "reason",
    "cells",
)
_HEADINGS = (
    "Claim",
    "Task",
    "Verdict",
    "Difference [95 % interval]",
    "Test sets",
    "Training runs",
    "Source",
)


def write_claims(folder: Path, verdicts: Sequence[Verdict]) -> None:
    """Write claims.csv and claims.md; the same verdicts give the same bytes."""
    with (folder / "claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_CSV_COLUMNS)
        writer.writerows(_csv_row(verdict) for verdict in verdicts)
    (folder / "claims.md").write_text(_markdown(verdicts), encoding="utf-8", newline="\n")


def _csv_row(verdict: Verdict) -> list[str]:
    numbers = (verdict.value, verdict.low, verdict.high)
    return [
        verdict.name,
        verdict.task,
        SET_SEPARATOR.join(verdict.test_sets),
        verdict.verdict,
        verdict.metric,
        *("" if number is None else number_text(number) for number in numbers),
        str(verdict.n_set),
        str(verdict.n_supporting),
        str(verdict.n_contradicting),
        str(verdict.n_run),
        str(verdict.n_run_agreeing),
        verdict.claim.statement,
        verdict.claim.source,
        verdict.reason,
        " ".join(verdict.cell_names),
    ]


def _markdown(verdicts: Sequence[Verdict]) -> str:
    lines = [
        "### Claims tested on the numbers of this run",
        "",
        "A claim holds if the 95 % interval of the mean difference over test sets lies above 0 "
        "(paired bootstrap over groups of sentences) and the difference has the same sign in all "
        "training runs. It does not hold if the interval lies below 0 and all runs agree. "
        "Otherwise it is undecided. A single ensemble has no other training runs to compare with. "
        "Test sets that the paper does not have get a verdict of their own.",
        "",
        markdown_table(_HEADINGS, [_markdown_row(verdict) for verdict in verdicts], len(_HEADINGS)),
        "",
        "#### The cells behind each verdict",
        "",
    ]
    for verdict in verdicts:
        cells = ", ".join(f"`{name}`" for name in verdict.cell_names) or "none"
        lines.append(f"- `{verdict.name}` {verdict.label}: {cells}")
    return "\n".join(lines) + "\n"


def _markdown_row(verdict: Verdict) -> list[str]:
    reason = f": {escape_markdown(verdict.reason)}" if verdict.reason else ""
    return [
        escape_markdown(verdict.claim.statement),
        escape_markdown(verdict.label),
        f"**{verdict.verdict}**{reason}",
        escape_markdown(verdict.difference),
        f"{verdict.n_supporting} for, {verdict.n_contradicting} against, of {verdict.n_set}: "
        f"{escape_markdown(', '.join(verdict.test_sets))}",
        verdict.compared,
        escape_markdown(verdict.claim.source),
    ]
