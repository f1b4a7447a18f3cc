"""Ancestral sampling from an ensemble: from either posterior, or from each member alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.decoding.beam import length_limit, never_chosen
from pipeline.decoding.device import DistributionsOf, distributions_of
from pipeline.decoding.model import EnsembleModel
from pipeline.decoding.posterior import (
    Floats,
    member_log_weight,
    sequence_logprob,
    statistics_of_columns,
)
from pipeline.decoding.test_set import Sentence, padded
from pipeline.errors import ConfigError
from pipeline.run.settings import DecodeConfig
from pipeline.store import Hypothesis
from pipeline.store.statistics import column_views, n_columns

# Number of samples that are drawn together; larger arrays are not faster.
_MAX_ROWS = 320


def sample(
    model: EnsembleModel,
    sentences: Sequence[Sentence],
    combination: str,
    decode: DecodeConfig,
    *,
    distributions: DistributionsOf = distributions_of,
) -> list[list[Hypothesis]]:
    """Draw `decode.beam` samples of each sentence of a batch; a `Search`.

    combination: prex; expr, where members are weighted by P(y_<l | x, theta_m), so that whole
    sequences come from P_EP; or member, which draws `decode.beam` samples from each P_m, those of
    the first member first. Each sample has its own random numbers, seeded by decode.seed,
    sentence, member and index, so that results depend on neither the batch nor the order. Padding
    and what the model suppresses are never drawn. A sample with more than `length_limit` tokens
    before EOS is cut: unfinished, without EOS. The score is ln P(y) / L ** length_penalty at
    temperature 1, under the distribution that was sampled. Texts are left empty.
    distributions: how they are computed; by default, the device of the logits decides. Raises
    NanLogprobError if a member returns NaN, ConfigError if the settings do not fit sampling.
    Source: eqn:sequence-entropy-seq-mc.
    """
    _check(decode)
    n_of_sentence = decode.beam * (model.n_member if combination == "member" else 1)
    size = max(1, _MAX_ROWS // n_of_sentence)
    hypotheses = []
    with torch.inference_mode():
        for start in range(0, len(sentences), size):
            batch = sentences[start : start + size]
            samples = _Samples(model, batch, combination, decode, distributions)
            while len(samples.hypothesis):
                samples.step()
            hypotheses += samples.of_each_sentence()
    return hypotheses


def _check(decode: DecodeConfig) -> None:
    if decode.regime != "sample":
        raise ConfigError(
            f"decode._target_: sample supports decode.regime=sample only (got {decode.regime}). "
            f"Choose another search or decode=sample."
        )
    for name in ("min_length", "unk_penalty"):
        value = decode[name]  # type: ignore[index]
        if value:
            raise ConfigError(
                f"decode.{name}: must be 0 for sampling (got {value}). Any other value would "
                f"change the distribution that is sampled."
            )


class _Samples:
    """The samples that have not ended, one row each.

    hypothesis [row]: its index in the batch. drawn_by [row]: its member, or -1. tokens [row,
    token]: from the start symbols on. prefix [row, member]: ln P_m of the tokens so far. history
    [row, token, column]: columns of the statistics of its tokens.
    """

    def __init__(
        self,
        model: EnsembleModel,
        sentences: Sequence[Sentence],
        combination: str,
        decode: DecodeConfig,
        distributions: DistributionsOf,
    ) -> None:
        self.model, self.combination, self.decode = model, combination, decode
        self.distributions = distributions
        drawn_by = torch.arange(model.n_member) if combination == "member" else torch.tensor([-1])
        self.n_of_sentence = len(drawn_by) * decode.beam
        self.ids = [sentence.id for sentence in sentences]
        sources = [sentence.source for sentence in sentences]
        sentence_of = torch.arange(len(sentences)).repeat_interleave(self.n_of_sentence)
        self.hypothesis = torch.arange(len(sentence_of))
        self.drawn_by = drawn_by.repeat_interleave(decode.beam).repeat(len(sentences))
        limits = [length_limit(source, model, decode) for source in sources]
        self.limits = torch.tensor(limits)[sentence_of]
        self.uniform = self._uniform(max(limits) + 1)
        self.ended: list[Hypothesis | None] = [None] * len(sentence_of)
        self.n_start = len(model.start)
        self.tokens = torch.tensor(model.start, dtype=torch.long).repeat(len(sentence_of), 1)
        self.prefix = torch.zeros(len(sentence_of), model.n_member)
        self.history = np.empty((len(sentence_of), 0, n_columns(model.n_member)), np.float32)
        # Before the first token, all samples of a sentence share one row.
        self.first_row: Tensor | None = sentence_of
        self.state: Any = model.encode(padded(sources, model.pad))

    def of_each_sentence(self) -> list[list[Hypothesis]]:
        """The samples of each sentence in the order of drawing, once all have ended."""
        ended = [hypothesis for hypothesis in self.ended if hypothesis is not None]
        size = self.n_of_sentence
        return [ended[start : start + size] for start in range(0, len(ended), size)]

    def step(self) -> None:
        """Draw a token for every row and collect the samples that end."""
        n_token = self.tokens.shape[1] - self.n_start
        weight = member_log_weight(self.prefix, self.combination, self.drawn_by)
        next_token = self.distributions(self._logits(), self.decode)
        uniform = self.uniform[self.hypothesis.numpy(), n_token]
        excluded = never_chosen(self.model, n_token)
        token = next_token.draw(weight, excluded, uniform, self.decode)
        next_token.reject_nan(self._sentence_id)
        row = torch.arange(len(token))
        realised = next_token.token_logprob(row, token)
        columns = next_token.statistics(row, self.prefix)
        entry = np.concatenate([realised.numpy(), columns], axis=1)
        self.history = np.concatenate([self.history, entry[:, None]], axis=1)
        self.tokens = torch.cat([self.tokens, token[:, None]], dim=1)
        self.prefix = self.prefix + realised

        finished = token == self.model.eos
        ends = finished | (n_token >= self.limits[self.hypothesis])
        for row in ends.nonzero().flatten().tolist():
            self.ended[int(self.hypothesis[row])] = self._hypothesis(row, bool(finished[row]))
        self._continue((~ends).nonzero().flatten())

    def _logits(self) -> Tensor:
        """Logits of the next token [row, member, vocab]."""
        if self.first_row is None:
            return self.model.step(self.state, self.tokens)
        logits = self.model.step(self.state, self.tokens[:: self.n_of_sentence])
        first_row = self.first_row.to(logits.device)
        return logits.transpose(0, 1).index_select(1, first_row).transpose(0, 1)

    def _continue(self, row: Tensor) -> None:
        """Keep the samples of these rows."""
        state_row = row if self.first_row is None else self.first_row[row]
        self.first_row = None
        self.hypothesis, self.drawn_by = self.hypothesis[row], self.drawn_by[row]
        self.tokens, self.prefix = self.tokens[row], self.prefix[row]
        self.history = self.history[row.numpy()]
        if len(row):
            self.state = self.model.reorder(self.state, state_row, 1)

    def _uniform(self, n_token: int) -> NDArray[np.float64]:
        """Random numbers in [0, 1) [hypothesis, token]."""
        per_member = self.decode.beam
        numbers = []
        for hypothesis in range(len(self.hypothesis)):
            sentence, index = divmod(hypothesis, self.n_of_sentence)
            seeds = [self.decode.seed, self.ids[sentence], *divmod(index, per_member)]
            numbers.append(np.random.default_rng(seeds).random(n_token))
        return np.stack(numbers)

    def _hypothesis(self, row: int, finished: bool) -> Hypothesis:
        token, member = self.tokens[row, self.n_start :], int(self.drawn_by[row])
        history: Floats = self.history[row]
        logprob = torch.from_numpy(column_views(history, self.model.n_member)["logprob"])
        if member >= 0:
            logprob, combination = logprob[:, member, None], "prex"
        else:
            combination = self.combination
        score = sequence_logprob(logprob, combination) / len(token) ** self.decode.length_penalty
        statistics = statistics_of_columns(history, self.model.n_member)
        return Hypothesis(token.numpy().copy(), "", score, finished, statistics, member)

    def _sentence_id(self, row: int) -> int:
        return self.ids[int(self.hypothesis[row]) // self.n_of_sentence]
