"""Ancestral sampling from an ensemble: from either posterior, or from every member by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.decoding.beam import length_limit
from pipeline.decoding.model import EnsembleModel
from pipeline.decoding.next_token import drawn_tokens
from pipeline.decoding.posterior import (
    Floats,
    Tempered,
    member_log_weight,
    sequence_logprob,
    statistics_of,
)
from pipeline.decoding.test_set import Sentence, padded
from pipeline.errors import ConfigError
from pipeline.run.settings import DecodeConfig
from pipeline.store import Hypothesis
from pipeline.store.statistics import n_columns

# Samples of several sentences that are drawn together: larger arrays are no faster.
_MOST_ROWS = 320


def sample(
    model: EnsembleModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """`decode.beam` samples of each sentence of a batch in the order of drawing, with statistics.

    combination: prex; expr: members weighted by P(y_<l | x, theta_m), so that whole sequences come
    from P_EP; member: `decode.beam` samples of each member, those of the first member first, from
    P_m. Each hypothesis has random numbers of its own, seeded by decode.seed, sentence, member and
    place, so that batch and order do not enter. Padding is never drawn. A hypothesis longer than
    `length_limit` tokens before EOS is cut: not finished, without EOS. Score: ln P(y) / L ** length
    penalty under what it was drawn from, at temperature 1. Texts are left empty. Raises DataError
    naming member and sentence for a log-probability that is NaN, ConfigError for settings that do
    not ask for sampling. Source: eqn:sequence-entropy-seq-mc.
    """
    _check(decode)
    n_of_sentence = decode.beam * (model.n_member if combination == "member" else 1)
    size = max(1, _MOST_ROWS // n_of_sentence)
    found = []
    with torch.inference_mode():
        for start in range(0, len(sentences), size):
            samples = _Samples(model, sentences[start : start + size], combination, decode)
            while len(samples.hypothesis):
                samples.step()
            found += samples.found()
    return found


def _check(decode: DecodeConfig) -> None:
    if decode.regime != "sample":
        raise ConfigError(
            f"decode._target_ must be a decoder for decode.regime={decode.regime}, got sample, "
            f"which is for regime=sample"
        )
    for name in ("min_length", "unk_penalty"):
        if decode[name]:  # type: ignore[index]
            raise ConfigError(
                f"decode.{name} must be 0 with decode.regime=sample, since anything else draws "
                f"from another distribution, got {decode[name]}"  # type: ignore[index]
            )


class _Samples:
    """The hypotheses under way: one row each until it ends.

    hypothesis [row]: which one, counted over the batch; drawn_by [row]: its member or -1; tokens
    [row, token] from the start symbol on; prefix [row, member]: ln P_m of the tokens so far;
    history [row, token, column].
    """

    def __init__(
        self,
        model: EnsembleModel,
        sentences: Sequence[Sentence],
        combination: str,
        decode: DecodeConfig,
    ) -> None:
        self.model, self.combination, self.decode = model, combination, decode
        drawn_by = torch.arange(model.n_member) if combination == "member" else torch.tensor([-1])
        self.n_of_sentence = len(drawn_by) * decode.beam
        self.ids = [one.id for one in sentences]
        each = torch.arange(len(sentences)).repeat_interleave(self.n_of_sentence)
        self.hypothesis = torch.arange(len(each))
        self.drawn_by = drawn_by.repeat_interleave(decode.beam).repeat(len(sentences))
        limits = [length_limit(one.source, model, decode) for one in sentences]
        self.limits = torch.tensor(limits)[each]
        self.uniform = self._uniform(max(limits) + 1)
        self.ended: list[Hypothesis | None] = [None] * len(each)
        self.tokens = torch.full((len(each), 1), model.eos)
        self.prefix = torch.zeros(len(each), model.n_member)
        self.history = np.empty((len(each), 0, n_columns(model.n_member)), np.float32)
        self.first_row: Tensor | None = each  # all samples of a sentence begin with one row
        self.state: Any = model.encode(padded([one.source for one in sentences], model.pad))

    def found(self) -> list[list[Hypothesis]]:
        """The hypotheses [sentence][place], once all have ended."""
        ended = [one for one in self.ended if one is not None]
        size = self.n_of_sentence
        return [ended[start : start + size] for start in range(0, len(ended), size)]

    def step(self) -> None:
        """Draw a token for every row; put aside what ends."""
        n_token = self.tokens.shape[1] - 1
        weight = member_log_weight(self.prefix, self.combination, self.drawn_by)
        following = Tempered(self._logits(), weight, self.decode.sampling_temperature)
        following.refuse_nan(self._sentence_id)
        token = self._drawn(following.probability, n_token)
        row = torch.arange(len(token))
        chosen = following.token_logprob(row, token)
        columns = following.statistics(row, self.prefix)
        entry = np.concatenate([chosen.numpy(), columns], axis=1)
        self.history = np.concatenate([self.history, entry[:, None]], axis=1)
        self.tokens = torch.cat([self.tokens, token[:, None]], dim=1)
        self.prefix = self.prefix + chosen

        finished = token == self.model.eos
        over = finished | (n_token >= self.limits[self.hypothesis])
        for row in over.nonzero().flatten().tolist():
            self.ended[int(self.hypothesis[row])] = self._hypothesis(row, bool(finished[row]))
        self._go_on((~over).nonzero().flatten())

    def _logits(self) -> Tensor:
        """Logits of the next token [row, member, vocab]."""
        if self.first_row is None:
            return self.model.step(self.state, self.tokens)
        logits = self.model.step(self.state, self.tokens[:: self.n_of_sentence])
        first_row = self.first_row.to(logits.device)
        return logits.transpose(0, 1).index_select(1, first_row).transpose(0, 1)

    def _go_on(self, row: Tensor) -> None:
        before = row if self.first_row is None else self.first_row[row]
        self.first_row = None
        self.hypothesis, self.drawn_by = self.hypothesis[row], self.drawn_by[row]
        self.tokens, self.prefix = self.tokens[row], self.prefix[row]
        self.history = self.history[row.numpy()]
        if len(row):
            self.state = self.model.reorder(self.state, before, 1)

    def _drawn(self, probability: Tensor, n_token: int) -> Tensor:
        """A token for every row; probability [row, vocab] is up to a factor."""
        probability[:, self.model.pad] = 0
        probability = _truncated(probability, self.decode)
        uniform = self.uniform[self.hypothesis.numpy(), n_token]
        token = torch.zeros(len(probability), dtype=torch.long)
        drawn_tokens(probability.numpy(), uniform, token.numpy())
        return token

    def _uniform(self, n_token: int) -> NDArray[np.float64]:
        """Random numbers in [0, 1) [hypothesis, token]."""
        per_member = self.decode.beam
        numbers = []
        for hypothesis in range(len(self.hypothesis)):
            sentence, place = divmod(hypothesis, self.n_of_sentence)
            seeds = [self.decode.seed, self.ids[sentence], *divmod(place, per_member)]
            numbers.append(np.random.default_rng(seeds).random(n_token))
        return np.stack(numbers)

    def _hypothesis(self, row: int, finished: bool) -> Hypothesis:
        token, member = self.tokens[row, 1:], int(self.drawn_by[row])
        history: Floats = self.history[row]
        logprob = torch.from_numpy(history[:, : self.model.n_member])
        if member >= 0:
            logprob, combination = logprob[:, member, None], "prex"
        else:
            combination = self.combination
        score = sequence_logprob(logprob, combination) / len(token) ** self.decode.length_penalty
        statistics = statistics_of(history, self.model.n_member)
        return Hypothesis(token.numpy().copy(), "", score, finished, statistics, member)

    def _sentence_id(self, row: int) -> int:
        return self.ids[int(self.hypothesis[row]) // self.n_of_sentence]


def _truncated(probability: Tensor, decode: DecodeConfig) -> Tensor:
    """Probabilities [row, vocab], up to a factor, with 0 for what must not be drawn.

    The `sampling_top_k` likeliest tokens, then the fewest that hold the mass `sampling_top_p` of
    these; all where both are off.
    """
    top_k, top_p = decode.sampling_top_k, decode.sampling_top_p
    if not 0 < top_k < probability.shape[1] and math.isclose(top_p, 1):
        return probability
    ordered, token = probability.sort(dim=1, descending=True, stable=True)
    if top_k:
        ordered[:, top_k:] = 0
    before = ordered.cumsum(dim=1) - ordered
    ordered[before >= top_p * ordered.sum(dim=1, keepdim=True)] = 0
    return torch.zeros_like(probability).scatter(1, token, ordered)
