"""Token measures of one hypothesis from its distributions, and of many from their statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.statistics.kernel import fused_statistics
from pipeline.statistics.posterior import Array, Float64, prefix_logprob
from pipeline.store import TokenStatistics
from pipeline.store.normalisation import sum_fault, sum_tolerance
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES
from pipeline.uncertainty.topk import Interval, TopKDistributions
from pipeline.uncertainty.weighted_statistics import WeightedStatistics, weighted_statistics


def token_measures(logprob: Array, token: NDArray[np.integer]) -> dict[str, Float64]:
    """Compute every token measure along one hypothesis, from its start.

    logprob [token, member, vocab]: ln P_m in nats, -inf allowed; token [token]: the realised
    tokens. Returns name -> [token], in nats. Raises DataError for wrong shapes, ids outside the
    vocabulary and NaN. Source: eqn:token-entropy-autoreg to eqn:token-npmi.
    """
    statistics = token_statistics(logprob, token)
    return all_measures(weighted_statistics(statistics, np.array([0, len(token)])))


def token_statistics(logprob: Array, token: NDArray[np.integer]) -> TokenStatistics:
    """Compute what a store keeps of the full distributions of one hypothesis.

    logprob [token, member, vocab] in nats; token [token]: the realised tokens. float64 input gives
    float64 statistics. Raises DataError for wrong shapes, ids outside the vocabulary, NaN, and
    distributions whose probabilities do not sum to 1.
    """
    logprob, token = np.asarray(logprob), np.asarray(token)
    _check_arrays(logprob, token)
    realised = np.take_along_axis(logprob, token[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    realised = realised.astype(np.result_type(realised, np.float32))
    prefix = prefix_logprob(realised, np.array([0, len(token)]))
    mass = np.empty(logprob.shape[:2])
    statistics = fused_statistics(logprob, prefix, mass)
    if not (np.abs(mass - 1) <= sum_tolerance(logprob.shape[2])).all():
        fault = sum_fault(logprob, logprob.shape[2])
        if fault is not None:
            raise DataError(f"logprob: {fault}")
    return TokenStatistics(logprob=realised, **statistics)


def all_measures(token: WeightedStatistics, realised_only: bool = False) -> dict[str, Float64]:
    """Compute every token measure, name -> [token].

    realised_only: leave out those that need more than the probability of the realised token.
    """
    return {
        name: measure.compute(token)
        for name, measure in TOKEN_MEASURES.items()
        if measure.of_realised_token or not realised_only
    }


def token_bounds(
    topk_logprob: Array,
    tail_logprob: Array,
    logprob: Array,
    log_weight: Float64,
    vocab_size: int,
) -> dict[str, Interval]:
    """Return the lowest and highest value of each measure, name -> ([token], [token]) in nats.

    topk_logprob [token, member, k]: the k most probable tokens under PrEx; tail_logprob
    [token, member]: ln of the mass of the tail; logprob [token, member]: the realised token;
    log_weight [token, member]: ln w_m of ExPr. Measures without a rule for bounds are left out,
    unless the realised token determines them.
    """
    tail = tail_logprob.astype(np.float64)
    distributions = TopKDistributions(topk_logprob, tail, logprob, log_weight, vocab_size)
    bounds = {}
    for name, measure in TOKEN_MEASURES.items():
        if measure.topk_bounds is not None:
            bounds[name] = measure.topk_bounds(distributions)
        elif measure.of_realised_token:
            exact = measure.compute(distributions.coarse)
            bounds[name] = exact, exact
    return bounds


def _check_arrays(logprob: Array, token: NDArray[np.integer]) -> None:
    if logprob.ndim != 3 or token.shape != logprob.shape[:1] or token.dtype.kind not in "iu":
        raise DataError(
            f"logprob, token: must be [token, member, vocab] and whole numbers [token] "
            f"(got {logprob.shape} and {token.dtype} {token.shape})."
        )
    if len(token) and not 0 <= token.min() <= token.max() < logprob.shape[2]:
        raise DataError(
            f"token: must lie in [0, {logprob.shape[2]}) (got {token.min()} to {token.max()})."
        )
