"""The posterior of the next token, and the statistics of its distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.decoding.next_token import likeliest_tokens, posteriors
from pipeline.errors import DataError
from pipeline.statistics.kernel import fused_statistics
from pipeline.store import Hypothesis, TokenStatistics
from pipeline.store.schema import value_range
from pipeline.store.statistics import (
    DISTRIBUTION_STATISTICS,
    STATISTICS,
    column_views,
    columns,
)


class NotANumberError(DataError):
    """A member gave NaN as a log-probability; `member`: its place among the `n_member`, from 0."""

    def __init__(self, sentence_id: int, member: int, n_member: int) -> None:
        super().__init__(
            f"member {member} of the ensemble must give log-probabilities, got NaN for "
            f"sentence {sentence_id}"
        )
        self.sentence_id = sentence_id
        self.member = member
        self.n_member = n_member

    def named(self, attributes: Mapping[str, Any]) -> DataError:
        """The same with the names of task, test set and member; attributes: of the store."""
        # Some of the members may search for all.
        lists = (attributes.get(name) or () for name in ("members", "search_members"))
        names = next((one for one in lists if len(one) == self.n_member), range(self.n_member))
        return DataError(
            f"{_place(attributes, self.sentence_id)}: member {names[self.member]} must give "
            f"log-probabilities, got NaN"
        )


def refuse_impossible(
    hypotheses: Sequence[Hypothesis], sentence_id: int, attributes: Mapping[str, Any]
) -> None:
    """Raise DataError for a statistic that is NaN or out of its range.

    It names task, test set, sentence, hypothesis, token, member and statistic; attributes: of the
    store.
    """
    members = attributes.get("members")
    for rank, hypothesis in enumerate(hypotheses):
        where = f"{_place(attributes, sentence_id)}, hypothesis {rank}"
        for name in STATISTICS:
            values = np.asarray(getattr(hypothesis.statistics, name))
            # Of tokens and members alone: their ranges depend on no size.
            allowed = value_range(f"/token/{name}", 1, 1, "")
            broken = ~((values >= allowed.lowest) & (values <= allowed.highest))
            if broken.any():
                token, *member = map(int, np.argwhere(broken)[0])
                names = [members[one] if members else one for one in member]
                who = "".join(f", member {one}" for one in names)
                value = float(values[token, *member])
                raise DataError(
                    f"{where}, token {token}{who}: {name} {allowed.rule}, got {value:.6g}"
                )


def _place(attributes: Mapping[str, Any], sentence_id: int) -> str:
    names = (attributes.get(name) for name in ("task", "test_set"))
    return ", ".join([*(str(one) for one in names if one), f"sentence {sentence_id}"])


# Distributions that are worked on at a time, so that they stay in a core's cache.
_BLOCK_VALUES = 2**19
# Near here the exponentials of float32 lose digits; below, posteriors are computed in logarithms.
_EXACT_ABOVE_NATS = -80.0
Floats = NDArray[np.floating[Any]]


def member_log_weight(
    prefix_logprob: Tensor, combination: str, drawn_by: Tensor | None = None
) -> Tensor:
    """ln of the weight of each member in the next token's posterior [row, member].

    prex: 1 / M; expr: proportional to P(y_<l | x, theta_m), whose logarithm is prefix_logprob
    [row, member]; member: 1 for the one that draws the row, drawn_by [row], and 0 for the others.
    Source: eqn:token-posterior-token-level-bma, eqn:token-posterior-sequence-level-bma.
    """
    if combination == "expr":
        return torch.log_softmax(prefix_logprob, dim=1)
    if combination == "member" and drawn_by is not None:
        return torch.full_like(prefix_logprob, -torch.inf).scatter(1, drawn_by[:, None], 0.0)
    return torch.full_like(prefix_logprob, -math.log(prefix_logprob.shape[1]))


def refuse_nan(logprob: Tensor, sentence_id: Callable[[int], int]) -> None:
    """Raise NotANumberError naming member and sentence for NaN in logprob [row, member, ...].

    sentence_id: place of a row -> id of its sentence.
    """
    found = logprob.flatten(2).isnan().any(dim=2).nonzero()
    if len(found):
        row, member = found[0].tolist()
        raise NotANumberError(sentence_id(row), member, logprob.shape[1])


def statistics_columns(logprob: Tensor, prefix_logprob: Tensor) -> Floats:
    """The statistics of the next token's distributions as columns [row, column], nats.

    logprob [row, member, vocab], prefix_logprob [row, member]; columns in the order of
    `DISTRIBUTION_STATISTICS`.
    """
    statistics = fused_statistics(logprob.cpu().numpy(), prefix_logprob.cpu().numpy())
    return columns(statistics, DISTRIBUTION_STATISTICS)


class Distributions:
    """The members' distributions of the token after each prefix.

    logits [row, member, vocab]: their softmax is P_m; log_weight [row, member]: of the members in
    P_post. Logits may be on any device; what comes out is on the CPU.
    """

    def __init__(self, logits: Tensor, log_weight: Tensor) -> None:
        self._logits = logits
        self._log_weight = log_weight.to(logits.device)
        self._log_total = torch.empty(0)  # [row, member]: ln of the sum of exp of logits

    def statistics(self, row: Tensor, prefix_logprob: Tensor) -> Floats:
        """`statistics_columns` after the prefixes `row` [prefix]: [prefix, column], nats.

        prefix_logprob [row, member]: ln P_m of every prefix.
        """
        n_block = -(-len(row) * self._logits[0].numel() // _BLOCK_VALUES)
        return np.concatenate(
            [
                statistics_columns(self.logprob(rows), prefix_logprob[rows])
                for rows in row.tensor_split(n_block)
            ]
        )

    def logprob(self, row: Tensor) -> Tensor:
        """ln P_m after the prefixes `row` [prefix]: [prefix, member, vocab], nats."""
        row = row.to(self._logits.device)
        return self._logits.index_select(0, row).sub_(self._log_total[row][:, :, None])

    def token_logprob(self, row: Tensor, token: Tensor) -> Tensor:
        """ln P_m of one token after each of the prefixes `row`: [..., member], nats."""
        return (self._logits.permute(0, 2, 1)[row, token] - self._log_total[row]).cpu()

    def refuse_nan(self, sentence_id: Callable[[int], int]) -> None:
        """Raise NotANumberError for NaN in a logit; sentence_id: place of a row -> its sentence."""
        refuse_nan(self._log_total[:, :, None], sentence_id)

    def _is_compiled(self) -> bool:
        return self._logits.device.type == "cpu"

    def _member_major(self) -> NDArray[np.float32]:
        """Logits [member, row, vocab] as compiled code reads them."""
        logits: NDArray[np.float32] = self._logits.transpose(0, 1).contiguous().numpy()
        return logits

    def _log_posterior(self, row: Tensor) -> Tensor:
        """ln P_post after the prefixes `row`: [prefix, vocab], nats, without underflow but slow."""
        weight = self._log_weight[row.to(self._logits.device)]
        return torch.logsumexp(self.logprob(row) + weight[:, :, None], dim=1)


class NextToken(Distributions):
    """Distributions with the likeliest tokens under P_post after each prefix.

    handicap [vocab]: what a search adds to ln P_post of a token, -inf where it must not choose it.
    score [row, n_best]: the highest ln P_post + handicap in nats, highest first, the lower token id
    where equal; token [row, n_best]. Where there are fewer tokens the rest is -inf.
    """

    def __init__(self, logits: Tensor, log_weight: Tensor, handicap: Tensor, n_best: int) -> None:
        super().__init__(logits, log_weight)
        n_row, n_member, n_vocab = logits.shape
        self._handicap = handicap.to(logits.device)
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
        n_row, kept = len(self.score), self._n_kept
        best = np.zeros((n_row, kept), np.float32)
        token = np.zeros((n_row, kept), np.int64)
        likeliest_tokens(
            self._member_major(),
            self._log_weight.exp().numpy(),
            self._handicap.exp().numpy(),
            self._log_total.numpy(),
            best,
            token,
        )
        self.score[:, :kept] = torch.from_numpy(best).log_()
        self.token[:, :kept] = torch.from_numpy(token)
        inexact = self.score[:, kept - 1] < _EXACT_ABOVE_NATS
        if inexact.any():
            self._fill_exactly(inexact.nonzero().flatten())

    def _fill_exactly(self, row: Tensor) -> None:
        """The same in logarithms, without underflow: slower by an order of magnitude."""
        posterior = self._log_posterior(row) + self._handicap
        score, token = posterior.sort(dim=1, descending=True, stable=True)
        self.score[row, : self._n_kept] = score[:, : self._n_kept].cpu()
        self.token[row, : self._n_kept] = token[:, : self._n_kept].cpu()

    def token_score(self, token: int) -> Tensor:
        """ln P_post of a token after every prefix, without handicap: [row], nats."""
        weighted = self._logits[:, :, token] - self._log_total + self._log_weight
        return torch.logsumexp(weighted, dim=1).cpu()


class Tempered(Distributions):
    """Distributions with what tokens are drawn from after each prefix.

    probability [row, vocab]: P_post ** (1 / temperature), up to a factor a row.
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


def sequence_logprob(logprob: Tensor, combination: str) -> float:
    """ln P_post of a sequence in nats from ln P_m of its tokens [token, member].

    Source: eqn:ensemble-combinations.
    """
    n_member = logprob.shape[1]
    if combination == "expr":
        return float(torch.logsumexp(logprob.sum(dim=0), dim=0)) - math.log(n_member)
    return float((torch.logsumexp(logprob, dim=1) - math.log(n_member)).sum())


def statistics_of(history: Floats, n_member: int) -> TokenStatistics:
    """The statistics of a hypothesis from their columns [token, column]."""
    return TokenStatistics(**column_views(history, n_member))
