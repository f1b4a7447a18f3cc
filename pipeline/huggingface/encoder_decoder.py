"""Encoder-decoder models of Hugging Face as members: Marian, NLLB, mBART, BART, T5, Whisper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.huggingface import import_transformers
from pipeline.huggingface.control_tokens import UNLIMITED, ControlTokens


@dataclass
class _State:
    """hidden: encoder output [row, source, width]. mask [row, source]: 1 for tokens or frames."""

    hidden: Tensor
    mask: Tensor
    cache: Any = None
    n_seen: int = 0


class EncoderDecoderMember:
    """A Hugging Face encoder-decoder as a MemberModel, of token ids filled up with -1."""

    pad: int | None = None  # padding may be EOS or the unknown token, so that -1 fills sources
    max_shared_tokens: int | None = None

    def __init__(self, model: Any, tokens: ControlTokens) -> None:
        self.model = model.eval()
        self.device = model.device
        self._tokens = tokens
        self.eos, self.unk, self.start = tokens.eos, tokens.unk, tokens.start
        self.vocab_size = len(model.get_output_embeddings().weight)
        self.max_source_tokens = self._max_source()
        positions = _setting(model.config, "max_target_positions", "max_position_embeddings")
        self.max_target_tokens = positions - len(self.start) + 1

    def suppressed(self, n_token: int) -> Sequence[int]:
        """Token ids that are never chosen after a hypothesis of n_token tokens."""
        return self._tokens.at(n_token)

    @torch.inference_mode()
    def encode(self, source: Tensor) -> _State:
        """Initial state, one row per sentence, of source [sentence, token] filled up with -1."""
        return _State(*self._encoded(source))

    @torch.inference_mode()
    def step(self, state: _State, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, vocab] after prefix [row, token]."""
        output = self._decoded(state, prefix[:, state.n_seen :], use_cache=True)
        state.cache, state.n_seen = output.cache, prefix.shape[1]
        logits: Tensor = output.logits[:, -1]
        return logits

    @torch.inference_mode()
    def reorder(self, state: _State, row: Tensor, beam: int) -> _State:
        """State of the rows `row` [new row]; invalidates `state`."""
        row = row.to(self.device)
        state.cache.reorder_cache(row)
        hidden, mask = state.hidden.index_select(0, row), state.mask.index_select(0, row)
        return _State(hidden, mask, state.cache, state.n_seen)

    @torch.inference_mode()
    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Yield the logits of every next token [token, vocab] of each sentence."""
        logits = self._decoded(_State(*self._encoded(source)), prefix, use_cache=False).logits
        first = len(self.start) - 1
        for sentence, n_token in zip(logits, length, strict=True):
            yield sentence[first : first + n_token]

    def _max_source(self) -> int:
        return _setting(self.model.config, "max_source_positions", "max_position_embeddings")

    def _encoded(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder output [sentence, source, width] and mask [sentence, source]."""
        source = source.to(self.device)
        mask = (source >= 0).long()
        encoder = self.model.get_encoder()
        output = encoder(input_ids=source.clamp(min=0), attention_mask=mask)
        return output.last_hidden_state, mask

    def _decoded(self, state: _State, prefix: Tensor, use_cache: bool) -> Any:
        outputs = import_transformers("transformers.modeling_outputs")
        return self.model(
            encoder_outputs=outputs.BaseModelOutput(state.hidden),
            attention_mask=state.mask,
            decoder_input_ids=prefix.to(self.device),
            cache=state.cache,
            use_cache=use_cache,
        )


class SpeechMember(EncoderDecoderMember):
    """A MemberModel of sources [sentence, frame, bin], which the model's own extractor makes.

    Sources of different length are filled up with NaN. Whisper takes a window of fixed length,
    such as 30 s: to a shorter source, its last frame is added until the window is full, so that a
    source can end with the first frame of silence.
    """

    def _max_source(self) -> int:
        positions = _setting(self.model.config, "max_source_positions")
        # Whisper counts positions after a convolution of stride 2.
        return positions * 2 if self.model.config.model_type == "whisper" else positions

    def _encoded(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder output [sentence, source, width] and mask [sentence, frame]."""
        source = source.to(device=self.device, dtype=self.model.dtype)
        mask = source[:, :, 0].isnan().logical_not().long()
        encoder = self.model.get_encoder()
        if self.model.config.model_type == "whisper":
            frame = torch.arange(self.max_source_tokens, device=self.device)
            frame = torch.minimum(frame, mask.sum(dim=1, keepdim=True) - 1)
            window = source[torch.arange(len(source), device=self.device)[:, None], frame]
            return encoder(window.transpose(1, 2)).last_hidden_state, mask
        # Convolutions see what fills up a source, so that only sources of one length run together.
        length = mask.sum(dim=1)
        hidden: list[Tensor] = [source] * len(source)
        for n_frame in length.unique().tolist():
            (rows,) = torch.where(length == n_frame)
            encoded = encoder(source[rows, :n_frame]).last_hidden_state
            for row, output in zip(rows.tolist(), encoded, strict=True):
                hidden[row] = output
        return torch.nn.utils.rnn.pad_sequence(hidden, batch_first=True), mask

    def _decoded(self, state: _State, prefix: Tensor, use_cache: bool) -> Any:
        if self.model.config.model_type != "whisper":
            return super()._decoded(state, prefix, use_cache)
        return self.model(
            encoder_outputs=(state.hidden,),
            decoder_input_ids=prefix.to(self.device),
            cache=state.cache,
            use_cache=use_cache,
        )


def _setting(config: Any, *names: str) -> int:
    """The first of these settings that a configuration has, else no limit."""
    return next((int(getattr(config, name)) for name in names if hasattr(config, name)), UNLIMITED)
