"""Distributions of the next token on the CPU, by compiled loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.compiled import draw_tokens, posteriors, top_tokens
from pipeline.decoding.posterior import Distributions, Floats, truncated
from pipeline.run.settings import DecodeConfig
from pipeline.statistics.kernel import fused_statistics
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, columns

# Number of values that are processed at a time, so that they stay in a core's cache.
_CACHED_VALUES = 2**19
# Below this, float32 exponentials lose digits and posteriors are computed in log space.
_EXACT_ABOVE_NATS = -80.0


class CompiledDistributions(Distributions):
    """Distributions from logits on the CPU. `top` and `draw` also fill in the log-normalisers."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__(logits.float())
        self._log_total: Tensor | None = None

    def log_total(self) -> Tensor:
        """ln sum_k exp(logit): [row, member]; NaN if a logit is NaN."""
        if self._log_total is None:
            # Log-probs instead of logits: the difference of two large numbers is less exact.
            self._logits = self._logits.log_softmax(dim=2)
            is_nan = self._logits.flatten(2).isnan().any(dim=2)
            self._log_total = torch.zeros(self._logits.shape[:2]).masked_fill(is_nan, torch.nan)
        return self._log_total

    def top(self, log_weight: Tensor, score_mask: Tensor, n_best: int) -> tuple[Tensor, Tensor]:
        """The most probable tokens under the posterior; see `Distributions.top`."""
        n_row, n_member, n_vocab = self._logits.shape
        score = torch.full((n_row, n_best), -torch.inf)
        token = torch.zeros((n_row, n_best), dtype=torch.long)
        n_kept = min(n_best, n_vocab)
        self._log_total = torch.empty(n_row, n_member)
        best = np.zeros((n_row, n_kept), np.float32)
        best_token = np.zeros((n_row, n_kept), np.int64)
        top_tokens(
            self._member_major(),
            log_weight.exp().numpy(),
            score_mask.exp().numpy(),
            self._log_total.numpy(),
            best,
            best_token,
        )
        score[:, :n_kept] = torch.from_numpy(best).log_()
        token[:, :n_kept] = torch.from_numpy(best_token)
        inexact = score[:, n_kept - 1] < _EXACT_ABOVE_NATS
        if inexact.any():
            # In log space, without underflow, at a tenth of the speed.
            row = inexact.nonzero().flatten()
            posterior = self.log_posterior(row, log_weight) + score_mask
            exact, exact_token = posterior.sort(dim=1, descending=True, stable=True)
            score[row, :n_kept] = exact[:, :n_kept]
            token[row, :n_kept] = exact_token[:, :n_kept]
        return score, token

    def draw(
        self,
        log_weight: Tensor,
        excluded: Sequence[int],
        uniform: NDArray[np.float64],
        decode: DecodeConfig,
    ) -> Tensor:
        """Draw one token per row from the posterior; see `Distributions.draw`."""
        probability = self._tempered(log_weight, decode.sampling_temperature)
        probability[:, excluded] = 0
        probability = truncated(probability, decode.sampling_top_k, decode.sampling_top_p)
        token = torch.zeros(len(probability), dtype=torch.long)
        draw_tokens(probability.numpy(), uniform, token.numpy())
        return token

    def statistics(self, row: Tensor, prefix_logprob: Tensor) -> Floats:
        """Columns [prefix, column] of the rows `row`, nats; see `Distributions.statistics`."""
        n_slice = -(-len(row) * self._logits[0].numel() // _CACHED_VALUES)
        tables = []
        for rows in row.tensor_split(n_slice):
            statistics = fused_statistics(self.logprob(rows).numpy(), prefix_logprob[rows].numpy())
            tables.append(columns(statistics, DISTRIBUTION_STATISTICS))
        return np.concatenate(tables)

    def blocks(self) -> Iterator[Tensor]:
        """Yield ln P_m of all rows at once: [prefix, member, vocab]."""
        yield self.logprob(torch.arange(len(self._logits)))

    def _tempered(self, log_weight: Tensor, temperature: float) -> Tensor:
        """P_post ** (1 / temperature), unnormalised: [row, vocab]."""
        n_row, n_member, n_vocab = self._logits.shape
        if not math.isclose(temperature, 1):
            score = self.log_posterior(torch.arange(n_row), log_weight) / temperature
            return score.softmax(dim=1)
        self._log_total = torch.empty(n_row, n_member)
        probability = torch.empty(n_row, n_vocab)
        posteriors(
            self._member_major(),
            log_weight.exp().numpy(),
            self._log_total.numpy(),
            probability.numpy(),
        )
        return probability

    def _member_major(self) -> NDArray[np.float32]:
        """Logits [member, row, vocab], the layout that the compiled code reads."""
        logits: NDArray[np.float32] = self._logits.transpose(0, 1).contiguous().numpy()
        return logits
