"""Token statistics together with the ExPr weights of the members: the input of token measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.posterior import (
    Array,
    Float64,
    expr_log_weight,
    log_mean,
    member_mean,
    prefix_logprob,
)
from pipeline.store import TokenStatistics


@dataclass(frozen=True)
class WeightedStatistics:
    """Statistics of tokens, and the log-weights of the members in ExPr.

    log_weight [token, member]: ln w_m, with w_m proportional to P(y_<l | x, theta_m). Quantities
    that several measures share are computed once; they are [token], in nats.
    """

    statistics: TokenStatistics
    log_weight: Float64

    def statistic(self, name: str) -> Float64:
        """Return a statistic of the posterior, [token], in float64."""
        values: Array = getattr(self.statistics, name)
        return values.astype(np.float64)

    @cached_property
    def data(self) -> Float64:
        """Mean entropy of the members: mean_m H[P_m]."""
        return member_mean(self.statistics.entropy_member)

    @cached_property
    def weighted_data(self) -> Float64:
        """Entropy of the members weighted as in ExPr: sum_m w_m H[P_m]."""
        entropy = self.statistics.entropy_member
        total: Float64 = np.einsum("tm,tm->t", np.exp(self.log_weight), entropy, dtype=np.float64)
        return total

    @cached_property
    def prex_score(self) -> Float64:
        """-ln P_PE of the realised token."""
        logprob = self.statistics.logprob
        return 0.0 - log_mean(logprob, -np.log(logprob.shape[1]))

    @cached_property
    def expr_score(self) -> Float64:
        """-ln P_EP of the realised token."""
        return 0.0 - log_mean(self.statistics.logprob, self.log_weight)

    def pointwise_mutual_information(self, score: Float64) -> Float64:
        """mean_m (ln P_post - ln P_m) of the realised token; 0 where the posterior excludes it.

        score [token]: -ln P_post of the realised token.
        """
        possible = np.isfinite(score)
        mean = member_mean(self.statistics.logprob)
        return np.where(possible, -mean - np.where(possible, score, 0.0), 0.0)


def weighted_statistics(
    statistics: TokenStatistics, token_offset: NDArray[np.integer]
) -> WeightedStatistics:
    """Add the ExPr weights to the statistics of complete hypotheses.

    token_offset [hypothesis + 1]: where the tokens of each hypothesis begin, from 0.
    """
    prefix = prefix_logprob(statistics.logprob, token_offset)
    return WeightedStatistics(statistics, expr_log_weight(prefix))
