"""Beam search over an ensemble, for both posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipeline.decoding.model import EnsembleModel, ScoringModel
from pipeline.decoding.posterior import (
    Floats,
    NextToken,
    member_log_weight,
    statistics_of,
)
from pipeline.decoding.test_set import Sentence, Source, padded
from pipeline.errors import ConfigError
from pipeline.run.settings import DecodeConfig
from pipeline.store import SEARCHES, Hypothesis
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, n_columns


def beam_search(
    model: EnsembleModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """The `decode.beam` best hypotheses of each sentence of a batch, best first, with statistics.

    combination (prex, expr) is the posterior that is searched; score = ln P_post(y) / L ** length
    penalty, where L counts EOS. The rules are those of fairseq's generator: no empty hypothesis,
    padding is never chosen, a sentence is done when `beam` hypotheses have ended, and after
    `length_limit` tokens nothing but EOS may follow, with its true log-probability. The limit is
    each sentence's own, so that no result depends on the batch. Where EOS has probability 0 there
    and no hypothesis has ended before, the best prefixes are kept as they were cut: not finished,
    without EOS. Statistics are those of the members' distributions before any of these rules.
    Texts are left empty. Raises DataError naming member and sentence for a log-probability that
    is NaN, ConfigError where the settings do not ask for a beam search.
    """
    _check(combination, decode)
    with torch.inference_mode():
        search = _Search(model, sentences, combination, decode)
        while search.sentence:
            search.step()
    return [
        sorted(one, key=lambda found: found.score, reverse=True)[: decode.n_best]
        for one in search.found
    ]


def length_limit(source: Source, model: ScoringModel, decode: DecodeConfig) -> int:
    """Most tokens of a hypothesis before EOS: ratio * length of the source (EOS too) + offset."""
    limit = int(decode.max_length_ratio * len(source) + decode.max_length_offset)
    return min(limit, model.max_target_tokens - 1)


def _check(combination: str, decode: DecodeConfig) -> None:
    if decode.regime not in SEARCHES or combination not in ("prex", "expr"):
        raise ConfigError(
            f"decode._target_ must be a decoder for regime={decode.regime} and "
            f"combination={combination}, got beam_search, which is for beam and greedy and for "
            f"prex and expr"
        )
    if decode.regime == "greedy" and decode.beam != 1:
        raise ConfigError(f"decode.beam must be 1 with decode.regime=greedy, got {decode.beam}")


class _Extensions(NamedTuple):
    """Prefixes with one more token: ln P_post, row of the prefix and token, all of one shape."""

    score: Tensor
    parent: Tensor
    token: Tensor


class _Search:
    """The prefixes under search: `width` rows for each sentence that is not done.

    sentence: place in the batch of each sentence that is not done; tokens [row, token] from the
    start symbol on; posterior [row] and prefix [row, member]: ln P of the prefix; history
    [row, token, column]: log-probs and statistics of its tokens. A row whose posterior is
    -inf is empty.
    """

    def __init__(
        self,
        model: EnsembleModel,
        sentences: Sequence[Sentence],
        combination: str,
        decode: DecodeConfig,
    ) -> None:
        self.model = model
        self.ids = [one.id for one in sentences]
        self.combination = combination
        self.length_penalty = decode.length_penalty
        self.unk_penalty = decode.unk_penalty
        self.min_length = decode.min_length
        self.beam = decode.beam
        self.limits = torch.tensor([length_limit(one.source, model, decode) for one in sentences])
        self.found: list[list[Hypothesis]] = [[] for _ in sentences]
        self.sentence = list(range(len(sentences)))
        self.n_token = 0
        self.width = 1  # rows a sentence: all begin with the same prefix
        self.tokens = torch.full((len(sentences), 1), model.eos)
        self.posterior = torch.zeros(len(sentences))
        self.prefix = torch.zeros(len(sentences), model.n_member)
        self.history = np.empty((len(sentences), 0, n_columns(model.n_member)), np.float32)
        self.state: Any = model.encode(padded([one.source for one in sentences], model.pad))

    def step(self) -> None:
        """Extend every prefix by a token: put aside what ends, go on with the best of the rest."""
        log_weight = member_log_weight(self.prefix, self.combination)
        logits = self.model.step(self.state, self.tokens)
        following = NextToken(logits, log_weight, self._handicap(), 2 * self.beam)
        following.refuse_nan(lambda row: self.ids[self.sentence[row // self.width]])
        at_limit = self.limits[self.sentence] <= self.n_token
        best = self._best_extensions(following, at_limit)
        ends = (best.token == self.model.eos) & best.score.isfinite()
        ends[:, self.beam :] = False
        going_on = self._without_eos(best)
        n_found = torch.tensor([len(self.found[one]) for one in self.sentence]) + ends.sum(dim=1)
        alive = going_on.score.isfinite()
        done = (n_found >= self.beam) | at_limit | ~alive.any(dim=1)
        parents = torch.cat([best.parent[ends], going_on.parent[alive & ~done[:, None]]])
        columns = self._columns(following, parents)

        self._put_aside(ends, best, self._entries(following, columns, best.parent, best.token))
        self._put_aside_cut(done)
        self.sentence = [one for one, over in zip(self.sentence, done, strict=True) if not over]
        if self.sentence:
            kept = _Extensions(*(values[~done].flatten() for values in going_on))
            self._go_on(kept, self._entries(following, columns, kept.parent, kept.token))

    def _handicap(self) -> Tensor:
        """What the search adds to ln P_post of a token [vocab]: -inf for what must not follow."""
        handicap = torch.zeros(self.model.vocab_size)
        handicap[self.model.pad] = -torch.inf
        handicap[self.model.unk] = -self.unk_penalty
        if self.n_token < self.min_length:
            handicap[self.model.eos] = -torch.inf
        return handicap

    def _best_extensions(self, following: NextToken, at_limit: Tensor) -> _Extensions:
        """The best extensions [sentence, candidate], twice the beam since half of them may end."""
        score, token = following.score, following.token
        if at_limit.any():
            row = at_limit.repeat_interleave(self.width)
            score[row] = -torch.inf
            score[row, 0] = following.token_score(self.model.eos)[row]
            token[row, 0] = self.model.eos
        n_sentence, n_best = len(self.sentence), score.shape[1]
        score = (score + self.posterior[:, None]).view(n_sentence, -1)
        score, place = score.sort(dim=1, descending=True, stable=True)
        score, place = score[:, :n_best], place[:, :n_best]
        first_row = torch.arange(n_sentence)[:, None] * self.width
        token = token.view(n_sentence, -1).gather(1, place)
        return _Extensions(score, first_row + place // n_best, token)

    def _without_eos(self, best: _Extensions) -> _Extensions:
        """The first `beam` extensions that do not end; where there are fewer, rows left empty."""
        is_eos = best.token == self.model.eos
        place = torch.arange(is_eos.shape[1]) + is_eos * is_eos.shape[1]
        order = place.topk(self.beam, dim=1, largest=False).indices
        score, parent, token = (values.gather(1, order) for values in best)
        empty = score.isinf() | (token == self.model.eos)
        return _Extensions(
            score.masked_fill(empty, -torch.inf), parent, token.masked_fill(empty, self.model.eos)
        )

    def _columns(self, following: NextToken, parents: Tensor) -> Floats:
        """Statistics [row, column] of the rows that have a child; the others stay 0."""
        columns = np.zeros(
            (len(self.prefix), n_columns(self.model.n_member, DISTRIBUTION_STATISTICS)), np.float32
        )
        rows = parents.unique()
        if len(rows):
            columns[rows] = following.statistics(rows, self.prefix)
        return columns

    def _entries(
        self, following: NextToken, columns: Floats, parent: Tensor, token: Tensor
    ) -> Floats:
        """The history of a token [..., column]: its log-probs and its parent's statistics."""
        row = parent.numpy()
        chosen = following.token_logprob(parent, token).numpy()
        return np.concatenate([chosen, columns[row]], axis=-1)

    def _put_aside(self, ends: Tensor, best: _Extensions, entries: Floats) -> None:
        for place, candidate in ends.nonzero().tolist():
            row = int(best.parent[place, candidate])
            history = np.concatenate([self.history[row], entries[place, candidate][None]])
            token = torch.cat([self.tokens[row, 1:], best.token[place, candidate][None]])
            score = float(best.score[place, candidate])
            self._add(place, token, history, score, finished=True)

    def _put_aside_cut(self, done: Tensor) -> None:
        """Keep the prefixes of sentences that are over with nothing that has ended."""
        for place in done.nonzero().flatten().tolist():
            if self.found[self.sentence[place]] or self.n_token == 0:
                continue
            for row in range(place * self.width, (place + 1) * self.width):
                score = float(self.posterior[row])
                if score > -torch.inf:
                    self._add(place, self.tokens[row, 1:], self.history[row], score, finished=False)

    def _add(
        self, place: int, token: Tensor, history: Floats, logprob_nats: float, finished: bool
    ) -> None:
        found = self.found[self.sentence[place]]
        if len(found) < self.beam:
            score = logprob_nats / len(token) ** self.length_penalty
            statistics = statistics_of(history, self.model.n_member)
            found.append(Hypothesis(token.numpy(), "", score, finished, statistics))

    def _go_on(self, kept: _Extensions, entries: Floats) -> None:
        """Make the extensions [row] the prefixes under search."""
        row = kept.parent.numpy()
        logprob = torch.from_numpy(entries[:, : self.model.n_member])
        self.prefix = self.prefix[kept.parent] + logprob
        self.prefix[kept.score.isinf()] = 0.0
        self.posterior = kept.score
        self.tokens = torch.cat([self.tokens[kept.parent], kept.token[:, None]], dim=1)
        self.history = np.concatenate([self.history[row], entries[:, None]], axis=1)
        self.state = self.model.reorder(self.state, kept.parent, self.beam)
        self.width = self.beam
        self.n_token += 1
