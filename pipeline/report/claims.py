"""Claims held against the run's own cells: differences of cells with their interval."""

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
from pipeline.report.paper import paper_cells

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
    """One side of a comparison: cells of one test set, joined into one number.

    `columns`: their measures, that of the table if empty; `changes`: what else of the key differs
    from the table's (ensemble, hypotheses, T, B, length_norm); `best`: the best of them counts,
    else their mean.
    """

    columns: tuple[str, ...] = ()
    changes: Mapping[str, str] = field(default_factory=dict)
    best: bool = True


@dataclass(frozen=True)
class Claim:
    """By one of `metrics`, `better` beats `worse`; a number stands for a fixed value.

    `tables`: those of the paper that it stands on. They give tasks, test sets and settings, at
    their largest B; `tasks` and `test_sets`: those of them that it speaks of, all if empty;
    `source`: where it is made.
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
    """What the run says of a claim in one task.

    `value`: by how much the better side is better, in the unit of `metric`, as a mean over test
    sets, with its 95 % interval; `n_set`, `n_supporting`, `n_contradicting`: the test sets, and
    those whose own interval lies above or below 0; `cells`: the keys that it stands on; `reason`:
    why nothing is decided, and what was left out.
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
        """`value`, its interval and unit as people read them; empty where nothing was decided."""
        if self.value is None or self.low is None or self.high is None:
            return ""
        decimals = 3 if self.metric == "nll" else 1
        value, low, high = (f"{one:z.{decimals}f}" for one in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}] {_UNITS.get(self.metric, self.metric)}"

    @property
    def cell_names(self) -> list[str]:
        """The names under which `cells` are tracked."""
        return [Cell(**key._asdict()).tracked_name for key in self.cells]


def verdicts(
    claims: Mapping[str, Claim], cells: pd.DataFrame, draws: Mapping[Key, FloatArray]
) -> list[Verdict]:
    """A verdict for each claim and task that was run, at least one a claim.

    `cells`: those of all tasks; `draws`: of each cell on the same resamples, [resample]. A claim
    holds where the interval of the mean difference lies above 0, does not hold where it lies below,
    and is undecided where 0 lies within or where `reason` says what is absent. Raises ConfigError
    for a claim on tables that have no cells of its metrics.
    """
    judge = _Judge(CellIndex(cells), draws)
    return [verdict for name, claim in claims.items() for verdict in judge.verdicts(name, claim)]


@dataclass(frozen=True)
class _Number:
    """A number on the run and on every resample, the cells behind it, or why there is none."""

    value: float = 0.0
    draws: FloatArray = field(default_factory=lambda: np.zeros(1))
    cells: tuple[Key, ...] = ()
    reason: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        low, high = np.quantile(self.draws, (0.025, 0.975))
        return float(low), float(high)


class _Judge:
    """The cells of a run and their draws."""

    def __init__(self, index: CellIndex, draws: Mapping[Key, FloatArray]) -> None:
        self._index = index
        # Single models are averages of checkpoints, as in CellIndex.
        averages = {
            key._replace(ensemble=CHECKPOINT_AVERAGE): one
            for key, one in draws.items()
            if key.ensemble == "single"
        }
        self._draws = averages | dict(draws)
        self._own_names = {
            (cell.task, name): cell.test_set
            for cell in index.cells
            for name in cell.also_called.split()
        }

    def verdicts(self, name: str, claim: Claim) -> list[Verdict]:
        """One a task that was run; ConfigError for a claim that no table of the paper fits."""
        keys = [
            one.key
            for label in claim.tables
            for one in paper_cells(label)
            if one.key.metric in claim.metrics
            and (not claim.tasks or one.key.task in claim.tasks)
            and (not claim.test_sets or one.key.test_set in claim.test_sets)
        ]
        if not keys:
            raise ConfigError(
                f"claim {name} must stand on tables of the paper with cells of its metrics "
                f"({', '.join(claim.metrics)}), got {', '.join(claim.tables)}"
            )
        tasks = list(dict.fromkeys(key.task for key in keys))
        ran = [task for task in tasks if task in self._index.tasks]
        if not ran:
            why = f"task {' or '.join(tasks)} was not run"
            return [Verdict(name, claim, "", UNDECIDED, reason=why)]
        return [self._verdict(name, claim, [key for key in keys if key.task == one]) for one in ran]

    def _verdict(self, name: str, claim: Claim, keys: Sequence[Key]) -> Verdict:
        found: list[_Number] = []
        absent_sets: dict[str, list[str]] = {}
        for test_set in dict.fromkeys(key.test_set for key in keys):
            settings = self._settings([key for key in keys if key.test_set == test_set])
            found.append(self._difference(claim, settings))
            if found[-1].reason:
                absent_sets.setdefault(found[-1].reason, []).append(settings.test_set)
        task, metric = keys[0].task, keys[0].metric
        absent = "; ".join(
            why if sets[0] in why else f"{why} ({', '.join(sets)})"
            for why, sets in absent_sets.items()
        )
        usable = [one for one in found if not one.reason]
        if not usable:
            return Verdict(name, claim, task, UNDECIDED, metric, reason=absent)
        mean = _joined(usable, best=False)
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
            n_set=len(usable),
            n_supporting=sum(one.interval[0] > 0 for one in usable),
            n_contradicting=sum(one.interval[1] < 0 for one in usable),
            reason="; ".join(reasons),
            cells=mean.cells,
        )

    def _settings(self, keys: Sequence[Key]) -> Key:
        """The key of a test set that sides change: of the ensemble, at the table's largest B."""
        own = [key for key in keys if key.ensemble == "random_init"]
        key = max(own, key=lambda one: int(one.B or 0))
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
        """A side's number, signed so that higher is better."""
        sign = -1 if settings.metric in LOWER_IS_BETTER else 1
        if not isinstance(side, Side):
            return _Number(sign * side, np.array([sign * side]))
        changed = settings._replace(**side.changes)
        keys = [changed._replace(column=one) for one in side.columns or (settings.column,)]
        numbers = []
        for key in keys:
            cell, draws = self._index.cell(key), self._draws.get(key)
            if cell.value is None or cell.reason == CONSTANT:
                return _Number(reason=cell.reason)
            if draws is None:
                return _Number(reason=f"{key.column} has no bootstrap draws")
            numbers.append(_Number(sign * cell.value, sign * draws, (key,)))
        return _joined(numbers, side.best)


def _joined(numbers: Sequence[_Number], best: bool) -> _Number:
    """The highest or the mean of several numbers, on the run and on each resample."""
    join = np.max if best else np.mean
    return _Number(
        float(join([one.value for one in numbers])),
        np.asarray(join([one.draws for one in numbers], axis=0)),
        tuple(dict.fromkeys(key for one in numbers for key in one.cells)),
    )


_COLUMNS = (
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
_HEAD = "| Claim | Task | Verdict | By how much [95 % interval] | Test sets | Source |"


def write_claims(folder: Path, verdicts: Sequence[Verdict]) -> list[Path]:
    """Write claims.csv and claims.md; the same verdicts give the same bytes."""
    paths = [folder / "claims.csv", folder / "claims.md"]
    with paths[0].open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(_row(one) for one in verdicts)
    paths[1].write_text(_markdown(verdicts), encoding="utf-8", newline="\n")
    return paths


def _row(one: Verdict) -> list[str]:
    numbers = (one.value, one.low, one.high)
    return [
        one.name,
        one.task,
        one.verdict,
        one.metric,
        *("" if number is None else number_text(number) for number in numbers),
        str(one.n_set),
        str(one.n_supporting),
        str(one.n_contradicting),
        one.claim.statement,
        one.claim.source,
        one.reason,
        " ".join(one.cell_names),
    ]


def _markdown(verdicts: Sequence[Verdict]) -> str:
    lines = [
        "### Claims, tested on the numbers of this run",
        "",
        "A claim holds where the 95 % interval of the mean difference over test sets lies above 0 "
        "(paired bootstrap over sentences), and does not where it lies below.",
        "",
        _HEAD,
        "|---|---|---|---:|---|---|",
    ]
    lines += [_line(one) for one in verdicts]
    lines += ["", "#### The cells that each verdict stands on", ""]
    for one in verdicts:
        cells = ", ".join(f"`{name}`" for name in one.cell_names) or "none"
        lines.append(f"- `{one.name}` {one.task}: {cells}")
    return "\n".join(lines) + "\n"


def _line(one: Verdict) -> str:
    verdict = f"**{one.verdict}**" + (f": {one.reason}" if one.reason else "")
    sets = f"{one.n_supporting} for, {one.n_contradicting} against, of {one.n_set}"
    cells = (one.claim.statement, one.task, verdict, one.difference, sets, one.claim.source)
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |"
