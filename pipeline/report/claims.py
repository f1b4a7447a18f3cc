"""Test claims on the cells of a run: differences of cells with 95 % intervals."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.errors import ConfigError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, LOWER_IS_BETTER, Cell, Key, number_text
from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.cells import CellIndex
from pipeline.report.formats import escape_markdown, markdown_table
from pipeline.report.paper_numbers import paper_cells

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
    settings, with the largest B of each test set. `tasks` and `test_sets` restrict them, unless
    empty. `source` is the place in the paper where the claim is made.
    """

    statement: str
    source: str
    tables: tuple[str, ...]
    metrics: tuple[str, ...]
    better: Side | float
    worse: Side | float
    tasks: tuple[str, ...] = ()
    test_sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The result of testing one claim in one task.

    `value` is the advantage of the better side in the unit of `metric`, averaged over `n_set` test
    sets, with its 95 % interval. `n_supporting` and `n_contradicting` count the test sets whose own
    interval lies above or below 0. `cells` are the keys of the cells that were compared. `reason`
    says why the claim is undecided and which test sets were left out.
    """

    name: str
    claim: Claim
    task: str
    verdict: str
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_set: int = 0
    n_supporting: int = 0
    n_contradicting: int = 0
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


def verdicts(
    claims: Mapping[str, Claim], cells: pd.DataFrame, draws: Mapping[Key, FloatArray]
) -> list[Verdict]:
    """Test each claim in each task that was run; at least one verdict per claim.

    `cells` are the cells of all tasks, `draws` their values on the same bootstrap resamples
    ([resample]). A claim holds if the 95 % interval of the mean difference lies above 0, and does
    not hold if it lies below. It is undecided if the interval includes 0 or if cells are missing;
    `reason` says which. Raises ConfigError for a claim whose tables have no cells of its metrics.
    """
    judge = _Judge(CellIndex(cells), draws)
    return [verdict for name, claim in claims.items() for verdict in judge.verdicts(name, claim)]


@dataclass(frozen=True)
class _Number:
    """A number of the run and of each resample with the cells behind it, or why it is missing."""

    value: float = 0.0
    draws: FloatArray = field(default_factory=lambda: np.zeros(1))
    cells: tuple[Key, ...] = ()
    reason: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        low, high = np.quantile(self.draws, (0.025, 0.975))
        return float(low), float(high)


class _Judge:
    """Tests claims on the cells of a run and their bootstrap draws."""

    def __init__(self, index: CellIndex, draws: Mapping[Key, FloatArray]) -> None:
        self._index = index
        # As in CellIndex, single models are also used as averages of checkpoints.
        averages = {
            key._replace(ensemble=CHECKPOINT_AVERAGE): values
            for key, values in draws.items()
            if key.ensemble == "single"
        }
        self._draws = averages | dict(draws)
        self._own_names = {
            (cell.task, name): cell.test_set
            for cell in index.cells
            for name in cell.also_called.split()
        }

    def verdicts(self, name: str, claim: Claim) -> list[Verdict]:
        """One verdict per task that was run."""
        keys = [
            cell.key
            for label in claim.tables
            for cell in paper_cells(label)
            if cell.key.metric in claim.metrics
            and (not claim.tasks or cell.key.task in claim.tasks)
            and (not claim.test_sets or cell.key.test_set in claim.test_sets)
        ]
        if not keys:
            raise ConfigError(
                f"claim {name}: the paper's tables {', '.join(claim.tables)} have no cells of the "
                f"metrics {', '.join(claim.metrics)}. Name other tables or metrics."
            )
        tasks = list(dict.fromkeys(key.task for key in keys))
        ran = [task for task in tasks if task in self._index.tasks]
        if not ran:
            why = f"task {' or '.join(tasks)} was not run"
            return [Verdict(name, claim, "", UNDECIDED, reason=why)]
        return [
            self._verdict(name, claim, [key for key in keys if key.task == task]) for task in ran
        ]

    def _verdict(self, name: str, claim: Claim, keys: Sequence[Key]) -> Verdict:
        differences: list[_Number] = []
        absent_sets: dict[str, list[str]] = {}
        for test_set in dict.fromkeys(key.test_set for key in keys):
            settings = self._settings([key for key in keys if key.test_set == test_set])
            difference = self._difference(claim, settings)
            if difference.reason:
                absent_sets.setdefault(difference.reason, []).append(settings.test_set)
            else:
                differences.append(difference)
        task, metric = keys[0].task, keys[0].metric
        absent = "; ".join(
            why if sets[0] in why else f"{why} ({', '.join(sets)})"
            for why, sets in absent_sets.items()
        )
        if not differences:
            return Verdict(name, claim, task, UNDECIDED, metric, reason=absent)
        mean = _reduced(differences, best=False)
        low, high = mean.interval
        verdict = HOLDS if low > 0 else DOES_NOT_HOLD if high < 0 else UNDECIDED
        reasons = ["the interval includes 0"] if verdict == UNDECIDED else []
        reasons += [f"left out: {absent}"] if absent else []
        return Verdict(
            name,
            claim,
            task,
            verdict,
            metric,
            mean.value,
            low,
            high,
            n_set=len(differences),
            n_supporting=sum(difference.interval[0] > 0 for difference in differences),
            n_contradicting=sum(difference.interval[1] < 0 for difference in differences),
            reason="; ".join(reasons),
            cells=mean.cells,
        )

    def _settings(self, keys: Sequence[Key]) -> Key:
        """The key of a test set from which the sides differ: the ensemble's, at the largest B."""
        own = [key for key in keys if key.ensemble == "random_init"]
        key = max(own, key=lambda candidate: int(candidate.B or 0))
        return key._replace(
            ensemble=self._index.ensemble(key.task, key.ensemble),
            test_set=self._own_names.get((key.task, key.test_set), key.test_set),
        )

    def _difference(self, claim: Claim, settings: Key) -> _Number:
        better, worse = (self._side(side, settings) for side in (claim.better, claim.worse))
        return _Number(
            better.value - worse.value,
            better.draws - worse.draws,
            tuple(dict.fromkeys([*better.cells, *worse.cells])),
            better.reason or worse.reason,
        )

    def _side(self, side: Side | float, settings: Key) -> _Number:
        """The number of a side, with a sign such that higher is better."""
        sign = -1 if settings.metric in LOWER_IS_BETTER else 1
        if not isinstance(side, Side):
            return _Number(sign * side, np.array([sign * side]))
        changed = settings._replace(**side.changes)
        keys = [changed._replace(column=column) for column in side.columns or (settings.column,)]
        numbers = []
        for key in keys:
            cell, draws = self._index.cell(key), self._draws.get(key)
            if cell.value is None or cell.reason == CONSTANT:
                return _Number(reason=cell.reason)
            if draws is None:
                return _Number(reason=f"{key.column} has no bootstrap draws")
            numbers.append(_Number(sign * cell.value, sign * draws, (key,)))
        return _reduced(numbers, side.best)


def _reduced(numbers: Sequence[_Number], best: bool) -> _Number:
    """The highest or the mean of several numbers, of the run and of each resample."""
    reduce = np.max if best else np.mean
    return _Number(
        float(reduce([number.value for number in numbers])),
        np.asarray(reduce([number.draws for number in numbers], axis=0)),
        tuple(dict.fromkeys(key for number in numbers for key in number.cells)),
    )


_CSV_COLUMNS = (
    "claim",
    "task",
    "verdict",
    "metric",
    "value",
    "low",
    "high",
    "n_set",
    "n_supporting",
    "n_contradicting",
    "statement",
    "source",
    "reason",
    "cells",
)
_HEADINGS = ("Claim", "Task", "Verdict", "Difference [95 % interval]", "Test sets", "Source")


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
        verdict.verdict,
        verdict.metric,
        *("" if number is None else number_text(number) for number in numbers),
        str(verdict.n_set),
        str(verdict.n_supporting),
        str(verdict.n_contradicting),
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
        "(paired bootstrap over sentences). It does not hold if the interval lies below 0.",
        "",
        markdown_table(_HEADINGS, [_markdown_row(verdict) for verdict in verdicts], len(_HEADINGS)),
        "",
        "#### The cells behind each verdict",
        "",
    ]
    for verdict in verdicts:
        cells = ", ".join(f"`{name}`" for name in verdict.cell_names) or "none"
        lines.append(f"- `{verdict.name}` {verdict.task}: {cells}")
    return "\n".join(lines) + "\n"


def _markdown_row(verdict: Verdict) -> list[str]:
    reason = f": {escape_markdown(verdict.reason)}" if verdict.reason else ""
    return [
        escape_markdown(verdict.claim.statement),
        escape_markdown(verdict.task),
        f"**{verdict.verdict}**{reason}",
        escape_markdown(verdict.difference),
        f"{verdict.n_supporting} for, {verdict.n_contradicting} against, of {verdict.n_set}",
        escape_markdown(verdict.claim.source),
    ]
