"""fairseq's VGG-Transformer, made independent of the padding of its batch."""

from __future__ import annotations

import ast
import re
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge import import_fairseq

ARCHITECTURE = "vggtransformer"
_LONGEST_PERIOD_FRAMES = 1024


@contextmanager
def _examples_of_fairseq() -> Iterator[None]:
    """Make fairseq's examples importable as `examples`, the name by which they import each other.

    Modules of that name that were imported before are put back afterwards.
    """

    def removed_modules() -> dict[str, types.ModuleType]:
        names = [name for name in sys.modules if name.partition(".")[0] == "examples"]
        return {name: sys.modules.pop(name) for name in names}

    previous = removed_modules()
    package = types.ModuleType("examples")
    package.__path__ = [str(Path(str(import_fairseq().__file__)).parent / "examples")]
    sys.modules["examples"] = package
    try:
        yield
    finally:
        removed_modules()
        sys.modules.update(previous)


with _examples_of_fairseq():
    _vgg = import_fairseq("examples.speech_recognition.models.vggtransformer")
_dataclass = import_fairseq("fairseq.dataclass").FairseqDataclass
_register_model = import_fairseq("fairseq.models").register_model
_LinearizedConvolution = import_fairseq("fairseq.modules").LinearizedConvolution


@dataclass
class VggTransformerConfig(_dataclass):  # type: ignore[misc, valid-type]
    """Settings with fairseq's names and the defaults of its `vggtransformer_2`.

    The four `_config` settings are strings in fairseq's notation: tuples of layers, or
    `((...),) * n`. Settings of our own are `in_channels`, the number of frames that are stacked as
    channels of one input position, `position_rows`, the number of sine and cosine rows appended to
    the bins because the model has no positional encoding, `max_source_positions` in frames and
    `max_target_positions` in tokens.
    """

    input_feat_per_channel: int = 80
    in_channels: int = 1
    position_rows: int = 0
    vggblock_enc_config: str = "[(64, 3, 2, 2, True), (128, 3, 2, 2, True)]"
    transformer_enc_config: str = "((1024, 16, 4096, True, 0.15, 0.15, 0.15),) * 16"
    enc_output_dim: int = 1024
    tgt_embed_dim: int = 512
    conv_dec_config: str = "((256, 3, True),) * 4"
    transformer_dec_config: str = "((1024, 16, 4096, True, 0.15, 0.15, 0.15),) * 6"
    max_source_positions: int = 6000
    max_target_positions: int = 1024


class _Encoder(_vgg.VGGTransformerEncoder):  # type: ignore[misc, name-defined]
    """fairseq's encoder, with padding masked after every layer that mixes frames over time."""

    def __init__(self, config: VggTransformerConfig, vgg: list[Any], layers: list[Any]) -> None:
        super().__init__(
            input_feat_per_channel=config.input_feat_per_channel + config.position_rows,
            vggblock_config=vgg,
            transformer_config=layers,
            encoder_output_dim=config.enc_output_dim,
            in_channels=config.in_channels,
        )
        self.feature_bins = config.input_feat_per_channel
        self.position_rows = config.position_rows
        self.max_source_positions = config.max_source_positions

    def max_positions(self) -> int:
        """Maximum number of frames of a source."""
        return self.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, **_: Any) -> dict[str, Any]:
        """Encode sources [sentence, frame, bin] of src_lengths [sentence] frames.

        Values after the last frame are ignored. The output has the keys and shapes of fairseq's
        own encoder.
        """
        x, length = self._stacked(src_tokens, src_lengths)
        for block in self.conv_layers:
            for layer in block.layers:
                if isinstance(layer, nn.MaxPool2d):
                    length = -(-length // block.pooling_kernel_size[0])
                x = layer(x)
                x = x * _within(length, x.shape[2], x)[:, None, :, None]
        x = x.permute(2, 0, 1, 3).flatten(2)
        padding = _within(length, len(x), x) == 0
        mask = padding if bool(padding.any()) else None
        for layer in self.transformer_layers:
            is_block = isinstance(layer, _vgg.TransformerEncoderLayer)
            x = layer(x, mask) if is_block else layer(x)
        return {"encoder_out": x, "encoder_padding_mask": None if mask is None else mask.t()}

    def _stacked(self, frames: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """Input of the convolutions [sentence, channel, position, bin] and its lengths."""
        if self.position_rows:
            rows = _positions(frames.shape[1], self.position_rows).to(frames)
            frames = torch.cat([frames, rows.expand(len(frames), -1, -1)], dim=2)
        frames = frames * _within(length, frames.shape[1], frames)[:, :, None]
        n_position = -(-frames.shape[1] // self.in_channels)
        missing = n_position * self.in_channels - frames.shape[1]
        frames = nn.functional.pad(frames, (0, 0, 0, missing))
        stacked = frames.view(len(frames), n_position, self.in_channels, self.input_dim)
        return stacked.transpose(1, 2).contiguous(), -(-length // self.in_channels)


class _Decoder(_vgg.TransformerDecoder):  # type: ignore[misc, name-defined]
    """fairseq's decoder, with a length limit and a separate output layer."""

    def __init__(self, max_target_positions: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.max_target_positions = max_target_positions
        for module in self.modules():
            if isinstance(module, _LinearizedConvolution):
                # These hooks clear a cache that is never filled, and torch deprecates their kind.
                module._backward_hooks.clear()

    def max_positions(self) -> int:
        """Maximum number of tokens of a target."""
        return self.max_target_positions

    def output_layer(self, features: Tensor) -> Tensor:
        """Compute logits [..., vocab] of features."""
        logits: Tensor = self.fc_out(features)
        return logits

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: Any = None,
        features_only: bool = False,
    ) -> Any:
        """Like fairseq's forward; with features_only, return the input of the output layer."""
        output_layer = self._modules["fc_out"]
        if features_only:
            self._modules["fc_out"] = nn.Identity()
        try:
            with warnings.catch_warnings():
                # fairseq passes torch a float mask together with a boolean mask.
                warnings.filterwarnings("ignore", ".*mismatched key_padding_mask and attn_mask.*")
                return super().forward(prev_output_tokens, encoder_out, incremental_state)
        finally:
            self._modules["fc_out"] = output_layer


@_register_model(ARCHITECTURE, dataclass=VggTransformerConfig)
class VggTransformer(_vgg.VGGTransformerModel):  # type: ignore[misc, name-defined]
    """fairseq's VGG-Transformer, with settings that are parsed and checked instead of evaluated."""

    @classmethod
    def build_model(cls, args: VggTransformerConfig, task: Any) -> VggTransformer:
        """Build a model with fresh weights.

        Raises ConfigError for settings that fairseq would accept and fail on later.
        """
        vgg = _layers(args.vggblock_enc_config, "vggblock_enc_config", 5)
        encoder_layers = _layers(args.transformer_enc_config, "transformer_enc_config", 7)
        decoder_layers = _layers(args.transformer_dec_config, "transformer_dec_config", 7)
        convolutions = _layers(args.conv_dec_config, "conv_dec_config", 3)
        _check(args, vgg, decoder_layers, convolutions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # weight norm is deprecated
            decoder = _Decoder(
                args.max_target_positions,
                dictionary=task.target_dictionary,
                embed_dim=args.tgt_embed_dim,
                transformer_config=decoder_layers,
                conv_config=convolutions,
                encoder_output_dim=args.enc_output_dim,
            )
        return cls(_Encoder(args, vgg, encoder_layers), decoder)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state dict."""
        with warnings.catch_warnings():
            # fairseq's convolutions pass its arguments by position.
            warnings.filterwarnings("ignore", "Positional args are being deprecated", FutureWarning)
            return super().state_dict(*args, **kwargs)


def _within(length: Tensor, n_position: int, like: Tensor) -> Tensor:
    """1 for frames and 0 for padding [sentence, position]."""
    position = torch.arange(n_position, device=length.device)
    return (position < length[:, None]).to(like)


def _positions(n_frame: int, n_row: int) -> Tensor:
    """Sine and cosine of slow phases [frame, row]; each period is half the previous one."""
    period = _LONGEST_PERIOD_FRAMES / 2.0 ** torch.arange(n_row // 2)
    phase = 2 * torch.pi * torch.arange(n_frame)[:, None] / period
    return torch.cat([phase.sin(), phase.cos()], dim=1)


def _layers(text: str, name: str, n_value: int) -> list[Any]:
    """Parse a setting in fairseq's notation: `[(...), (...)]` or `((...),) * n`."""
    layers, times = re.fullmatch(r"\s*(.*?)\s*(?:\*\s*(\d+)\s*)?", text, re.DOTALL).groups()  # type: ignore[union-attr]
    try:
        tuples = list(ast.literal_eval(layers)) * int(times or 1)
    except (ValueError, SyntaxError, TypeError):
        tuples = []
    if not tuples or not all(
        isinstance(layer, tuple) and len(layer) == n_value for layer in tuples
    ):
        raise ConfigError(
            f"model.settings.{name}: must be a string with at least one tuple of {n_value} values, "
            f"such as ((...),) * 2 (got {text!r})."
        )
    return tuples


def _check(
    config: VggTransformerConfig, vgg: list[Any], decoder: list[Any], convolutions: list[Any]
) -> None:
    where = "model.settings"
    if config.enc_output_dim != decoder[0][0]:
        raise ConfigError(
            f"{where}.enc_output_dim: must be the width of the decoder's layers, {decoder[0][0]} "
            f"(got {config.enc_output_dim})."
        )
    if any(kernel < 2 for _, kernel, _ in convolutions):
        raise ConfigError(
            f"{where}.conv_dec_config: kernels must be at least 2 (got {config.conv_dec_config})."
        )
    if not all(isinstance(pooling, int) for _, _, pooling, _, _ in vgg):
        raise ConfigError(
            f"{where}.vggblock_enc_config: pooling must be an integer "
            f"(got {config.vggblock_enc_config})."
        )
    if config.position_rows < 0 or config.position_rows % 2:
        raise ConfigError(
            f"{where}.position_rows: must be an even number >= 0 (got {config.position_rows})."
        )
