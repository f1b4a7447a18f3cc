"""Token-level measures: a table of functions of the statistics of a position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.statistics.kernel import (
    Array,
    Float64,
    expr_log_weight,
    fused_statistics,
    log_mean,
    member_mean,
)
from pipeline.store import TokenStatistics


@dataclass(frozen=True)
class Position:
    """What a measure sees of positions: their statistics and the members' ExPr log-weights.

    log_weight [token, member]: ln w_m, w_m proportional to P(y_<l | x, theta_m). What several
    measures share is computed once, [token], in nats.
    """

    statistics: TokenStatistics
    log_weight: Float64

    def statistic(self, name: str) -> Float64:
        """A statistic [token] of the posterior."""
        values: Array = getattr(self.statistics, name)
        return values.astype(np.float64)

    @cached_property
    def data(self) -> Float64:
        """Mean entropy of the members."""
        return member_mean(self.statistics.entropy_member)

    @cached_property
    def weighted_data(self) -> Float64:
        """Mean entropy of the members, weighted as in ExPr."""
        entropy = self.statistics.entropy_member
        total: Float64 = np.einsum("tm,tm->t", np.exp(self.log_weight), entropy, dtype=np.float64)
        return total

    @cached_property
    def prex_score(self) -> Float64:
        """-ln P_PE of the token that stands there."""
        logprob = self.statistics.logprob
        return 0.0 - log_mean(logprob, -np.log(logprob.shape[1]))

    @cached_property
    def expr_score(self) -> Float64:
        """-ln P_EP of the token that stands there."""
        return 0.0 - log_mean(self.statistics.logprob, self.log_weight)

    def pmi(self, score: Float64) -> Float64:
        """Mean over members of ln P_post - ln P_m; 0 where the posterior gives the token 0."""
        possible = np.isfinite(score)
        mean = member_mean(self.statistics.logprob)
        return np.where(possible, -mean - np.where(possible, score, 0.0), 0.0)


@dataclass(frozen=True)
class TokenMeasure:
    """A measure [token] and the statistics that it needs.

    may_be_negative: without any fault, since uniform weights of members are not those of ExPr.
    """

    compute: Callable[[Position], Float64]
    needs: tuple[str, ...]
    may_be_negative: bool = False

    @property
    def full_distribution(self) -> bool:
        """Whether it looks at more than the token that stands at the position."""
        return self.needs != ("logprob",)


def _difference(minuend: str, subtrahend: str) -> TokenMeasure:
    return TokenMeasure(
        lambda p: p.statistic(minuend) - p.statistic(subtrahend), (minuend, subtrahend)
    )


def _above_data(name: str, *, may_be_negative: bool = False) -> TokenMeasure:
    return TokenMeasure(
        lambda p: p.statistic(name) - p.data, (name, "entropy_member"), may_be_negative
    )


def _above_weighted_data(name: str) -> TokenMeasure:
    return TokenMeasure(lambda p: p.statistic(name) - p.weighted_data, (name, "entropy_member"))


# Source: eqn:token-entropy-autoreg, eqn:token-mi-autoreg (second line), eqn:tokenb-epkl-autoreg,
# eqn:token-mkl-autoreg, eqn:token-posterior-score, eqn:token-npmi.
TOKEN_MEASURES: dict[str, TokenMeasure] = {
    "prex_entropy": TokenMeasure(lambda p: p.statistic("entropy_prex"), ("entropy_prex",)),
    "prex_mi": _above_data("entropy_prex"),
    "prex_epkl": _above_data("cross_prex"),
    "prex_rmi": _difference("cross_prex", "entropy_prex"),
    "prex_score": TokenMeasure(lambda p: p.prex_score, ("logprob",)),
    "prex_pmi": TokenMeasure(lambda p: p.pmi(p.prex_score), ("logprob",)),
    "expr_entropy": TokenMeasure(lambda p: p.statistic("entropy_expr"), ("entropy_expr",)),
    "expr_mi": _above_data("entropy_expr", may_be_negative=True),
    "expr_epkl": _above_data("cross_expr", may_be_negative=True),
    "expr_rmi": _difference("cross_expr", "entropy_expr"),
    "expr_score": TokenMeasure(lambda p: p.expr_score, ("logprob",)),
    "expr_pmi": TokenMeasure(lambda p: p.pmi(p.expr_score), ("logprob",), may_be_negative=True),
    "expr_mi_w": _above_weighted_data("entropy_expr"),
    "expr_epkl_w": _above_weighted_data("cross_expr"),
    # The first line of eqn:token-mi-autoreg, which under ExPr is not its second.
    "expr_mi_kl": _above_data("cross_member_expr"),
    "data": TokenMeasure(lambda p: p.data.copy(), ("entropy_member",)),
}


def token_measures(logprob: Array, token: NDArray[np.integer]) -> dict[str, Float64]:
    """Every token-level measure along one hypothesis, from its start.

    logprob [token, member, vocab]: ln P_m in nats, -inf allowed; token [token]: the ids that stand
    there. Returns name -> [token], in nats. Raises DataError for other shapes, ids outside the
    vocabulary and NaN. Source: eqn:token-entropy-autoreg to eqn:token-npmi.
    """
    statistics = token_statistics(logprob, token)
    offset = np.array([0, len(token)])
    return measures(position(statistics, offset))


def _check(logprob: Array, token: NDArray[np.integer]) -> None:
    if logprob.ndim != 3 or token.shape != logprob.shape[:1] or token.dtype.kind not in "iu":
        raise DataError(
            f"logprob must be [token, member, vocab] and token whole numbers [token], "
            f"got {logprob.shape} and {token.dtype} {token.shape}"
        )
    if len(token) and not 0 <= token.min() <= token.max() < logprob.shape[2]:
        raise DataError(
            f"token must lie in [0, {logprob.shape[2]}), got {token.min()} to {token.max()}"
        )


def token_statistics(logprob: Array, token: NDArray[np.integer]) -> TokenStatistics:
    """The store's statistics of one hypothesis from its full distributions.

    logprob [token, member, vocab] in nats; token [token]. float64 goes in and out as float64.
    Raises DataError for other shapes, ids outside the vocabulary and NaN.
    """
    logprob, token = np.asarray(logprob), np.asarray(token)
    _check(logprob, token)
    chosen = np.take_along_axis(logprob, token[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    chosen = chosen.astype(np.result_type(chosen, np.float32))
    prefix = prefix_logprob(chosen, np.array([0, len(token)]))
    statistics = TokenStatistics(logprob=chosen, **fused_statistics(logprob, prefix))
    wrong = np.isnan(statistics.entropy_member).any(axis=1)
    if wrong.any():
        raise DataError(f"logprob must not be NaN, got one at token {int(wrong.argmax())}")
    return statistics


def position(statistics: TokenStatistics, token_offset: NDArray[np.integer]) -> Position:
    """Statistics of whole hypotheses side by side, with the ExPr weights along each.

    token_offset [hypothesis + 1]: where the tokens of each hypothesis begin, from 0.
    """
    prefix = prefix_logprob(statistics.logprob, token_offset)
    return Position(statistics, expr_log_weight(prefix))


def measures(position: Position, members_only: bool = False) -> dict[str, Float64]:
    """Every measure of positions, name -> [token]; `members_only`: those of logprob alone."""
    return {
        name: measure.compute(position)
        for name, measure in TOKEN_MEASURES.items()
        if not (members_only and measure.full_distribution)
    }


def prefix_logprob(logprob: Array, token_offset: NDArray[np.integer]) -> Float64:
    """ln P(y_<l | x, theta_m) of every position, [token, member], within each hypothesis.

    logprob [token, member] in nats; token_offset [hypothesis + 1], from 0.
    """
    values = np.asarray(logprob, dtype=np.float64)
    impossible = np.isneginf(values)
    # -inf is counted apart: a running sum could not leave it again at the next hypothesis.
    finite = _running_sum(np.where(impossible, 0.0, values), token_offset)
    if not impossible.any():
        return finite
    return np.where(_running_sum(impossible.astype(np.float64), token_offset) > 0, -np.inf, finite)


def _running_sum(values: Float64, token_offset: NDArray[np.integer]) -> Float64:
    before: Float64 = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values, axis=0, out=before[1:])
    start = np.repeat(token_offset[:-1], np.diff(token_offset))
    return before[:-1] - before[start]
