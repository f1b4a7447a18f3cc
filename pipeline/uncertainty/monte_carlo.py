"""Sequence measures as means over samples, from stores of regime `sample`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from pipeline.statistics.posterior import Float64
from pipeline.store import Store
from pipeline.uncertainty.blocks import decoding_posteriors
from pipeline.uncertainty.checks import reject_nan, reject_undrawable
from pipeline.uncertainty.hypothesis import HypothesisSums
from pipeline.uncertainty.measures_of_sequences import Estimator, SequenceMeasure, measures_by
from pipeline.uncertainty.weighting import (
    Selection,
    first_hypotheses,
    first_of_member,
    uniform,
    weighted_mean,
)


def monte_carlo_refusal(
    measure: SequenceMeasure, store: Store, members: Sequence[int] | None
) -> str | None:
    """Return why the samples of this store cannot give a measure, or None.

    members: indices of a subset of the members, all by default.
    """
    if reason := sample_mean_refusal(store):
        return reason
    if measure.estimator is Estimator.MEMBER_SAMPLE_MEAN:
        if store.combination != "member":
            return f"it needs samples of each member, not combination={store.combination}"
        if members is not None:
            return "it needs the samples of all members, not of a subset"
        return None
    drawn_from = decoding_posteriors(store)
    if not drawn_from or measure.posterior not in ("", *drawn_from):
        needed = measure.posterior or "a posterior"
        return f"it needs samples of {needed}, not combination={store.combination}"
    return None


def sample_mean_refusal(store: Store) -> str | None:
    """Return why the samples of this store do not estimate an expectation, or None."""
    if store.regime != "sample":
        return f"it needs samples (regime=sample), this store has regime={store.regime}"
    temperature = store.attributes.get("sampling_temperature", 1)
    if temperature != 1:
        return f"it needs samples at temperature 1, not sampling_temperature={temperature}"
    for name, untruncated in (("sampling_top_k", store.vocab_size), ("sampling_top_p", 1)):
        # If the attribute is absent, 0 or -1, samples are not truncated either.
        value = store.attributes.get(name, untruncated)
        if 0 < value < untruncated:
            return f"it needs samples of the whole distribution, not {name}={value}"
    return None


def sample_mean(store: Store, values: Float64, beam: int) -> Float64:
    """Return the mean over the first `beam` samples, [hypothesis] to [sentence].

    Where single members drew the samples, those of each member are averaged first.
    """
    if store.combination == "member":
        return _mean_of_members(store, values, _first_of_each_member(store, beam))
    selection = first_hypotheses(store.hypothesis_offset, beam)
    return weighted_mean(uniform(selection), values[selection.hypothesis], selection)


def _first_of_each_member(store: Store, beam: int) -> Selection:
    drawn_by = store.read("/hypothesis/member")
    return first_of_member(store.hypothesis_offset, drawn_by, store.n_member, beam)


def _mean_of_members(store: Store, values: Float64, selection: Selection) -> Float64:
    mean = weighted_mean(uniform(selection), values[selection.hypothesis], selection)
    of_members: Float64 = mean.reshape(store.n_sentence, store.n_member).mean(axis=1)
    return of_members


def monte_carlo_measures(
    store: Store, sums: HypothesisSums, beam: int, length_norm: bool, available: Collection[str]
) -> dict[str, Float64]:
    """Compute the available means over the first `beam` samples, name -> [sentence].

    Where single members drew the samples, the first `beam` of each member are averaged first; the
    measure is NaN for a sentence for which a member drew no sample. Raises StoreError, naming the
    sentence, for a mean over samples of the posterior that is NaN and for a sample that its own
    member gives probability 0. Source: eqn:sequence-entropy-seq-mc to eqn:sequence-mkl-chain-mc;
    eqn:sequence-mi-seq-app and eqn:sequence-epkl-seq-app.
    """
    columns = _member_sample_means(store, sums, beam, length_norm, available)
    selection = first_hypotheses(store.hypothesis_offset, beam)
    log_weight = uniform(selection)
    for name, measure in measures_by(Estimator.SAMPLE_MEAN).items():
        if name in available:
            values = measure.values(sums, length_norm)[selection.hypothesis]
            columns[name] = weighted_mean(log_weight, values, selection)
            reject_nan(store, name, columns[name])
    return columns


def _member_sample_means(
    store: Store, sums: HypothesisSums, beam: int, length_norm: bool, available: Collection[str]
) -> dict[str, Float64]:
    measures = {
        name: measure
        for name, measure in measures_by(Estimator.MEMBER_SAMPLE_MEAN).items()
        if name in available
    }
    if not measures:
        return {}
    drawn_by = store.read("/hypothesis/member")
    own = sums.logprob_member[np.arange(len(drawn_by)), drawn_by]
    reject_undrawable(store, own)
    sums = replace(sums, logprob_own=own)
    selection = _first_of_each_member(store, beam)
    return {
        name: _mean_of_members(store, measure.values(sums, length_norm), selection)
        for name, measure in measures.items()
    }
