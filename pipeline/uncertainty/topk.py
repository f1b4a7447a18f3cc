"""Bounds of token measures if only the k most probable tokens and the remaining mass are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.statistics.kernel import fused_statistics
from pipeline.statistics.posterior import Array, Float64, log_mean
from pipeline.store import TokenStatistics
from pipeline.uncertainty.weighted_statistics import WeightedStatistics

# The lowest and the highest value, [token] each, in nats.
Interval = tuple[Float64, Float64]


@dataclass(frozen=True)
class TopKDistributions:
    """Distributions of which the k most probable tokens and the mass of the tail are known.

    topk_logprob [token, member, k]: the k most probable tokens under PrEx; tail [token, member]: ln
    of the mass of all other tokens; logprob [token, member]: the realised token; log_weight
    [token, member]: ln w_m of ExPr. Each method bounds one measure. The k tokens, with the tail as
    one further token, form a coarser distribution. Its divergences are lower bounds; its entropies
    lack only the entropy within the tail.
    """

    topk_logprob: Array
    tail: Float64
    logprob: Array
    log_weight: Float64
    vocab_size: int

    @property
    def n_tail(self) -> int:
        """Number of tokens that share the mass of the tail."""
        return self.vocab_size - int(self.topk_logprob.shape[2])

    @cached_property
    def coarse(self) -> WeightedStatistics:
        """Statistics of the coarser distribution."""
        cells = np.concatenate(
            [self.topk_logprob, self.tail[:, :, np.newaxis]], axis=2, dtype=float
        )
        statistics = TokenStatistics(self.logprob, **fused_statistics(cells, self.log_weight))
        return WeightedStatistics(statistics, self.log_weight)

    @cached_property
    def _uniform(self) -> Float64:
        return np.full_like(self.tail, -np.log(self.tail.shape[1]))

    @cached_property
    def _tail_prex(self) -> Float64:
        return log_mean(self.tail, -np.log(self.tail.shape[1]))

    @cached_property
    def _tail_expr(self) -> Float64:
        return log_mean(self.tail, self.log_weight)

    @cached_property
    def _log_most(self) -> Float64:
        """Upper bound of ln P_PE of a tail token, which is at most as probable as each of the k."""
        listed = self.topk_logprob.astype(float)
        highest: Float64 = log_mean(listed, -np.log(listed.shape[1])).min(axis=1)
        return highest

    def data(self) -> Interval:
        """Bounds of mean_m H[P_m]."""
        log_most_member = self._log_most + np.log(self.tail.shape[1])
        low, high = self._tail_entropy(self.tail, log_most_member[:, np.newaxis])
        return self.coarse.data + low.mean(axis=1), self.coarse.data + high.mean(axis=1)

    def prex_entropy(self) -> Interval:
        """Bounds of H[P_PE]."""
        entropy = self.coarse.statistic("entropy_prex")
        low, high = self._tail_entropy(self._tail_prex, self._log_most)
        return entropy + low, entropy + high

    def expr_entropy(self) -> Interval:
        """Bounds of H[P_EP]."""
        entropy = self.coarse.statistic("entropy_expr")
        log_most_expr = self._log_most + np.log(self.tail.shape[1]) + self.log_weight.max(axis=1)
        low, high = self._tail_entropy(self._tail_expr, log_most_expr)
        return entropy + low, entropy + high

    def prex_mi(self) -> Interval:
        """Bounds of H[P_PE] - mean_m H[P_m]."""
        low = self.coarse.statistic("entropy_prex") - self.coarse.data
        return low, low + self._tail_information(self._uniform)

    def expr_mi_w(self) -> Interval:
        """Bounds of H[P_EP] - sum_m w_m H[P_m]."""
        low = self.coarse.statistic("entropy_expr") - self.coarse.weighted_data
        return low, low + self._tail_information(self.log_weight)

    def expr_mi(self) -> Interval:
        """Bounds of H[P_EP] - mean_m H[P_m], from the bounds of its terms."""
        (low, high), (low_data, high_data) = self.expr_entropy(), self.data()
        return low - high_data, high - low_data

    def expr_mi_kl(self) -> Interval:
        """Bounds of mean_m KL(P_m, P_EP)."""
        low = self.coarse.statistic("cross_member_expr") - self.coarse.data
        return low, low + self._tail_divergence()

    def prex_rmi(self) -> Interval:
        """Bounds of mean_m KL(P_PE, P_m); a divergence within the tail has no upper bound."""
        low = self.coarse.statistic("cross_prex") - self.coarse.statistic("entropy_prex")
        return low, self._unbounded_in_tail(low, self._tail_prex)

    def expr_rmi(self) -> Interval:
        """Bounds of mean_m KL(P_EP, P_m); a divergence within the tail has no upper bound."""
        low = self.coarse.statistic("cross_expr") - self.coarse.statistic("entropy_expr")
        return low, self._unbounded_in_tail(low, self._tail_expr)

    def prex_epkl(self) -> Interval:
        """Bounds of prex_mi + prex_rmi."""
        return _sum(self.prex_mi(), self.prex_rmi())

    def expr_epkl(self) -> Interval:
        """Bounds of expr_mi + expr_rmi."""
        return _sum(self.expr_mi(), self.expr_rmi())

    def expr_epkl_w(self) -> Interval:
        """Bounds of expr_mi_w + expr_rmi."""
        return _sum(self.expr_mi_w(), self.expr_rmi())

    def _tail_entropy(self, log_mass: Float64, log_most: Float64) -> Interval:
        """Bounds of r H(tail) for a tail of mass r whose tokens do not exceed exp(log_most)."""
        mass = np.exp(log_mass)
        if self.n_tail <= 1:
            return np.zeros_like(mass), np.zeros_like(mass)
        possible = mass > 0
        excess = np.where(possible, log_mass, 0.0) - np.where(possible, log_most, 0.0)
        return mass * np.maximum(0.0, excess), mass * np.log(self.n_tail)

    def _tail_information(self, log_weight: Float64) -> Float64:
        """Upper bound of the information of a tail token on the member: H(member | tail), ln n."""
        total = log_mean(self.tail, log_weight)
        if self.n_tail <= 1:
            return np.zeros_like(total)
        joint = self.tail + log_weight
        share = np.exp(joint - np.where(np.isneginf(total), 0.0, total)[:, np.newaxis])
        terms = np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0)
        bounded: Float64 = np.exp(total) * np.minimum(-terms.sum(axis=1), np.log(self.n_tail))
        return bounded

    def _tail_divergence(self) -> Float64:
        """mean_m r_m ln(r_EP / (w_m r_m)): the most that the tail adds to mean_m KL(P_m, P_EP)."""
        tail, tail_expr, log_weight = self.tail, self._tail_expr, self.log_weight
        if self.n_tail <= 1:
            return np.zeros_like(tail_expr)
        possible = ~np.isneginf(tail)
        weighted = ~np.isneginf(log_weight)
        known = np.where(possible & weighted, tail + log_weight, tail_expr[:, np.newaxis])
        with np.errstate(invalid="ignore"):
            terms = np.exp(tail) * (tail_expr[:, np.newaxis] - known)
        terms = np.where(possible, np.where(weighted, terms, np.inf), 0.0)
        mean: Float64 = terms.mean(axis=1)
        return mean

    def _unbounded_in_tail(self, low: Float64, log_mass: Float64) -> Float64:
        """Infinity where several members share a tail that has mass; the lower bound elsewhere."""
        if self.n_tail <= 1 or self.tail.shape[1] == 1:
            return low
        return np.where(np.isneginf(log_mass), low, np.inf)


def _sum(first: Interval, second: Interval) -> Interval:
    return first[0] + second[0], first[1] + second[1]
