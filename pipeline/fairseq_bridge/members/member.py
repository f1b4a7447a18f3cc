"""fairseq's models as members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.errors import DataError, MachineError
from pipeline.fairseq_bridge.models.configuration import build_model
from pipeline.fairseq_bridge.models.weights import load_weights


def load_member(
    model: Mapping[str, Any],
    weights: Path,
    source_dictionary: Any,
    target_dictionary: Any,
    device: str = "cpu",
    dtype: str = "float32",
) -> FairseqMember:
    """Load a trained model, ready to decode.

    `device` is cpu or cuda; `dtype` is the type of the weights, float32 or float16. Raises
    MachineError if there is no such device, DataError if the weights are damaged or do not fit.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise MachineError("decode.device: this machine has no GPU (got cuda). Set it to cpu.")
    loaded = build_model(model, source_dictionary, target_dictionary)
    load_weights(loaded, weights)
    return as_member(loaded.to(device=device, dtype=getattr(torch, dtype)), model["_name"])


def as_member(model: Any, architecture: str) -> FairseqMember:
    """Wrap a fairseq model of an architecture as a MemberModel."""
    from pipeline.fairseq_bridge.models.vggtransformer import ARCHITECTURE  # loads fairseq

    return (SpeechMember if architecture == ARCHITECTURE else FairseqMember)(model)


@dataclass
class _State:
    encoder_out: Any
    cache: dict[str, Any]
    beam: int = 1


class FairseqMember:
    """A fairseq encoder-decoder model as a MemberModel.

    It supports one search at a time, because the beam is set on the model's attention modules. The
    model may be on any device and in half precision; inputs are moved there, and logits stay there.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.vocab_size = len(model.decoder.dictionary)
        self.padding = int(model.decoder.dictionary.pad())
        self.pad: int | None = self.padding
        self.eos = int(model.decoder.dictionary.eos())
        self.unk: int | None = int(model.decoder.dictionary.unk())
        self.start: tuple[int, ...] = (self.eos,)
        self.max_source_tokens = int(model.encoder.max_positions())
        self.max_target_tokens = int(model.decoder.max_positions())
        self.max_shared_tokens: int | None = None

    def suppressed(self, n_token: int) -> Sequence[int]:
        """Token ids, besides pad, that are never chosen after a hypothesis of n_token tokens."""
        return ()

    @staticmethod
    def stacked(members: Sequence[Any]) -> Any:
        """One model that runs all members together; None if they do not fit together."""
        from pipeline.fairseq_bridge.members.stacked import StackedTransformers, can_stack

        same = all(isinstance(member, FairseqMember) for member in members)
        return StackedTransformers(members) if same and can_stack(members) else None

    @torch.inference_mode()
    def encode(self, source: Tensor) -> _State:
        """Initial state, one row per sentence, of source [sentence, token], padded on the right."""
        self.model.decoder.set_beam_size(1)
        return _State(self.encoded(source), {})

    @torch.inference_mode()
    def step(self, state: _State, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, vocab] after prefix [row, token]."""
        output = self.model.decoder(
            prefix.to(self.device),
            encoder_out=state.encoder_out,
            incremental_state=state.cache,
        )
        return self._logits(output)[:, -1]

    @torch.inference_mode()
    def reorder(self, state: _State, row: Tensor, beam: int) -> _State:
        """State of the rows `row` [new row], now `beam` per sentence; invalidates `state`."""
        decoder, row = self.model.decoder, row.to(self.device)
        if beam != state.beam:
            # fairseq expands one row per sentence, and only while no sentence is missing.
            decoder.reorder_incremental_state_scripting(state.cache, row[::beam])
            row = torch.arange(len(row) // beam, device=row.device).repeat_interleave(beam)
            # fairseq then stores cross-attention keys once per sentence instead of once per row.
            decoder.set_beam_size(beam)
        decoder.reorder_incremental_state_scripting(state.cache, row)
        return _State(state.encoder_out, state.cache, beam)

    @torch.inference_mode()
    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Yield the logits of every next token [token, vocab] of each sentence (teacher forcing).

        The decoder runs once on the batch, but logits are computed for one sentence at a time.
        """
        self.model.decoder.set_beam_size(1)
        decoder = self.model.decoder
        features, _ = decoder(
            prefix.to(self.device), encoder_out=self.encoded(source), features_only=True
        )
        for sentence, n_token in zip(features, length, strict=True):
            yield self._logits((decoder.output_layer(sentence[None, :n_token]), None))[0]

    def encoded(self, source: Tensor) -> Any:
        """Encoder output of source [sentence, token], padded on the right."""
        source = source.to(self.device)
        return self.model.encoder(source, src_lengths=source.ne(self.padding).sum(dim=1))

    def _logits(self, output: Any) -> Tensor:
        if getattr(self.model.decoder, "adaptive_softmax", None) is not None:
            output = (self.model.get_normalized_probs(output, log_probs=True), None)
        logits: Tensor = output[0]
        return logits


class SpeechMember(FairseqMember):
    """A MemberModel of sources [sentence, frame, bin], padded on the right with NaN.

    `max_source_tokens` counts frames.
    """

    def encoded(self, source: Tensor) -> Any:
        """Encoder output of source [sentence, frame, bin].

        Raises DataError if the frames have another number of bins than the model expects.
        """
        bins = self.model.encoder.feature_bins
        if source.shape[2] != bins:
            raise DataError(
                f"test set: the model expects features with {bins} bins (got {source.shape[2]}). "
                "Prepare it with the data.speech.feature_bins of the training."
            )
        source = source.to(device=self.device, dtype=self.dtype)
        length = source[:, :, 0].isnan().logical_not().sum(dim=1)
        return self.model.encoder(torch.nan_to_num(source, nan=0.0), length)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        dtype: torch.dtype = next(self.model.parameters()).dtype
        return dtype
