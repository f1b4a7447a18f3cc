"""The ensemble's distribution of the next token: the posterior and the statistics of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.compiled import posteriors, top_tokens
from pipeline.errors import DataError
from pipeline.statistics.kernel import fused_statistics
from pipeline.store import TokenStatistics
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, column_views, columns

# Number of values that are processed at a time, so that they stay in a core's cache.
_CACHED_VALUES = 2**19
# Below this, float32 exponentials lose digits and posteriors are computed in log space.
_EXACT_ABOVE_NATS = -80.0
Floats = NDArray[np.floating[Any]]


class NanLogprobError(DataError):
    """A member returned NaN as a log-prob; `member` is its index among the `n_member`, from 0."""

    def __init__(self, sentence_id: int, member: int, n_member: int) -> None:
        super().__init__(
            f"sentence {sentence_id}: member {member} returned a NaN log-prob. Check its weights."
        )
        self.sentence_id = sentence_id
        self.member = member
        self.n_member = n_member

    def with_names(self, attributes: Mapping[str, Any]) -> DataError:
        """The same error with the names of task, test set and member from a store's attributes."""
        # The search may have used only some of the members.
        lists = (attributes.get(name) or () for name in ("members", "search_members"))
        names = next((names for names in lists if len(names) == self.n_member), None)
        member = self.member if names is None else names[self.member]
        where = sentence_place(attributes, self.sentence_id)
        return DataError(f"{where}: member {member} returned a NaN log-prob. Check its weights.")


def sentence_place(attributes: Mapping[str, Any], sentence_id: int) -> str:
    """Task, test set and sentence in words, for messages, from the attributes of a store."""
    names = (attributes.get(name) for name in ("task", "test_set"))
    return ", ".join([*(str(name) for name in names if name), f"sentence {sentence_id}"])


def reject_nan(logprob: Tensor, sentence_id: Callable[[int], int]) -> None:
    """Raise NanLogprobError if logprob [row, member, ...] has a NaN.

    sentence_id: maps a row to the id of its sentence.
    """
    with_nan = logprob.flatten(2).isnan().any(dim=2).nonzero()
    if len(with_nan):
        row, member = with_nan[0].tolist()
        raise NanLogprobError(sentence_id(row), member, logprob.shape[1])


def member_log_weight(
    prefix_logprob: Tensor, combination: str, drawn_by: Tensor | None = None
) -> Tensor:
    """Log-weight of each member in the posterior of the next token [row, member].

    prex: 1 / M. expr: proportional to P(y_<l | x, theta_m), where prefix_logprob [row, member] is
    its logarithm. member: 1 for the member drawn_by [row] that draws the row, 0 for all others.
    Source: eqn:token-posterior-token-level-bma, eqn:token-posterior-sequence-level-bma.
    """
    if combination == "expr":
        return torch.log_softmax(prefix_logprob, dim=1)
    if combination == "member" and drawn_by is not None:
        return torch.full_like(prefix_logprob, -torch.inf).scatter(1, drawn_by[:, None], 0.0)
    return torch.full_like(prefix_logprob, -math.log(prefix_logprob.shape[1]))


def distribution_columns(logprob: Tensor, prefix_logprob: Tensor) -> Floats:
    """Columns of `DISTRIBUTION_STATISTICS` [row, column] of the next token's distributions, nats.

    logprob [row, member, vocab]: ln P_m; prefix_logprob [row, member]: ln P_m of the prefix.
    """
    statistics = fused_statistics(logprob.cpu().numpy(), prefix_logprob.cpu().numpy())
    return columns(statistics, DISTRIBUTION_STATISTICS)


def statistics_of_columns(table: Floats, n_member: int) -> TokenStatistics:
    """Token statistics of a hypothesis from their columns [token, column]."""
    return TokenStatistics(**column_views(table, n_member))


def sequence_logprob(logprob: Tensor, combination: str) -> float:
    """ln P(y) of a sequence under PrEx or ExPr in nats, from ln P_m of its tokens [token, member].

    In float32, like the search: scores in a store are compared with these. Source:
    eqn:ensemble-combinations.
    """
    n_member = logprob.shape[1]
    if combination == "expr":
        return float(torch.logsumexp(logprob.sum(dim=0), dim=0)) - math.log(n_member)
    return float((torch.logsumexp(logprob, dim=1) - math.log(n_member)).sum())


class Distributions:
    """The members' distributions of the next token after each prefix.

    logits [row, member, vocab]: their softmax is P_m; log_weight [row, member]: of the members in
    the posterior. Logits may be on any device; results are on the CPU.
    """

    def __init__(self, logits: Tensor, log_weight: Tensor) -> None:
        self._logits = logits
        self._log_weight = log_weight.to(logits.device)
        self._log_total = torch.empty(0)  # [row, member]: ln sum_k exp(logit)

    def statistics(self, row: Tensor, prefix_logprob: Tensor) -> Floats:
        """Compute `distribution_columns` of the selected rows row [prefix]: [prefix, column], nats.

        prefix_logprob [row, member]: ln P_m of every prefix.
        """
        n_slice = -(-len(row) * self._logits[0].numel() // _CACHED_VALUES)
        return np.concatenate(
            [
                distribution_columns(self.logprob(rows), prefix_logprob[rows])
                for rows in row.tensor_split(n_slice)
            ]
        )

    def logprob(self, row: Tensor) -> Tensor:
        """ln P_m of the selected rows row [prefix]: [prefix, member, vocab], nats."""
        row = row.to(self._logits.device)
        return self._logits.index_select(0, row).sub_(self._log_total[row][:, :, None])

    def token_logprob(self, row: Tensor, token: Tensor) -> Tensor:
        """ln P_m of one token after each of the selected rows: [..., member], nats."""
        return (self._logits.permute(0, 2, 1)[row, token] - self._log_total[row]).cpu()

    def reject_nan(self, sentence_id: Callable[[int], int]) -> None:
        """Raise NanLogprobError if a logit is NaN; sentence_id: maps a row to its sentence's id."""
        reject_nan(self._log_total[:, :, None], sentence_id)

    def _is_compiled(self) -> bool:
        return self._logits.device.type == "cpu"

    def _member_major(self) -> NDArray[np.float32]:
        """Logits [member, row, vocab], the layout that the compiled code reads."""
        logits: NDArray[np.float32] = self._logits.transpose(0, 1).contiguous().numpy()
        return logits

    def _log_posterior(self, row: Tensor) -> Tensor:
        """ln P_post of the selected rows: [prefix, vocab], nats; without underflow, but slow."""
        weight = self._log_weight[row.to(self._logits.device)]
        return torch.logsumexp(self.logprob(row) + weight[:, :, None], dim=1)


class TopTokens(Distributions):
    """Distributions with the most probable tokens under the posterior after each prefix.

    score_mask [vocab]: added to ln P_post by the search; -inf for tokens that must not be chosen.
    score [row, n_best]: the highest ln P_post + score_mask in nats, highest first; ties are broken
    by the lower token id. token [row, n_best]: their ids. If the vocabulary has fewer tokens, the
    remaining scores are -inf.
    """

    def __init__(self, logits: Tensor, log_weight: Tensor, score_mask: Tensor, n_best: int) -> None:
        super().__init__(logits, log_weight)
        n_row, n_member, n_vocab = logits.shape
        self._score_mask = score_mask.to(logits.device)
        self.score = torch.full((n_row, n_best), -torch.inf)
        self.token = torch.zeros((n_row, n_best), dtype=torch.long)
        self._n_kept = min(n_best, n_vocab)
        if self._is_compiled():
            self._log_total = torch.empty(n_row, n_member)
            self._fill_compiled()
        else:
            self._log_total = torch.logsumexp(logits, dim=2)
            self._fill_exactly(torch.arange(n_row))

    def _fill_compiled(self) -> None:
        n_row, n_kept = len(self.score), self._n_kept
        best = np.zeros((n_row, n_kept), np.float32)
        token = np.zeros((n_row, n_kept), np.int64)
        top_tokens(
            self._member_major(),
            self._log_weight.exp().numpy(),
            self._score_mask.exp().numpy(),
            self._log_total.numpy(),
            best,
            token,
        )
        self.score[:, :n_kept] = torch.from_numpy(best).log_()
        self.token[:, :n_kept] = torch.from_numpy(token)
        inexact = self.score[:, n_kept - 1] < _EXACT_ABOVE_NATS
        if inexact.any():
            self._fill_exactly(inexact.nonzero().flatten())

    def _fill_exactly(self, row: Tensor) -> None:
        """Fill score and token in log space, without underflow, at a tenth of the speed."""
        posterior = self._log_posterior(row) + self._score_mask
        score, token = posterior.sort(dim=1, descending=True, stable=True)
        self.score[row, : self._n_kept] = score[:, : self._n_kept].cpu()
        self.token[row, : self._n_kept] = token[:, : self._n_kept].cpu()

    def token_score(self, token: int) -> Tensor:
        """ln P_post of one token after every prefix, without the score mask: [row], nats."""
        weighted = self._logits[:, :, token] - self._log_total + self._log_weight
        return torch.logsumexp(weighted, dim=1).cpu()


class TemperedPosterior(Distributions):
    """Distributions with the tempered posterior that tokens are drawn from.

    probability [row, vocab]: P_post ** (1 / temperature), unnormalised.
    """

    def __init__(self, logits: Tensor, log_weight: Tensor, temperature: float) -> None:
        super().__init__(logits, log_weight)
        n_row, n_member, n_vocab = logits.shape
        if self._is_compiled() and math.isclose(temperature, 1):
            self._log_total = torch.empty(n_row, n_member)
            self.probability = torch.empty(n_row, n_vocab)
            posteriors(
                self._member_major(),
                self._log_weight.exp().numpy(),
                self._log_total.numpy(),
                self.probability.numpy(),
            )
        else:
            self._log_total = torch.logsumexp(logits, dim=2)
            score = self._log_posterior(torch.arange(n_row)) / temperature
            self.probability = score.softmax(dim=1).cpu()
