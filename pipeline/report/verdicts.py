"""Test claims on the cells of a run: over groups of sentences, and over training runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from pipeline.errors import ConfigError
from pipeline.metrics.bootstrap import Interval, percentile_interval
from pipeline.metrics.cell import LOWER_IS_BETTER, RUN_SEPARATOR, Cell, Key
from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.cells import CellIndex
from pipeline.report.claims import DOES_NOT_HOLD, HOLDS, UNDECIDED, Claim, Side, Verdict
from pipeline.report.ensemble_names import member_names
from pipeline.report.paper_numbers import FAMILIES, is_beyond_paper, paper_cells

_log = logging.getLogger(__name__)

Runs = frozenset[str]
_OWN_RUNS, _WITHOUT_ONE = "training runs", "ensembles, each without one training run,"


@dataclass(frozen=True)
class _Number:
    """A number of the run, or the reason why it is missing.

    draws: its values on the resamples. cells: those behind it; a constant has none. replicates:
    training runs -> value. without_one: the same for ensembles without one of their training runs.
    """

    value: float = 0.0
    draws: FloatArray = field(default_factory=lambda: np.zeros(1))
    cells: tuple[Cell, ...] = ()
    replicates: Mapping[Runs, float] = field(default_factory=dict)
    without_one: Mapping[Runs, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def runs(self) -> Runs:
        """The training runs behind the number."""
        return frozenset(run for cell in self.cells for run in _runs(cell.runs))

    @property
    def members(self) -> set[int]:
        """The numbers of members of the ensembles behind the number."""
        return {cell.members for cell in self.cells}

    @property
    def interval(self) -> Interval:
        """The interval over groups of sentences, of the test set that has the fewest groups."""
        return percentile_interval(self.draws, min(cell.groups for cell in self.cells))


@dataclass(frozen=True)
class _Difference(_Number):
    """The advantage of one side over the other; `unlike` says which runs or members differ."""

    unlike: str = ""


def verdicts(
    claims: Mapping[str, Claim],
    cells: pd.DataFrame,
    draws: Mapping[Key, FloatArray],
    replicates: Mapping[Key, Mapping[str, float]],
) -> list[Verdict]:
    """Test each claim in each task that was run and that it is about.

    `cells` are the cells of all tasks, `draws` their values on the same bootstrap resamples
    ([resample]), and `replicates` the values of their replicates by training runs. A claim holds if
    the 95 % interval of the mean difference lies above 0 and all compared training runs agree. It
    does not hold if the interval lies below 0 and all runs agree. Otherwise it is undecided, and
    `reason` says why. Raises ConfigError for a claim whose tables have no cells of its metrics.
    """
    judge = _Judge(CellIndex(cells), draws, replicates)
    of_claims = {name: judge.verdicts(name, claim) for name, claim in claims.items()}
    if untested := [name for name, verdicts_on in of_claims.items() if not verdicts_on]:
        _log.info(
            "claims that are not tested, since this run has no cells that they are about: %s",
            ", ".join(untested),
        )
    return [verdict for verdicts_on in of_claims.values() for verdict in verdicts_on]


class _Judge:
    """Tests claims on the cells of a run, their bootstrap draws and their replicates."""

    def __init__(
        self,
        index: CellIndex,
        draws: Mapping[Key, FloatArray],
        replicates: Mapping[Key, Mapping[str, float]],
    ) -> None:
        self._index = index
        self._draws = draws
        self._replicates = replicates

    def verdicts(self, name: str, claim: Claim) -> list[Verdict]:
        """One verdict per task on the paper's test sets, and one on all its other test sets."""
        keys = [
            cell.key
            for label in claim.tables
            for cell in paper_cells(label)
            if cell.key.metric in claim.metrics
            and claim.family in ("", FAMILIES[cell.key.task])
            and (not claim.test_sets or cell.key.test_set in claim.test_sets)
        ]
        if not keys:
            raise ConfigError(
                f"claim {name}: the paper's tables {', '.join(claim.tables)} have no cells of the "
                f"metrics {', '.join(claim.metrics)}. Name other tables or metrics."
            )
        verdicts = []
        for task in self._index.tasks:
            of_paper = [key for key in keys if key.task == task]
            others = [] if claim.test_sets else self._beyond_paper(task, keys)
            for chosen in filter(None, (of_paper, others)):
                label = self._index.label(task)
                if task in FAMILIES and chosen is others:
                    label += ", further test sets"
                verdicts.append(self._verdict(name, claim, label, chosen))
        return verdicts

    def _beyond_paper(self, task: str, keys: Sequence[Key]) -> list[Key]:
        """The keys of a task's test sets that the paper lacks, in the settings of its tables."""
        family = self._index.family(task)
        alike = [key for key in keys if FAMILIES[key.task] == family]
        settings = [
            key for key in alike if (key.task, key.test_set) == (alike[0].task, alike[0].test_set)
        ]
        wanted = {(key.metric, key.regime) for key in settings}
        test_sets = dict.fromkeys(
            cell.test_set
            for cell in self._index.cells
            if cell.task == task
            and (cell.metric, cell.regime) in wanted
            and cell.value is not None
            and is_beyond_paper(cell)
        )
        return [
            key._replace(task=task, test_set=test_set) for test_set in test_sets for key in settings
        ]

    def _verdict(self, name: str, claim: Claim, label: str, keys: Sequence[Key]) -> Verdict:
        differences: list[_Difference] = []
        compared: list[str] = []
        absent_sets: dict[str, list[str]] = {}
        for test_set in dict.fromkeys(key.test_set for key in keys):
            settings = self._settings([key for key in keys if key.test_set == test_set])
            difference = self._difference(claim, settings)
            if difference.reason:
                name_of_set = self._index.cell(settings).test_set
                absent_sets.setdefault(difference.reason, []).append(name_of_set)
            else:
                differences.append(difference)
                compared.append(difference.cells[0].test_set)
        absent = "; ".join(
            why if sets[0] in why else f"{why} ({', '.join(sets)})"
            for why, sets in absent_sets.items()
        )
        verdict = Verdict(
            name,
            claim,
            keys[0].task,
            UNDECIDED,
            label,
            tuple(compared),
            keys[0].metric,
            reason=absent,
        )
        return _decided(verdict, differences) if differences else verdict

    def _settings(self, keys: Sequence[Key]) -> Key:
        """The key of a test set from which the sides differ: the ensemble's, at the largest B."""
        own = [key for key in keys if key.ensemble == "random_init"]
        key = max(own, key=lambda candidate: int(candidate.B or 0))
        return key._replace(ensemble=self._index.ensemble(key.task, key.ensemble))

    def _difference(self, claim: Claim, settings: Key) -> _Difference:
        better, worse = (self._side(side, settings) for side in (claim.better, claim.worse))
        if reason := better.reason or worse.reason:
            return _Difference(reason=reason)
        return _Difference(
            better.value - worse.value,
            better.draws - worse.draws,
            tuple({cell.key: cell for cell in (*better.cells, *worse.cells)}.values()),
            _replicate_differences(better, worse),
            _differences_without_one(better, worse),
            unlike=_unlike(better, worse),
        )

    def _side(self, side: Side | float, settings: Key) -> _Number:
        """The number of a side, with a sign such that higher is better."""
        sign = -1 if settings.metric in LOWER_IS_BETTER else 1
        if not isinstance(side, Side):
            return _Number(sign * side, np.array([sign * side]))
        changed = settings._replace(**side.changes)
        numbers = []
        for column in side.columns or (settings.column,):
            key = changed._replace(column=column)
            cell = self._index.cell(key)
            draws = self._draws.get(cell.key)
            if cell.value is None or cell.reason == CONSTANT:
                return _Number(reason=cell.reason)
            if draws is None:
                return _Number(reason=f"{key.column} has no bootstrap draws")
            values = {
                _runs(runs): sign * value
                for runs, value in self._replicates.get(cell.key, {}).items()
            }
            whole = {
                runs: v for runs, v in values.items() if not any(runs < more for more in values)
            }
            without_one = {runs: v for runs, v in values.items() if runs not in whole}
            numbers.append(_Number(sign * cell.value, sign * draws, (cell,), whole, without_one))
        if side.best:
            # Chosen once: a choice on every resample would favour the side with more columns.
            return max(numbers, key=lambda number: number.value)
        return _mean(numbers)


def _decided(verdict: Verdict, differences: Sequence[_Difference]) -> Verdict:
    """The verdict on the mean of the differences of test sets."""
    mean = _mean(differences)
    interval = mean.interval
    intervals = [difference.interval for difference in differences]
    compared, kind = mean.without_one, _WITHOUT_ONE
    if not compared:
        compared, kind = mean.replicates, _OWN_RUNS
    n_agree = sum(value * mean.value > 0 for value in compared.values())
    agreement = f"{n_agree} of {len(compared)} {kind} agree" if compared else "one ensemble"
    reasons = [f"left out: {verdict.reason}"] if verdict.reason else []
    reasons += dict.fromkeys(difference.unlike for difference in differences if difference.unlike)
    if interval.reason:
        reasons.insert(0, interval.reason)
    decision = UNDECIDED
    if interval.low is not None and interval.high is not None:
        if interval.low <= 0 <= interval.high:
            reasons.insert(0, "the interval includes 0")
        elif n_agree < len(compared):
            reasons.insert(0, f"only {agreement}")
        else:
            decision = HOLDS if interval.low > 0 else DOES_NOT_HOLD
    return replace(
        verdict,
        verdict=decision,
        value=mean.value,
        low=interval.low,
        high=interval.high,
        n_set=len(differences),
        n_supporting=sum(own.low is not None and own.low > 0 for own in intervals),
        n_contradicting=sum(own.high is not None and own.high < 0 for own in intervals),
        n_run=len(compared),
        n_run_agreeing=n_agree,
        compared=agreement,
        reason="; ".join(reasons),
        cells=tuple(cell.key for cell in mean.cells),
    )


def _mean(numbers: Sequence[_Number]) -> _Number:
    """The mean of several numbers; a replicate has one only if each of the numbers has it."""
    return _Number(
        float(np.mean([number.value for number in numbers])),
        np.asarray(np.mean([number.draws for number in numbers], axis=0)),
        tuple({cell.key: cell for number in numbers for cell in number.cells}.values()),
        _mean_by_runs([number.replicates for number in numbers]),
        _mean_by_runs([number.without_one for number in numbers]),
    )


def _mean_by_runs(values: Sequence[Mapping[Runs, float]]) -> dict[Runs, float]:
    return {
        runs: float(np.mean([of_number[runs] for of_number in values]))
        for runs in values[0]
        if all(runs in of_number for of_number in values)
    }


def _replicate_differences(better: _Number, worse: _Number) -> dict[Runs, float]:
    """Training runs -> difference, where both sides have replicates of these runs.

    A single ensemble, or a constant, is compared with each replicate of the other side. Two single
    ensembles have no other runs that could disagree.
    """
    by_runs = _paired(better, worse, better.replicates, worse.replicates)
    if not by_runs and len(better.replicates) == 1:
        by_runs = {runs: better.value - value for runs, value in worse.replicates.items()}
    elif not by_runs and len(worse.replicates) == 1:
        by_runs = {runs: value - worse.value for runs, value in better.replicates.items()}
    return by_runs if len(by_runs) > 1 else {}


def _differences_without_one(better: _Number, worse: _Number) -> dict[Runs, float]:
    """Training runs -> difference of ensembles without one run.

    They are compared with ensembles of the same runs or with the mean of the single members of
    these runs, but not with ensembles of more members.
    """
    return _paired(
        better,
        worse,
        better.without_one or _means_of_members(better, worse.without_one),
        worse.without_one or _means_of_members(worse, better.without_one),
    )


def _means_of_members(single: _Number, ensembles: Mapping[Runs, float]) -> dict[Runs, float]:
    if single.members != {1}:
        return {}
    by_run = single.replicates
    return {
        runs: float(np.mean([by_run[frozenset([run])] for run in runs]))
        for runs in ensembles
        if all(frozenset([run]) in by_run for run in runs)
    }


def _paired(
    better: _Number, worse: _Number, of_better: Mapping[Runs, float], of_worse: Mapping[Runs, float]
) -> dict[Runs, float]:
    if not better.cells:
        return {runs: better.value - value for runs, value in of_worse.items()}
    if not worse.cells:
        return {runs: value - worse.value for runs, value in of_better.items()}
    return {runs: value - of_worse[runs] for runs, value in of_better.items() if runs in of_worse}


def _unlike(better: _Number, worse: _Number) -> str:
    """Which training runs or numbers of members the sides do not share; empty if they share all."""
    unlike = []
    if better.cells and worse.cells and better.runs != worse.runs:
        sides = (member_names(sorted(side.runs)) for side in (better, worse))
        unlike.append(f"the sides use different training runs ({' against '.join(sides)})")
    members = better.members | worse.members
    if 1 not in members and len(members) > 1:
        sides = ("/".join(map(str, sorted(side.members))) for side in (better, worse))
        unlike.append(f"{' members against '.join(sides)}")
    return "; ".join(unlike)


def _runs(runs: str) -> Runs:
    return frozenset(runs.split(RUN_SEPARATOR)) if runs else frozenset()
