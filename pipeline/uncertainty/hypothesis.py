"""Sums over the tokens of each hypothesis, and the quantities that sequence measures average."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.posterior import Array, Float64


@dataclass(frozen=True)
class HypothesisSums:
    """Sums over the tokens of each hypothesis, in nats; every quantity is [hypothesis].

    length [hypothesis], EOS included; logprob_member [hypothesis, member]: ln P_m(y); logprob:
    posterior -> ln P_p(y), [hypothesis]; chain and maximum: token measure -> its sum and its
    largest value, [hypothesis]; deviation [hypothesis]: see `deviation_of_tokens`; logprob_own
    [hypothesis]: ln P_m(y) of the member m that drew y, empty unless members did.
    """

    length: Float64
    logprob_member: Float64
    logprob: dict[str, Float64]
    chain: dict[str, Float64]
    maximum: dict[str, Float64]
    deviation: Float64
    logprob_own: Float64 = field(default_factory=lambda: np.empty(0))

    @property
    def rate_member(self) -> Float64:
        """ln P_m(y) per token, [hypothesis, member]."""
        rate: Float64 = self.logprob_member / self.length[:, np.newaxis]
        return rate

    def score(self, posterior: str) -> Float64:
        """-ln P_p(y)."""
        return 0.0 - self.logprob[posterior]

    def member_score(self) -> Float64:
        """mean_m -ln P_m(y)."""
        score: Float64 = 0.0 - self.logprob_member.mean(axis=1)
        return score

    def reverse_mutual_information(self, posterior: str) -> Float64:
        """mean_m ln(P_p(y) / P_m(y)); 0 where the posterior excludes y."""
        joint = self.logprob[posterior]
        possible = ~np.isneginf(joint)
        ratio = np.where(possible, joint, 0.0) - self.logprob_member.mean(axis=1)
        return np.where(possible, ratio, 0.0)

    def log_variance(self) -> Float64:
        """ln var_m P_m(y), without underflow."""
        highest = self.logprob_member.max(axis=1)
        shift = np.where(np.isneginf(highest), 0.0, highest)
        with np.errstate(divide="ignore"):
            scaled = np.log(np.exp(self.logprob_member - shift[:, np.newaxis]).var(axis=1))
        result: Float64 = scaled + 2 * shift
        return result


def deviation_of_tokens(
    logprob: Array, logprob_member: Float64, token_offset: NDArray[np.integer]
) -> Float64:
    """mean_m std_l ln P_m(y_l), the standard deviation over the tokens of each hypothesis.

    logprob [token, member]; logprob_member [hypothesis, member], its sums; token_offset
    [hypothesis + 1], from 0. The variance is divided by the length. The deviation is infinite where
    a member excludes the hypothesis. Source: Fomicheva et al., TACL 8, 2020 (Sent-Std).
    """
    length = np.diff(token_offset)
    excluded = np.isneginf(logprob_member)
    mean = np.where(excluded, 0.0, logprob_member) / length[:, np.newaxis]
    squares = (logprob - np.repeat(mean, length, axis=0)) ** 2
    variance = np.add.reduceat(squares, token_offset[:-1], axis=0) / length[:, np.newaxis]
    deviation: Float64 = np.sqrt(variance).mean(axis=1)
    return deviation


def ratio_to_variance(rate_member: Float64) -> Float64:
    """mean_m logprob / var_m logprob - 1, [hypothesis, member] to [hypothesis].

    It is the negative of D-Combo, which estimates quality. It is -inf where all members agree, and
    -1 where some but not all exclude the hypothesis. Source: Fomicheva et al., TACL 8, 2020.
    """
    variance = variance_of_logprob(rate_member)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rate_member.mean(axis=1) / variance
    ratio = np.where(variance == 0, -np.inf, np.where(np.isinf(variance), 0.0, ratio))
    return ratio - 1


def variance_of_probability(logprob_member: Float64) -> Float64:
    """var_m exp(logprob), [hypothesis, member] to [hypothesis]; divided by the number of members.

    It underflows to 0 for long hypotheses: rank by `HypothesisSums.log_variance`.
    """
    variance: Float64 = np.exp(logprob_member).var(axis=1)
    return variance


def variance_of_logprob(logprob_member: Float64) -> Float64:
    """var_m logprob, [hypothesis, member] to [hypothesis]; divided by the number of members.

    It is infinite where some but not all members exclude the hypothesis, 0 where all do.
    """
    infinite = np.isneginf(logprob_member)
    some: NDArray[np.bool_] = np.any(infinite, axis=1)
    spread = np.where(some[:, np.newaxis], 0.0, logprob_member).var(axis=1)
    return np.where(some & ~infinite.all(axis=1), np.inf, spread)
