"""The posterior of the next token, and the statistics of its distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.store import TokenStatistics
from pipeline.uncertainty.kernel import STATISTICS, fused_statistics

# Distributions that are worked on at a time, so that they stay in a core's cache.
_BLOCK_VALUES = 2**19
# Near here the exponentials of float32 lose digits; below, posteriors are computed in logarithms.
_EXACT_BELOW_NATS = -80.0
Floats = NDArray[np.floating[Any]]


def member_log_weight(prefix_logprob: Tensor, combination: str) -> Tensor:
    """ln of the weight of each member in the next token's posterior [row, member].

    prex: 1 / M; expr: proportional to P(y_<l | x, theta_m), whose logarithm is prefix_logprob
    [row, member]. Source: eqn:token-posterior-token-level-bma,
    eqn:token-posterior-sequence-level-bma.
    """
    if combination == "expr":
        return torch.log_softmax(prefix_logprob, dim=1)
    return torch.full_like(prefix_logprob, -math.log(prefix_logprob.shape[1]))


def statistics_columns(logprob: Tensor, prefix_logprob: Tensor) -> Floats:
    """The statistics of the next token's distributions as columns [row, member + 5], nats.

    logprob [row, member, vocab], prefix_logprob [row, member]; columns in the order of
    `pipeline.uncertainty.kernel.STATISTICS`, which is that of `TokenStatistics` after logprob.
    """
    found = fused_statistics(logprob.numpy(), prefix_logprob.numpy())
    columns = np.column_stack([found[name] for name in STATISTICS])
    return columns.astype(np.float32)


class NextToken:
    """The members' distributions of the token after each prefix, and their posterior.

    logits [row, member, vocab]: their softmax is P_m; log_weight [row, member]: of the members.
    posterior [row, vocab]: ln P_post in nats.
    """

    def __init__(self, logits: Tensor, log_weight: Tensor) -> None:
        n_row, n_member, n_vocab = logits.shape
        self._logits = logits
        self._log_total = torch.empty(n_row, n_member)
        self.posterior = torch.empty(n_row, n_vocab)
        step = max(1, _BLOCK_VALUES // (n_member * n_vocab))
        for start in range(0, n_row, step):
            rows = slice(start, start + step)
            highest = logits[rows].amax(dim=2, keepdim=True)
            share = (logits[rows] - highest).exp_()
            total = share.sum(dim=2)
            self._log_total[rows] = total.log() + highest[:, :, 0]
            weight = log_weight[rows].exp() / total
            torch.bmm(weight[:, None], share, out=self.posterior[rows, None])
        self.posterior.log_()
        tiny = self.posterior < _EXACT_BELOW_NATS
        if tiny.any():
            row, token = tiny.nonzero(as_tuple=True)
            weighted = self.token_logprob(row, token) + log_weight[row]
            self.posterior[tiny] = torch.logsumexp(weighted, dim=1)

    def statistics(self, row: Tensor, prefix_logprob: Tensor) -> Floats:
        """`statistics_columns` after the prefixes `row` [prefix]: [prefix, member + 5], nats.

        prefix_logprob [row, member]: ln P_m of every prefix.
        """
        n_block = -(-len(row) * self._logits[0].numel() // _BLOCK_VALUES)
        return np.concatenate(
            [
                statistics_columns(self._logprob(rows), prefix_logprob[rows])
                for rows in row.tensor_split(n_block)
            ]
        )

    def _logprob(self, row: Tensor) -> Tensor:
        return self._logits.index_select(0, row).sub_(self._log_total[row][:, :, None])

    def token_logprob(self, row: Tensor, token: Tensor) -> Tensor:
        """ln P_m of one token after each of the prefixes `row`: [..., member], nats."""
        return self._logits.permute(0, 2, 1)[row, token] - self._log_total[row]

    def nan_at(self) -> tuple[int, int] | None:
        """Row and member of a distribution that holds NaN, if there is one."""
        found = self._log_total.isnan().nonzero()
        return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


def sequence_logprob(logprob: Tensor, combination: str) -> float:
    """ln P_post of a sequence in nats from ln P_m of its tokens [token, member].

    Source: eqn:ensemble-combinations.
    """
    n_member = logprob.shape[1]
    if combination == "expr":
        return float(torch.logsumexp(logprob.sum(dim=0), dim=0)) - math.log(n_member)
    return float((torch.logsumexp(logprob, dim=1) - math.log(n_member)).sum())


def token_statistics(history: Floats, n_member: int) -> TokenStatistics:
    """The statistics of a hypothesis from [token, 2 member + 5]: its log-probs, then columns."""
    logprob, entropy_member, rest = np.split(history, [n_member, 2 * n_member], axis=1)
    return TokenStatistics(logprob, entropy_member, *rest.T)
