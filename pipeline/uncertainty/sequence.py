"""Sequence measures of a decode store, for a grid of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from pipeline.errors import ConfigError, StoreError
from pipeline.quality.tokenisers import DEFAULT
from pipeline.quality.transcripts import AS_DECODED
from pipeline.run.measure_rules import GRID, MeasureRules
from pipeline.statistics.posterior import Float64
from pipeline.store import Store
from pipeline.uncertainty.blocks import (
    HypothesisSummation,
    decoding_posteriors,
    has_distributions,
    token_blocks,
)
from pipeline.uncertainty.checks import reject_nan
from pipeline.uncertainty.equal_texts import compare_texts, merge
from pipeline.uncertainty.heuristics import heuristic_measures
from pipeline.uncertainty.hypothesis import HypothesisSums
from pipeline.uncertainty.lexical import hypothesis_measures
from pipeline.uncertainty.measures_of_sequences import (
    SEQUENCE_MEASURES,
    Estimator,
    SequenceMeasure,
    measures_by,
)
from pipeline.uncertainty.monte_carlo import (
    monte_carlo_measures,
    monte_carlo_refusal,
    sample_mean,
    sample_mean_refusal,
)
from pipeline.uncertainty.own_measures import OwnMeasure, OwnMeasures, check_own_measures
from pipeline.uncertainty.weighting import (
    Selection,
    first_hypotheses,
    importance,
    log_weighted_mean,
    weighted_mean,
)

KEYS = ("sentence_id", *GRID, "flag")
_WEIGHTED = measures_by(Estimator.WEIGHTED_MEAN, Estimator.LOG_WEIGHTED_MEAN)


@dataclass(frozen=True)
class Grid:
    """Settings of the sequence measures; every combination of the three lists is computed.

    rules: what else the measures depend on. extra_measures: name -> a function of a store that
    returns [sentence]; hypothesis_measures: name -> one that returns [hypothesis], which is
    averaged like the measures of the paper. These functions do not see the rules. Raises
    ConfigError for a value out of its range, and for a function that `check_own_measures` refuses.
    """

    beam: Sequence[int]
    temperature: Sequence[float]
    length_norm: Sequence[bool]
    rules: MeasureRules = field(default_factory=MeasureRules)
    extra_measures: Mapping[str, OwnMeasure] = field(default_factory=dict)
    hypothesis_measures: Mapping[str, OwnMeasure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.beam or any(beam < 1 or beam != int(beam) for beam in self.beam):
            raise ConfigError(
                f"uncertainty.beam: must be whole numbers of at least 1 (got {self.beam})."
            )
        if not self.temperature or any(not 0 < value < np.inf for value in self.temperature):
            raise ConfigError(
                f"uncertainty.temperature: must be above 0 and finite (got {self.temperature})."
            )
        if not self.length_norm:
            raise ConfigError(
                f"uncertainty.length_norm: must be true or false (got {self.length_norm})."
            )
        taken = {*KEYS, *SEQUENCE_MEASURES}
        check_own_measures(self.extra_measures, self.hypothesis_measures, taken)


def sequence_measures(
    store: Store,
    beam: int | Sequence[int],
    temperature: float | Sequence[float],
    length_norm: bool | Sequence[bool],
    *,
    weights_from: str = "decoding",
    eos: str = "include",
    equal_texts: str = "keep",
    members: Sequence[int] | None = None,
    measures: Sequence[str] | None = None,
    member_stores: Sequence[Store] = (),
    bleu_tokeniser: str = DEFAULT,
    transcripts: str = AS_DECODED,
) -> pd.DataFrame:
    """Compute every sequence measure that a store can give, one row per sentence and setting.

    beam: B, the first B hypotheses; temperature: T of the importance weights; length_norm: divide
    by the length. Each is one value or a list. weights_from, eos, equal_texts, bleu_tokeniser,
    transcripts: see `MeasureRules`. members: indices of a subset. measures: only these.
    member_stores: decodes of the single members, for xbleu, xwer and xchrf. Columns: sentence_id,
    beam, temperature, length_norm, flag, then the measures in the units of docs/measures.md, NaN
    for a sentence without a hypothesis. Raises StoreError for a requested measure that the store
    cannot give, ConfigError for a setting out of its range. Source:
    eqn-apn:sequence-entropy-chain-IW to eqn-apn:sequence-mkl-seq-IW.
    """
    rules = MeasureRules(weights_from, eos, equal_texts, bleu_tokeniser, transcripts)
    grid = Grid(_as_list(beam), _as_list(temperature), _as_list(length_norm), rules)
    refused = refusals(store, members, weights_from)
    if measures is not None:
        for name in measures:
            _check_requested(store, name, refused)
        refused = {name: refused[name] for name in measures}
    summation = HypothesisSummation(store, members)
    for block in token_blocks(store, members, eos):
        summation.add(block)
    of_texts = heuristic_measures(store, member_stores, bleu_tokeniser, transcripts)
    of_texts |= hypothesis_measures(store)
    table = sequence_table(store, summation.sums(), grid, refused, of_texts)
    if measures is not None:
        table = table[[*KEYS, *measures]]
    return table


def refusals(
    store: Store, members: Sequence[int] | None, weights_from: str
) -> dict[str, str | None]:
    """Return for each sequence measure why this store cannot give it, or None if it can."""
    return {
        name: _refusal(measure, store, members, weights_from)
        for name, measure in SEQUENCE_MEASURES.items()
    }


def _refusal(
    measure: SequenceMeasure, store: Store, members: Sequence[int] | None, weights_from: str
) -> str | None:
    if measure.estimator in (Estimator.MEMBER_DECODES, Estimator.HYPOTHESES):
        return None
    if measure.name in _WEIGHTED:
        if store.regime == "sample":
            return "samples are not importance-weighted: use the means over samples"
        if reason := _weights_refusal(store, weights_from):
            return reason
    elif reason := monte_carlo_refusal(measure, store, members):
        return reason
    if measure.members_only or has_distributions(store, members):
        return None
    return "a subset of members needs full distributions (dump=full)"


def _weights_refusal(store: Store, weights_from: str) -> str | None:
    if not decoding_posteriors(store) and weights_from == "decoding":
        return "importance weights need the posterior that decoded, not combination=member"
    return None


def hypothesis_measures_refusal(store: Store, weights_from: str) -> str | None:
    """Return why this store cannot average the user's measures of hypotheses, or None."""
    if store.regime == "sample":
        return sample_mean_refusal(store)
    return _weights_refusal(store, weights_from)


def sequence_table(
    store: Store,
    sums: HypothesisSums,
    grid: Grid,
    refused: Mapping[str, str | None],
    of_texts: Mapping[str, Float64],
) -> pd.DataFrame:
    """Compute the measures that are not refused, one row per sentence for each point of the grid.

    of_texts: name -> [sentence], the same at every point. They and the user's measures may be NaN
    for sentences that have no value. Raises ConfigError for a measure of the user that does not
    return one number per sentence or hypothesis, StoreError naming the sentence if any other
    measure is NaN.
    """
    available = [name for name, reason in refused.items() if reason is None]
    weighted = {name: measure for name, measure in _WEIGHTED.items() if name in available}
    rules = grid.rules
    own = OwnMeasures(store, grid.extra_measures, grid.hypothesis_measures)
    averages_own = hypothesis_measures_refusal(store, rules.weights_from) is None
    has_weights = store.regime != "sample" and _weights_refusal(store, rules.weights_from) is None
    by_name = rules.weights_from != "decoding"
    texts = compare_texts(store) if has_weights and rules.equal_texts == "merge" else None
    frames = []
    for beam in grid.beam:
        averaged, selection, merged = sums, first_hypotheses(store.hypothesis_offset, beam), None
        if has_weights:
            posterior = rules.weights_from if by_name else decoding_posteriors(store)[0]
            if texts is not None:
                merged = merge(sums.logprob[posterior], selection, texts)
                averaged, selection = merged.sums(sums), merged.selection
        quantities = {
            length_norm: {name: m.values(averaged, length_norm) for name, m in weighted.items()}
            for length_norm in set(grid.length_norm)
        }
        for temperature, length_norm in product(grid.temperature, grid.length_norm):
            settings: dict[str, Any] = {
                "beam": beam,
                "temperature": float(temperature),
                "length_norm": length_norm,
            }
            columns: dict[str, Any] = {"sentence_id": np.arange(store.n_sentence)} | settings
            columns["flag"] = store.flag
            if has_weights:
                log_pi = importance(averaged.logprob[posterior], selection, temperature)
                columns |= _weighted_means(store, quantities[length_norm], log_pi, selection)
            columns |= monte_carlo_measures(store, sums, beam, length_norm, available)
            columns |= of_texts
            columns |= own.of_sentences(settings)
            for name, values in own.of_hypotheses(settings).items() if averages_own else ():
                if has_weights:
                    kept = values if merged is None else merged.mean(values)
                    columns[name] = weighted_mean(log_pi, kept[selection.hypothesis], selection)
                else:
                    columns[name] = sample_mean(store, values, beam)
            frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _weighted_means(
    store: Store, quantities: Mapping[str, Float64], log_pi: Float64, selection: Selection
) -> dict[str, Float64]:
    columns = {}
    for name, quantity in quantities.items():
        is_log = SEQUENCE_MEASURES[name].estimator is Estimator.LOG_WEIGHTED_MEAN
        mean = log_weighted_mean if is_log else weighted_mean
        columns[name] = mean(log_pi, quantity[selection.hypothesis], selection)
        reject_nan(store, name, columns[name])
    return columns


def _check_requested(store: Store, name: str, refused: Mapping[str, str | None]) -> None:
    if name not in refused:
        raise ConfigError(f"measures: {name} is not a measure. Use {', '.join(sorted(refused))}.")
    if refused[name] is not None:
        raise StoreError(f"{store.path}: cannot give {name}: {refused[name]}.")


def _as_list(value: Any) -> Sequence[Any]:
    return list(value) if np.ndim(value) else [value]
