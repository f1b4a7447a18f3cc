"""Beam search and greedy search with an ensemble, under either posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipeline.decoding.device import DistributionsOf, distributions_of
from pipeline.decoding.ending import FinishedScores
from pipeline.decoding.model import EnsembleModel, ScoringModel, target_limit
from pipeline.decoding.posterior import (
    Distributions,
    Floats,
    member_log_weight,
    statistics_of_columns,
)
from pipeline.decoding.test_set import Sentence, Source, padded
from pipeline.errors import ConfigError
from pipeline.run.settings import DecodeConfig, decode_settings
from pipeline.store import SEARCHES, Hypothesis
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, column_views, n_columns


def beam_search(
    model: EnsembleModel,
    sentences: Sequence[Sentence],
    combination: str = "prex",
    decode: DecodeConfig | None = None,
    *,
    distributions: DistributionsOf = distributions_of,
) -> list[list[Hypothesis]]:
    """Find the `decode.beam` best hypotheses of each sentence of a batch; a `Search`.

    decode: made by `pipeline.run.settings.decode_settings`; None for the defaults of conf/.
    distributions: how they are computed; by default, the device of the logits decides.

    combination (prex or expr) is the posterior that is searched; the score is
    ln P_post(y) / L ** length_penalty, where L counts EOS. The rules are those of fairseq's
    generator: no hypothesis is empty, and padding and what the model suppresses are never chosen.
    `decode.ending` says when a sentence is done: with fairseq, when `beam` hypotheses have
    finished. After `length_limit` tokens only EOS may follow, with its true log-prob. Each sentence
    has its own limit, so that results do not depend on the batch. If EOS has probability 0 there
    and no hypothesis has finished, the best prefixes are returned unfinished, without EOS.
    Statistics are computed before any of these rules apply. Texts are left empty. Raises
    NanLogprobError if a member returns NaN, ConfigError if the settings ask for another kind of
    search.
    """
    decode = decode_settings() if decode is None else decode
    _check(combination, decode)
    with torch.inference_mode():
        search = _Search(model, sentences, combination, decode, distributions)
        while search.sentence:
            search.step()
    n_best = decode.n_best or decode.beam
    return [
        sorted(finished, key=lambda hypothesis: hypothesis.score, reverse=True)[:n_best]
        for finished in search.hypotheses
    ]


def length_limit(source: Source, model: ScoringModel, decode: DecodeConfig) -> int:
    """Maximum tokens before EOS: ratio * source length (including EOS) + offset."""
    limit = int(decode.max_length_ratio * len(source) + decode.max_length_offset)
    return min(limit, target_limit(source, model) - 1)


def never_chosen(model: EnsembleModel, n_token: int) -> list[int]:
    """Token ids that are never chosen after a hypothesis of n_token tokens."""
    padding = [] if model.pad in (None, model.eos) else [model.pad]
    return [*padding, *model.suppressed(n_token)]


def _check(combination: str, decode: DecodeConfig) -> None:
    if decode.regime not in SEARCHES or combination not in ("prex", "expr"):
        raise ConfigError(
            f"decode._target_: beam_search supports the regimes beam and greedy with combination "
            f"prex or expr (got decode.regime={decode.regime}, decode.combination={combination}). "
            f"Choose another search or another regime."
        )
    if decode.regime == "greedy" and decode.beam != 1:
        raise ConfigError(
            f"decode.beam: must be 1 for greedy search (got {decode.beam}). "
            f"Use decode.regime=beam for a wider beam."
        )


class _Extensions(NamedTuple):
    """Extensions of prefixes by one token: ln P_post, row of the prefix, token; of one shape."""

    score: Tensor
    parent: Tensor
    token: Tensor


class _Search:
    """The state of a search: `width` prefixes (rows) for each sentence that is not done.

    sentence: index in the batch of each sentence that is not done. tokens [row, token]: from the
    start symbols on. posterior [row] and prefix [row, member]: ln P of the prefix. history [row,
    token, column]: columns of the statistics of its tokens. A row with posterior -inf is empty.
    """

    def __init__(
        self,
        model: EnsembleModel,
        sentences: Sequence[Sentence],
        combination: str,
        decode: DecodeConfig,
        distributions: DistributionsOf,
    ) -> None:
        self.model, self.decode, self.distributions = model, decode, distributions
        self.ids = [sentence.id for sentence in sentences]
        self.combination = combination
        self.beam = decode.beam
        sources = [sentence.source for sentence in sentences]
        self.limits = torch.tensor([length_limit(source, model, decode) for source in sources])
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in sentences]
        self.sentence = list(range(len(sentences)))
        self.n_token = 0
        self.n_start = len(model.start)
        self.width = 1  # at the start all prefixes of a sentence are the same
        self.finished = FinishedScores(decode, len(sentences), self.limits + 1)
        self.tokens = torch.tensor(model.start, dtype=torch.long).repeat(len(sentences), 1)
        self.posterior = torch.zeros(len(sentences))
        self.prefix = torch.zeros(len(sentences), model.n_member)
        self.history = np.empty((len(sentences), 0, n_columns(model.n_member)), np.float32)
        self.state: Any = model.encode(padded(sources, model.pad))

    def step(self) -> None:
        """Extend every prefix by one token: collect what finishes, keep the best of the rest."""
        next_token = self.distributions(self.model.step(self.state, self.tokens), self.decode)
        at_limit = self.limits[self.sentence] <= self.n_token
        best = self._best_extensions(next_token, at_limit)
        ends = (best.token == self.model.eos) & best.score.isfinite()
        ends[:, self.beam :] = False
        unfinished = self._without_eos(best)
        alive = unfinished.score.isfinite()
        new = best.score.masked_fill(~ends, -torch.inf)
        self.finished.add(self.sentence, new, self.n_token + 1)
        done = self.finished.is_done(self.sentence, unfinished.score[:, 0], self.n_token + 1)
        done |= at_limit | ~alive.any(dim=1)
        ending = _Extensions(*(values[ends] for values in best))
        kept = _Extensions(*(values[~done].flatten() for values in unfinished))
        entries = self._entries(next_token, ending, kept)
        self._collect_finished(ends, ending, entries[: len(ending.score)])
        self._collect_cut(done)
        self.sentence = [
            index for index, is_done in zip(self.sentence, done, strict=True) if not is_done
        ]
        if self.sentence:
            self._continue(kept, entries[len(ending.score) :])

    def _score_mask(self) -> Tensor:
        """The score mask [vocab], added to ln P_post: -inf for tokens that must not follow."""
        mask = torch.zeros(self.model.vocab_size)
        if self.model.unk is not None:
            mask[self.model.unk] = -self.decode.unk_penalty
        mask[never_chosen(self.model, self.n_token)] = -torch.inf
        if self.n_token < self.decode.min_length:
            mask[self.model.eos] = -torch.inf
        return mask

    def _best_extensions(self, next_token: Distributions, at_limit: Tensor) -> _Extensions:
        """The best extensions [sentence, candidate]; twice the beam, as half of them may finish."""
        log_weight = member_log_weight(self.prefix, self.combination)
        score, token = next_token.top(log_weight, self._score_mask(), 2 * self.beam)
        next_token.reject_nan(lambda row: self.ids[self.sentence[row // self.width]])
        device = score.device
        if at_limit.any():
            row = at_limit.repeat_interleave(self.width).nonzero().flatten().to(device)
            score[row] = -torch.inf
            score[row, 0] = next_token.token_score(self.model.eos, log_weight)[row]
            token[row, 0] = self.model.eos
        n_sentence, n_best = len(self.sentence), score.shape[1]
        score = (score + self.posterior[:, None].to(device)).view(n_sentence, -1)
        score, position = score.sort(dim=1, descending=True, stable=True)
        score, position = score[:, :n_best], position[:, :n_best]
        token = token.view(n_sentence, -1).gather(1, position)
        first_row = torch.arange(n_sentence)[:, None] * self.width
        return _Extensions(score.cpu(), first_row + position.cpu() // n_best, token.cpu())

    def _without_eos(self, best: _Extensions) -> _Extensions:
        """The first `beam` extensions that do not finish; if there are fewer, empty rows."""
        is_eos = best.token == self.model.eos
        rank = torch.arange(is_eos.shape[1]) + is_eos * is_eos.shape[1]
        order = rank.topk(self.beam, dim=1, largest=False).indices
        score, parent, token = (values.gather(1, order) for values in best)
        empty = score.isinf() | (token == self.model.eos)
        return _Extensions(
            score.masked_fill(empty, -torch.inf), parent, token.masked_fill(empty, self.model.eos)
        )

    def _entries(self, next_token: Distributions, ending: _Extensions, kept: _Extensions) -> Floats:
        """Columns [extension, column] of the statistics of ending and kept extensions.

        They are the log-probs of the tokens and the statistics of the distributions after each
        prefix; the latter are 0 for empty rows.
        """
        parent = torch.cat([ending.parent, kept.parent])
        token = torch.cat([ending.token, kept.token])
        realised = next_token.token_logprob(parent, token).numpy()
        columns = np.zeros(
            (len(self.prefix), n_columns(self.model.n_member, DISTRIBUTION_STATISTICS)), np.float32
        )
        rows = parent[torch.cat([ending.score, kept.score]).isfinite()].unique()
        if len(rows):
            columns[rows] = next_token.statistics(rows, self.prefix)
        return np.concatenate([realised, columns[parent.numpy()]], axis=-1)

    def _collect_finished(self, ends: Tensor, ending: _Extensions, entries: Floats) -> None:
        """Collect the extensions that end; ends [sentence, candidate], entries [ending, column]."""
        for place, index in enumerate(ends.nonzero()[:, 0].tolist()):
            row = int(ending.parent[place])
            history = np.concatenate([self.history[row], entries[place][None]])
            token = torch.cat([self.tokens[row, self.n_start :], ending.token[place][None]])
            self._add(index, token, history, float(ending.score[place]), finished=True)

    def _collect_cut(self, done: Tensor) -> None:
        """Collect the prefixes of sentences that are done without a finished hypothesis."""
        for index in done.nonzero().flatten().tolist():
            if self.hypotheses[self.sentence[index]] or self.n_token == 0:
                continue
            for row in range(index * self.width, (index + 1) * self.width):
                score = float(self.posterior[row])
                if score > -torch.inf:
                    token = self.tokens[row, self.n_start :]
                    self._add(index, token, self.history[row], score, finished=False)

    def _add(
        self, index: int, token: Tensor, history: Floats, logprob_nats: float, finished: bool
    ) -> None:
        hypotheses = self.hypotheses[self.sentence[index]]
        if len(hypotheses) < self.beam or self.decode.ending != "fairseq":
            score = logprob_nats / len(token) ** self.decode.length_penalty
            statistics = statistics_of_columns(history, self.model.n_member)
            hypotheses.append(Hypothesis(token.numpy(), "", score, finished, statistics))

    def _continue(self, kept: _Extensions, entries: Floats) -> None:
        """Make the extensions [row] the prefixes of the next step; entries [row, column]."""
        row = kept.parent.numpy()
        logprob = torch.from_numpy(column_views(entries, self.model.n_member)["logprob"])
        self.prefix = self.prefix[kept.parent] + logprob
        self.prefix[kept.score.isinf()] = 0.0
        self.posterior = kept.score
        self.tokens = torch.cat([self.tokens[kept.parent], kept.token[:, None]], dim=1)
        self.history = np.concatenate([self.history[row], entries[:, None]], axis=1)
        self.state = self.model.reorder(self.state, kept.parent, self.beam)
        self.width = self.beam
        self.n_token += 1
