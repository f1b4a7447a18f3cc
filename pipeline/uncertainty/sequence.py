"""Sequence-level measures of a decode store, for a whole grid of settings at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from pipeline.errors import ConfigError, StoreError
from pipeline.statistics.kernel import Float64
from pipeline.store import Store
from pipeline.uncertainty.blocks import has_distributions, measured_blocks
from pipeline.uncertainty.checks import refuse_nan
from pipeline.uncertainty.heuristics import heuristic_measures
from pipeline.uncertainty.hypothesis import (
    FORMS,
    POSTERIORS,
    HypothesisTotals,
    Selection,
    TotalsBuilder,
    decoding_posteriors,
    first_hypotheses,
    importance,
    log_variance,
    log_weighted_mean,
    weighted_mean,
)
from pipeline.uncertainty.monte_carlo import monte_carlo_measures, monte_carlo_refusals

ExtraMeasure = Callable[..., Any]
# ln of var_p: var_p itself underflows for long hypotheses, which then cannot be ranked.
LOG_VARIANCE = "ln_var_p"
KEYS = ("sentence_id", "beam", "temperature", "length_norm", "flag")


@dataclass(frozen=True)
class Grid:
    """Settings of the sequence-level measures; every combination of the three lists is computed.

    weights_from: posterior of the importance weights, `decoding` for the one that decoded; extra:
    further measures, name -> f(store, beam=, temperature=, length_norm=) -> [sentence]. Raises
    ConfigError for a value out of its range.
    """

    beam: Sequence[int]
    temperature: Sequence[float]
    length_norm: Sequence[bool]
    weights_from: str = "decoding"
    extra: Mapping[str, ExtraMeasure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.beam or any(beam < 1 or beam != int(beam) for beam in self.beam):
            raise ConfigError(f"beam must be a whole number >= 1, got {self.beam}")
        if not self.temperature or any(not 0 < one < np.inf for one in self.temperature):
            raise ConfigError(f"temperature must be > 0 and finite, got {self.temperature}")
        if not self.length_norm:
            raise ConfigError(f"length_norm must be true or false, got {self.length_norm}")
        if self.weights_from not in ("decoding", *POSTERIORS):
            raise ConfigError(
                f"weights_from must be one of decoding, {', '.join(POSTERIORS)}, "
                f"got {self.weights_from!r}"
            )


def sequence_measures(
    store: Store,
    beam: int | Sequence[int],
    temperature: float | Sequence[float],
    length_norm: bool | Sequence[bool],
    *,
    weights_from: str = "decoding",
    eos: str = "include",
    members: Sequence[int] | None = None,
    measures: Sequence[str] | None = None,
    member_stores: Sequence[Store] = (),
) -> pd.DataFrame:
    """Every sequence-level measure that a store can give, a row a sentence and setting.

    beam: B, the first B hypotheses; temperature: T of the importance weights; length_norm: divide
    by the length; each one value or a list. weights_from: `decoding`, `prex` or `expr`. eos:
    `include` or `zero`. members: places of a subset. measures: only these. member_stores: decodes
    of the single members, for xbleu and xwer. Columns: sentence_id, beam, temperature, length_norm,
    flag, then measures in nats (xbleu and xwer in squared percent), NaN for a sentence without a
    hypothesis. Raises StoreError for a measure that is asked for and cannot be had, ConfigError for
    a setting out of its range. Source: eqn-apn:sequence-entropy-chain-IW to
    eqn-apn:sequence-mkl-seq-IW.
    """
    grid = Grid(_listed(beam), _listed(temperature), _listed(length_norm), weights_from)
    refused = refusals(store, members, weights_from)
    for name in measures or ():
        _check_asked(store, name, refused)
    builder = TotalsBuilder(store, members)
    for block in measured_blocks(store, members, eos):
        builder.add(block)
    heuristics = heuristic_measures(store, member_stores)
    table = sequence_table(store, builder.totals(), grid, refused, heuristics)
    if measures is not None:
        table = table[[*KEYS, *measures]]
    return table


def refusals(
    store: Store, members: Sequence[int] | None, weights_from: str
) -> dict[str, str | None]:
    """Measure -> why this store cannot give it, None where it can."""
    weighted: str | None = None
    if store.regime == "sample":
        weighted = "samples are not importance-weighted: use the Monte-Carlo forms"
    elif not decoding_posteriors(store) and weights_from == "decoding":
        weighted = "importance weights need the posterior that decoded, this has combination=member"
    distributions = None
    if not has_distributions(store, members):
        distributions = "a subset of members needs full distributions (dump=full)"
    refused: dict[str, str | None] = {
        name: weighted or (None if form.members_only else distributions)
        for name, form in FORMS.items()
    }
    refused[LOG_VARIANCE] = weighted
    refused["xbleu"] = refused["xwer"] = None
    return refused | {
        name: reason or (None if members_only else distributions)
        for name, (reason, members_only) in monte_carlo_refusals(store, members).items()
    }


def sequence_table(
    store: Store,
    totals: HypothesisTotals,
    grid: Grid,
    refused: Mapping[str, str | None],
    heuristics: Mapping[str, Float64],
) -> pd.DataFrame:
    """The measures that are not refused, for every point of the grid, a row a sentence.

    heuristics: name -> [sentence], the same at every point. They and extra measures may be NaN, for
    a sentence that has none. Raises ConfigError for an extra measure that does not give one value a
    sentence, StoreError naming the sentence for any other measure that is NaN.
    """
    can = [name for name, reason in refused.items() if reason is None]
    values = {norm: _hypothesis_values(totals, norm, can) for norm in set(grid.length_norm)}
    frames = []
    for beam, temperature, length_norm in product(grid.beam, grid.temperature, grid.length_norm):
        settings: dict[str, Any] = {
            "beam": beam,
            "temperature": float(temperature),
            "length_norm": length_norm,
        }
        columns: dict[str, Any] = {"sentence_id": np.arange(store.n_sentence)} | settings
        columns["flag"] = store.flag
        if values[length_norm]:
            by_name = grid.weights_from != "decoding"
            posterior = grid.weights_from if by_name else decoding_posteriors(store)[0]
            selection = first_hypotheses(store.hypothesis_offset, beam)
            log_pi = importance(totals.logprob[posterior], selection, temperature)
            columns |= _weighted_means(store, values[length_norm], log_pi, selection)
        columns |= monte_carlo_measures(store, totals, beam, length_norm, can)
        columns |= heuristics
        columns |= _extra_measures(store, grid.extra, settings, taken=columns)
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _hypothesis_values(
    totals: HypothesisTotals, length_norm: bool, can: Sequence[str]
) -> dict[str, Float64]:
    """What the importance-weighted measures are means of, name -> [hypothesis]."""
    values = {name: form.value(totals, length_norm) for name, form in FORMS.items() if name in can}
    if LOG_VARIANCE in can:
        values[LOG_VARIANCE] = log_variance(totals)
    return values


def _weighted_means(
    store: Store, values: Mapping[str, Float64], log_pi: Float64, selection: Selection
) -> dict[str, Float64]:
    columns = {}
    for name, value in values.items():
        mean = log_weighted_mean if name == LOG_VARIANCE else weighted_mean
        columns[name] = mean(log_pi, value[selection.hypothesis], selection)
        refuse_nan(store, name, columns[name])
    return columns


def _extra_measures(
    store: Store,
    extra: Mapping[str, ExtraMeasure],
    settings: Mapping[str, Any],
    taken: Collection[str],
) -> dict[str, Float64]:
    columns = {}
    for name, function in extra.items():
        key = f"uncertainty.extra_measures.{name}"
        if name in taken:
            raise ConfigError(f"{key} must have a name of its own, got that of a column")
        columns[name] = np.asarray(function(store, **settings), dtype=np.float64)
        if columns[name].shape != (store.n_sentence,):
            raise ConfigError(
                f"{key} must give one value a sentence ({store.n_sentence}), "
                f"got shape {columns[name].shape}"
            )
    return columns


def _check_asked(store: Store, name: str, refused: Mapping[str, str | None]) -> None:
    if name not in refused:
        raise ConfigError(f"{name} is not a measure: there are {', '.join(sorted(refused))}")
    if refused[name] is not None:
        raise StoreError(f"{store.path} cannot give {name}: {refused[name]}")


def _listed(value: Any) -> Sequence[Any]:
    return list(value) if np.ndim(value) else [value]
