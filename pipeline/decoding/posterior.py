"""The ensemble's distribution of the next token: what all ways to compute it have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import DataError
from pipeline.run.settings import DecodeConfig
from pipeline.store import TokenStatistics
from pipeline.store.statistics import column_views

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


class Distributions(ABC):
    """The members' distributions of the next token after each prefix, and their posterior.

    logits [row, member, vocab]: their softmax is P_m, of the prefix of each row. Results are on the
    CPU, unless stated otherwise. Subclasses differ in where and how they compute.
    """

    def __init__(self, logits: Tensor) -> None:
        self._logits = logits

    @abstractmethod
    def log_total(self) -> Tensor:
        """ln sum_k exp(logit): [row, member]; NaN if a logit is NaN. On the logits' device."""

    @abstractmethod
    def top(self, log_weight: Tensor, score_mask: Tensor, n_best: int) -> tuple[Tensor, Tensor]:
        """The most probable tokens under the posterior, on the logits' device.

        log_weight [row, member]: of the members in the posterior; score_mask [vocab]: added to
        ln P_post, -inf for tokens that must not be chosen. Returns the highest ln P_post +
        score_mask [row, n_best] in nats, highest first, and their token ids; ties are broken by the
        lower token id. If the vocabulary has fewer tokens, the remaining scores are -inf.
        """

    @abstractmethod
    def draw(
        self,
        log_weight: Tensor,
        excluded: Sequence[int],
        uniform: NDArray[np.float64],
        decode: DecodeConfig,
    ) -> Tensor:
        """Draw one token per row from the posterior, tempered and truncated as `decode` says.

        log_weight [row, member]: of the members; excluded: ids of tokens that are never drawn;
        uniform [row]: in [0, 1), at which the cumulative distribution is inverted.
        """

    @abstractmethod
    def statistics(self, row: Tensor, prefix_logprob: Tensor) -> Floats:
        """Columns of `DISTRIBUTION_STATISTICS` of the rows `row` [prefix]: [prefix, column], nats.

        prefix_logprob [row, member]: ln P_m of every prefix.
        """

    @abstractmethod
    def blocks(self) -> Iterator[Tensor]:
        """Yield ln P_m of all rows in order, as blocks [prefix, member, vocab] on their device."""

    def logprob(self, row: Tensor) -> Tensor:
        """ln P_m of the rows `row` [prefix] in nats, on their device: [prefix, member, vocab]."""
        log_total = self.log_total()[row][:, :, None]  # may replace the logits
        return self._logits.index_select(0, row).float().sub_(log_total)

    def log_posterior(self, row: Tensor, log_weight: Tensor) -> Tensor:
        """ln P_post of the rows `row` in nats, on their device: [prefix, vocab]; no underflow."""
        return torch.logsumexp(self.logprob(row) + log_weight[row][:, :, None], dim=1)

    def token_logprob(self, row: Tensor, token: Tensor) -> Tensor:
        """ln P_m of one token after each of the rows `row`: [..., member], nats."""
        log_total = self.log_total()
        row, token = row.to(log_total.device), token.to(log_total.device)
        return (self._logits.transpose(1, 2)[row, token].float() - log_total[row]).cpu()

    def token_score(self, token: int, log_weight: Tensor) -> Tensor:
        """ln P_post of one token after every prefix: [row], nats, on the logits' device."""
        log_total = self.log_total()
        weighted = self._logits[:, :, token].float() - log_total + log_weight.to(log_total.device)
        return torch.logsumexp(weighted, dim=1)

    def reject_nan(self, sentence_id: Callable[[int], int]) -> None:
        """Raise NanLogprobError if a logit is NaN; sentence_id: maps a row to its sentence's id."""
        is_nan = self.log_total().isnan()
        if is_nan.any():
            row, member = is_nan.nonzero()[0].tolist()
            raise NanLogprobError(sentence_id(row), member, is_nan.shape[1])


def truncated(probability: Tensor, top_k: int, top_p: float) -> Tensor:
    """Set the probability [row, vocab], unnormalised, of tokens that must not be drawn to 0.

    The `top_k` most probable tokens (0: all) are kept, and of these the fewest that together have
    the mass `top_p`.
    """
    if not 0 < top_k < probability.shape[1] and math.isclose(top_p, 1):
        return probability
    ordered, token = probability.sort(dim=1, descending=True, stable=True)
    if top_k:
        ordered[:, top_k:] = 0
    before = ordered.cumsum(dim=1) - ordered
    ordered.masked_fill_(before >= top_p * ordered.sum(dim=1, keepdim=True), 0)
    return torch.zeros_like(probability).scatter(1, token, ordered)
