"""Causal models of Hugging Face as members: the source is the prompt, the target continues it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.huggingface.control_tokens import UNLIMITED, ControlTokens


@dataclass
class _State:
    """mask [row, position]: 1 for tokens, 0 for what fills a short prompt at its left.

    logits [row, vocab]: of the token after the prompt, until the first step has used them.
    """

    mask: Tensor
    cache: Any
    logits: Tensor
    n_seen: int = 0


class CausalMember:
    """A Hugging Face causal model as a MemberModel; prompts are filled up with -1 at the right.

    Prefixes have no start: the prompt ends with whatever comes before the target. Prompt and target
    share the positions of the model. Prompts of a batch are aligned at their ends.
    """

    pad: int | None = None
    start: tuple[int, ...] = ()

    def __init__(self, model: Any, tokens: ControlTokens) -> None:
        self.model = model.eval()
        self.device = model.device
        self._tokens = tokens
        self.eos, self.unk = tokens.eos, tokens.unk
        self.vocab_size = len(model.get_output_embeddings().weight)
        positions = int(getattr(model.config, "max_position_embeddings", UNLIMITED))
        # The last token of a target is not an input. The shortest target is one token and EOS.
        self.max_shared_tokens: int | None = positions + 1
        self.max_source_tokens = positions - 1
        self.max_target_tokens = positions
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def suppressed(self, n_token: int) -> Sequence[int]:
        """Token ids that are never chosen after a hypothesis of n_token tokens."""
        return self._tokens.at(n_token)

    @torch.inference_mode()
    def encode(self, source: Tensor) -> _State:
        """Initial state, one row per sentence, of prompts [sentence, token]."""
        length = (source >= 0).sum(dim=1)
        shift = source.shape[1] - length
        column = torch.arange(source.shape[1])[None] - shift[:, None]
        mask = (column >= 0).long()
        prompt = source.gather(1, column.clamp(min=0)) * mask
        output = self._run(prompt, mask, None)
        return _State(mask.to(self.device), output.cache, output.logits[:, -1])

    @torch.inference_mode()
    def step(self, state: _State, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, vocab] after prefix [row, token], which is empty first."""
        new = prefix[:, state.n_seen :]
        if new.shape[1]:
            state.mask = torch.cat([state.mask, torch.ones_like(new, device=self.device)], dim=1)
            output = self._run(new, state.mask, state.cache)
            state.cache, state.logits = output.cache, output.logits[:, -1]
            state.n_seen = prefix.shape[1]
        return state.logits

    @torch.inference_mode()
    def reorder(self, state: _State, row: Tensor, beam: int) -> _State:
        """State of the rows `row` [new row]; invalidates `state`."""
        row = row.to(self.device)
        state.cache.reorder_cache(row)
        return _State(state.mask.index_select(0, row), state.cache, state.logits, state.n_seen)

    @torch.inference_mode()
    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Yield the logits of every next token [token, vocab] of each sentence (teacher forcing).

        What fills short sequences is at the right, where no token looks.
        """
        n_prompt = (source >= 0).sum(dim=1).tolist()
        rows = [
            torch.cat([prompt[:count], target[: n_token - 1]])
            for prompt, count, target, n_token in zip(source, n_prompt, prefix, length, strict=True)
        ]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
        logits = self._run(tokens.clamp(min=0), (tokens >= 0).long(), None, use_cache=False).logits
        for sentence, count, n_token in zip(logits, n_prompt, length, strict=True):
            yield sentence[count - 1 : count - 1 + n_token]

    def _run(self, tokens: Tensor, mask: Tensor, cache: Any, use_cache: bool = True) -> Any:
        """Run the model on new tokens [row, token]; mask covers them and all that came before."""
        mask = mask.to(self.device)
        settings: dict[str, Any] = {"cache": cache, "use_cache": use_cache}
        if self._takes_positions:
            position = (mask.cumsum(dim=1) - 1).clamp(min=0)
            settings["position_ids"] = position[:, -tokens.shape[1] :]
        return self.model(input_ids=tokens.to(self.device), attention_mask=mask, **settings)
