"""Distributions of the next token on the device of the logits: only what is kept leaves it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.decoding.compiled import CompiledDistributions
from pipeline.decoding.posterior import Distributions, Floats, truncated
from pipeline.run.settings import DecodeConfig
from pipeline.statistics.posterior import expr_log_weight
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, n_columns

# How distributions are made of logits: `distributions_of`, unless a test chooses.
DistributionsOf = Callable[[Tensor, DecodeConfig], Distributions]
# Float32 arrays of a block that exist at the same time: [row, member, vocab] and [row, vocab].
_MEMBER_ARRAYS, _POSTERIOR_ARRAYS = 4, 8
_SIGN_BIT, _ALL_BUT_SIGN = 31, 2**31 - 1


def distributions_of(logits: Tensor, decode: DecodeConfig) -> Distributions:
    """Distributions by compiled loops if the logits are on the CPU, else on their device."""
    if logits.device.type == "cpu":
        return CompiledDistributions(logits)
    return DeviceDistributions(logits, decode.device_memory_mib * 2**20)


class DeviceDistributions(Distributions):
    """Distributions from logits on any device, in blocks of rows, with torch.

    memory_bytes: of the working memory of a block, besides the logits; a block has at least one
    row. Logits may have half precision; everything else is float32. Posteriors are computed in log
    space, which needs no second pass for small probabilities.
    """

    def __init__(self, logits: Tensor, memory_bytes: int) -> None:
        super().__init__(logits)
        n_array = _MEMBER_ARRAYS * logits.shape[1] + _POSTERIOR_ARRAYS
        self._block_rows = max(1, memory_bytes // (4 * n_array * logits.shape[2]))
        totals = [rows.float().logsumexp(dim=2) for rows in logits.split(self._block_rows)]
        total = torch.cat(totals)
        self._log_total = total.where(total.isfinite(), torch.nan)

    def log_total(self) -> Tensor:
        """ln sum_k exp(logit): [row, member]; NaN if a logit is NaN. On the logits' device."""
        return self._log_total

    def top(self, log_weight: Tensor, score_mask: Tensor, n_best: int) -> tuple[Tensor, Tensor]:
        """The most probable tokens under the posterior; see `Distributions.top`."""
        log_weight, score_mask = self._here(log_weight), self._here(score_mask)
        n_kept = min(n_best, self._logits.shape[2])
        found = [
            _highest(self.log_posterior(row, log_weight) + score_mask, n_kept)
            for row in self._rows()
        ]
        score, token = (torch.cat(parts) for parts in zip(*found, strict=True))
        missing = (0, n_best - n_kept)
        return (
            torch.nn.functional.pad(score, missing, value=-torch.inf),
            torch.nn.functional.pad(token, missing),
        )

    def draw(
        self,
        log_weight: Tensor,
        excluded: Sequence[int],
        uniform: NDArray[np.float64],
        decode: DecodeConfig,
    ) -> Tensor:
        """Draw one token per row from the posterior; see `Distributions.draw`."""
        log_weight, number = self._here(log_weight), self._here(torch.from_numpy(uniform))
        never = self._here(torch.tensor(excluded, dtype=torch.long))
        tokens = []
        for row in self._rows():
            score = self.log_posterior(row, log_weight) / decode.sampling_temperature
            probability = score.softmax(dim=1).index_fill_(1, never, 0.0)
            probability = truncated(probability, decode.sampling_top_k, decode.sampling_top_p)
            tokens.append(_inverted(probability, number[row]))
        return torch.cat(tokens).cpu()

    def statistics(self, row: Tensor, prefix_logprob: Tensor) -> Floats:
        """Columns [prefix, column] of the rows `row`, nats; see `Distributions.statistics`."""
        log_weight = expr_log_weight(prefix_logprob[row].numpy()).astype(np.float32)
        blocks = zip(
            self._here(row).split(self._block_rows),
            self._here(torch.from_numpy(log_weight)).split(self._block_rows),
            strict=True,
        )
        tables = [distribution_columns(self.logprob(rows), weight) for rows, weight in blocks]
        table: Floats = torch.cat(tables).cpu().numpy()
        return table

    def blocks(self) -> Iterator[Tensor]:
        """Yield ln P_m of all rows in blocks [prefix, member, vocab], on the logits' device."""
        yield from map(self.logprob, self._rows())

    def _rows(self) -> Sequence[Tensor]:
        """Indices of the rows of each block."""
        row = torch.arange(len(self._logits), device=self._logits.device)
        blocks: Sequence[Tensor] = row.split(self._block_rows)
        return blocks

    def _here(self, values: Tensor) -> Tensor:
        return values.to(self._logits.device)


def distribution_columns(logprob: Tensor, log_weight: Tensor) -> Tensor:
    """Columns of `DISTRIBUTION_STATISTICS` [row, column] in nats, on the device of logprob.

    logprob [row, member, vocab]: ln P_m in nats, -inf allowed; log_weight [row, member]: of the
    members in ExPr. 0 ln 0 is 0; a cross entropy is +inf where a member excludes a token that the
    posterior does not. The same as `pipeline.statistics.kernel.fused_statistics`.
    """
    n_member = logprob.shape[1]
    probability = logprob.exp()
    entropy_member = 0.0 - torch.xlogy(probability, probability).sum(dim=-1)
    del probability
    if n_member == 1:
        return entropy_member.expand(-1, n_columns(1, DISTRIBUTION_STATISTICS))
    log_prex = logprob.logsumexp(dim=1) - math.log(n_member)
    log_expr = (logprob + log_weight[:, :, None]).logsumexp(dim=1)
    mean_member = logprob.mean(dim=1)  # -inf where a member excludes a token
    pairs = (
        (log_prex, log_prex),
        (log_expr, log_expr),
        (log_prex, mean_member),
        (log_expr, mean_member),
        (log_prex, log_expr),
    )
    of_posteriors = [_cross_entropy(log_p, log_q) for log_p, log_q in pairs]
    return torch.cat([entropy_member, torch.stack(of_posteriors, dim=1)], dim=1)


def _cross_entropy(log_p: Tensor, log_q: Tensor) -> Tensor:
    """-sum_k p ln q over the last axis: 0 where p is 0, +inf where only q is 0."""
    terms = log_p.exp().mul_(log_q).neg_()
    terms.masked_fill_(log_q.isneginf(), torch.inf).masked_fill_(log_p.isneginf(), 0.0)
    return terms.sum(dim=-1)


def _highest(score: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest scores [row, vocab] and their tokens, ties by the lower token id."""
    # torch.topk leaves the order of ties open. Keys are distinct: the bits of the score, mapped to
    # integers of the same order, and then the token.
    bits = (score + 0.0).view(torch.int32)  # + 0.0 turns -0.0 into 0.0
    order = bits ^ ((bits >> _SIGN_BIT) & _ALL_BUT_SIGN)
    last_token = score.shape[1] - 1
    token = torch.arange(last_token, -1, -1, device=score.device)
    key = (order.long() << 32) | token
    best = last_token - (key.topk(count, dim=1).values & 0xFFFFFFFF)
    return score.gather(1, best), best


def _inverted(probability: Tensor, uniform: Tensor) -> Tensor:
    """The token at which the cumulative distribution exceeds `uniform` [row], in float64.

    probability [row, vocab] is unnormalised. A token of probability 0 is never drawn.
    """
    mass = probability.cumsum(dim=1, dtype=torch.float64)
    total = mass[:, -1:].contiguous()
    token = torch.searchsorted(mass, uniform[:, None] * total, right=True)
    # If rounding keeps the mass below the target, the last possible token is drawn.
    return torch.minimum(token, torch.searchsorted(mass, total))[:, 0]
