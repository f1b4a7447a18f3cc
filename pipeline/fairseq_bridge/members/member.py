"""The VGG-Transformer as a member of an ensemble: its source is frames, not tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor

from pipeline.errors import DataError, MachineError
from pipeline.fairseq_bridge import import_fairseq


def build_model(model: Mapping[str, Any], source_dictionary: Any, target_dictionary: Any) -> Any:
    """A fairseq model with fresh weights from its full configuration (with `_name`).

    source_dictionary: None where sources are no symbols.
    """
    translation = import_fairseq("fairseq.tasks.translation")
    import_fairseq("pipeline.fairseq_bridge.models.vggtransformer")  # registers itself
    task = translation.TranslationTask(
        OmegaConf.structured(translation.TranslationConfig), source_dictionary, target_dictionary
    )
    # fairseq's defaults refer to each other from the root of its configuration.
    configuration = OmegaConf.create({"model": dict(model)}).model
    return import_fairseq("fairseq.models").build_model(configuration, task)


def load_weights(model: Any, path: Path) -> None:
    """Load a safetensors file into a model; tied tensors may be stored under one of their names.

    Raises DataError where the file is no safetensors file, lacks a tensor, holds one that the
    model does not have or one of another shape, or holds a value that is not finite.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path} must be a whole safetensors file: {error}") from None
    state = model.state_dict()
    stored_at = {state[name].data_ptr() for name in tensors if name in state}
    missing = [name for name in state if name not in tensors]
    untied = [name for name in missing if state[name].data_ptr() not in stored_at]
    unknown = [name for name in tensors if name not in state]
    if untied or unknown:
        raise DataError(
            f"{path} must hold the tensors of the model, got none for "
            f"[{', '.join(untied)}] and unknown [{', '.join(unknown)}]"
        )
    for name, tensor in tensors.items():
        if tensor.shape != state[name].shape:
            raise DataError(
                f"{path}: {name} must have shape {tuple(state[name].shape)}, "
                f"got {tuple(tensor.shape)}"
            )
        if not torch.isfinite(tensor).all():
            raise DataError(f"{path}: {name} must be finite, got NaN or infinity")
    model.load_state_dict(tensors, strict=False)


def load_member(
    model: Mapping[str, Any],
    weights: Path,
    source_dictionary: Any,
    target_dictionary: Any,
    device: str = "cpu",
    dtype: str = "float32",
) -> FairseqMember:
    """A trained model, ready to decode; raises what `load_weights` raises.

    device: cpu or cuda; dtype: float32 or float16, of the weights. Raises MachineError where there
    is no such device.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise MachineError(
            "decode.device must be a device of this machine, got cuda, which has none"
        )
    loaded = build_model(model, source_dictionary, target_dictionary)
    load_weights(loaded, weights)
    return as_member(loaded.to(device=device, dtype=getattr(torch, dtype)), model["_name"])


def as_member(model: Any, architecture: str) -> FairseqMember:
    """A model of fairseq's as a MemberModel."""
    from pipeline.fairseq_bridge.members.member import SpeechMember
    from pipeline.fairseq_bridge.models.vggtransformer import ARCHITECTURE

    return (SpeechMember if architecture == ARCHITECTURE else FairseqMember)(model)


@dataclass
class _State:
    encoder_out: Any
    cache: dict[str, Any]
    beam: int = 1


class FairseqMember:
    """A fairseq encoder-decoder model as a MemberModel.

    One search at a time: the beam is set on the model's own attention modules. The model may be on
    any device and in half precision; what is handed in is moved there, logits are float32.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.vocab_size = len(model.decoder.dictionary)
        self.pad = int(model.decoder.dictionary.pad())
        self.eos = int(model.decoder.dictionary.eos())
        self.unk = int(model.decoder.dictionary.unk())
        self.max_source_tokens = int(model.encoder.max_positions())
        self.max_target_tokens = int(model.decoder.max_positions())

    @torch.inference_mode()
    def encode(self, source: Tensor) -> _State:
        """State of one row a sentence; source [sentence, token], padded at the right."""
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
        """State of the rows row [new row], from now on `beam` of a sentence; replaces its cache."""
        decoder, row = self.model.decoder, row.to(self.device)
        if beam != state.beam:
            # fairseq grows from one row a sentence, and only with every sentence still there.
            decoder.reorder_incremental_state_scripting(state.cache, row[::beam])
            row = torch.arange(len(row) // beam, device=row.device).repeat_interleave(beam)
            # With it, fairseq keeps the keys of cross-attention once a sentence, not once a row.
            decoder.set_beam_size(beam)
        decoder.reorder_incremental_state_scripting(state.cache, row)
        return _State(state.encoder_out, state.cache, beam)

    @torch.inference_mode()
    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, vocab], one sentence after the other.

        The decoder runs once over the batch; the vocabulary axis exists for one sentence at a time.
        """
        self.model.decoder.set_beam_size(1)
        decoder = self.model.decoder
        features, _ = decoder(
            prefix.to(self.device), encoder_out=self.encoded(source), features_only=True
        )
        for one, tokens in zip(features, length, strict=True):
            yield self._logits((decoder.output_layer(one[None, :tokens]), None))[0]

    def encoded(self, source: Tensor) -> Any:
        """What fairseq's encoder makes of source [sentence, token], padded at the right."""
        source = source.to(self.device)
        return self.model.encoder(source, src_lengths=source.ne(self.pad).sum(dim=1))

    def _logits(self, output: Any) -> Tensor:
        if getattr(self.model.decoder, "adaptive_softmax", None) is not None:
            output = (self.model.get_normalized_probs(output, log_probs=True), None)
        logits: Tensor = output[0]
        return logits.float()


class SpeechMember(FairseqMember):
    """A MemberModel of sources [sentence, frame, bin], filled up at the right with NaN.

    max_source_tokens counts frames.
    """

    def encoded(self, source: Tensor) -> Any:
        """What the encoder makes of source [sentence, frame, bin].

        Raises DataError where the frames have another number of bins than the model.
        """
        bins = self.model.encoder.feature_bins
        if source.shape[2] != bins:
            raise DataError(f"features must have the model's {bins} bins, got {source.shape[2]}")
        source = source.to(device=self.device, dtype=self.dtype)
        length = source[:, :, 0].isnan().logical_not().sum(dim=1)
        return self.model.encoder(torch.nan_to_num(source, nan=0.0), length)

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        dtype: torch.dtype = next(self.model.parameters()).dtype
        return dtype
