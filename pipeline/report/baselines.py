"""The cells of the measures of later work and of the paper, and what the measures cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.metrics.cell import SOURCE_LENGTH, Cell, Key
from pipeline.report.cells import CellIndex
from pipeline.store import SEARCHES

_CORRELATION = "spearman"
_SINGLE = "single"
_NO_SAMPLES = "the run has no samples of this ensemble; see docs/baselines.md"


@dataclass(frozen=True)
class Baseline:
    """A measure with its name in the literature.

    group: naive, single model, paper or later work; passes: members -> forward passes of one model
    per token that the measure needs, those that give the hypothesis included; length_norm: as in
    the keys of cells; is_of_samples: whether it needs samples.
    """

    column: str
    name: str
    group: str
    passes: Callable[[int], str] = str
    length_norm: str = "true"
    is_of_samples: bool = False


NAIVE, OF_SINGLE, OF_PAPER, LATER = "naive", "single model", "paper", "later work"
_LENGTHS = (
    Baseline(SOURCE_LENGTH, "length of the source", NAIVE, lambda _: "0"),
    Baseline("hypothesis_length", "length of the hypothesis", NAIVE),
)
_SINGLE_MODEL = (
    Baseline("prex_entropy_s", "log-prob per token (TP), perplexity", OF_SINGLE),
    Baseline("prex_entropy_s", "log-prob of the sequence", OF_SINGLE, length_norm="false"),
    Baseline("prex_entropy_c", "mean token entropy (Softmax-Ent)", OF_SINGLE),
    Baseline("data_max", "largest token entropy", OF_SINGLE),
    Baseline("score_std", "deviation of token log-probs (Sent-Std)", OF_SINGLE),
    Baseline("hypothesis_chrf", "chrF between hypotheses", OF_SINGLE),
)
_ENSEMBLE = (
    Baseline("prex_entropy_c", "total H, C-IW", OF_PAPER),
    Baseline("prex_entropy_s", "total H, S-IW", OF_PAPER),
    Baseline("prex_mi_c", "knowledge I (MI), C-IW", OF_PAPER),
    Baseline("prex_epkl_c", "knowledge K (EPKL), C-IW", OF_PAPER),
    Baseline("prex_rmi_c", "knowledge M (RMI), C-IW", OF_PAPER),
    Baseline("prex_rmi_s", "knowledge M (RMI), S-IW", OF_PAPER),
    Baseline("var_logp_ln", "variance of ln P by length (D-Var)", OF_PAPER),
    Baseline("xbleu", "X-BLEU (BLEU variance)", OF_PAPER, lambda members: str(2 * members)),
    Baseline("xwer", "X-WER", OF_PAPER, lambda members: str(2 * members)),
    Baseline(
        "prex_entropy_smc",
        "Monte-Carlo entropy, S-MC",
        OF_PAPER,
        lambda members: f"{members} per sample",
        is_of_samples=True,
    ),
    Baseline("member_score", "mean log-prob per token (D-TP)", LATER),
    Baseline("d_combo", "D-Combo", LATER),
    Baseline("data_c", "mean token entropy (mean of Softmax-Ent)", LATER),
    Baseline("data_max", "largest token entropy", LATER),
    Baseline("score_std", "deviation of token log-probs (Sent-Std)", LATER),
    Baseline("xchrf", "X-chrF (D-Lex-Sim)", LATER, lambda members: str(2 * members)),
    Baseline("hypothesis_chrf", "chrF between hypotheses", LATER),
)
_SYSTEMS = {_SINGLE: (*_LENGTHS, *_SINGLE_MODEL), "": (*_LENGTHS, *_ENSEMBLE)}


@dataclass(frozen=True)
class BaselineRow:
    """The cells of one measure of one system.

    members: number of members of the system; prr and correlation: on the in-domain test set;
    roc_auc: test set -> cell.
    """

    baseline: Baseline
    members: int
    prr: Cell
    correlation: Cell
    roc_auc: dict[str, Cell]

    @property
    def system(self) -> str:
        """The system that decoded, in words."""
        return "single member" if self.prr.ensemble == _SINGLE else f"ensemble of {self.members}"


def baseline_rows(index: CellIndex, task: str) -> Iterator[BaselineRow]:
    """Yield the measures of single members, then of the main ensemble that decoded with PrEx.

    There are none without decodes of an in-domain test set with references.
    """
    ensemble = index.ensemble(task, "random_init")
    for system, baselines in _SYSTEMS.items():
        hypotheses = "-" if system == _SINGLE else "prex"
        keys = index.keys(task=task, ensemble=system or ensemble, hypotheses=hypotheses)
        searched = [key for key in keys if key.regime in SEARCHES]
        of_error = _first(searched, _CORRELATION, without="roc_auc")
        if of_error is None:
            continue
        of_ood = _settings_of_ood(index, searched)
        members = index.cell(of_error).members
        for baseline in baselines:
            own = {"column": baseline.column, "length_norm": baseline.length_norm}
            yield BaselineRow(
                baseline,
                members,
                _cell(index, of_error._replace(metric="prr", **own), baseline),
                _cell(index, of_error._replace(**own), baseline),
                {name: _cell(index, key._replace(**own), baseline) for name, key in of_ood.items()},
            )


def _first(keys: Sequence[Key], metric: str, without: str) -> Key | None:
    """The first key of a metric whose test set has no cell of another metric."""
    excluded = {key.test_set for key in keys if key.metric == without}
    of_metric = (key for key in keys if key.metric == metric and key.test_set not in excluded)
    return next(of_metric, None)


def _settings_of_ood(index: CellIndex, keys: Sequence[Key]) -> dict[str, Key]:
    """Test set -> a key of OOD detection at the first T of the grid and the largest B."""
    detected = [key for key in keys if key.metric == "roc_auc"]
    by_set: dict[str, Key] = {}
    for key in sorted(detected, key=lambda key: -int(key.B)):
        by_set.setdefault(index.cell(key).test_set, key)
    order = dict.fromkeys(index.cell(key).test_set for key in detected)
    return {name: by_set[name]._replace(test_set=name) for name in order}


def _cell(index: CellIndex, key: Key, baseline: Baseline) -> Cell:
    cell = index.cell(key)
    is_absent = cell.value is None and not cell.signature
    return replace(cell, reason=_NO_SAMPLES) if baseline.is_of_samples and is_absent else cell
