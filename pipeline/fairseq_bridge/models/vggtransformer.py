"""fairseq's VGG-Transformer, with an encoder that does not see the padding of its batch."""

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
    """fairseq's folder of examples as the package `examples`: so it imports itself."""

    def taken() -> dict[str, types.ModuleType]:
        names = [name for name in sys.modules if name.partition(".")[0] == "examples"]
        return {name: sys.modules.pop(name) for name in names}

    others = taken()
    package = types.ModuleType("examples")
    package.__path__ = [str(Path(str(import_fairseq().__file__)).parent / "examples")]
    sys.modules["examples"] = package
    try:
        yield
    finally:
        taken()
        sys.modules.update(others)


with _examples_of_fairseq():
    _vgg = import_fairseq("examples.speech_recognition.models.vggtransformer")
_dataclass = import_fairseq("fairseq.dataclass").FairseqDataclass
_register_model = import_fairseq("fairseq.models").register_model
_LinearizedConvolution = import_fairseq("fairseq.modules").LinearizedConvolution


@dataclass
class VggTransformerConfig(_dataclass):  # type: ignore[misc, valid-type]
    """Settings by fairseq's names and with the defaults of its `vggtransformer_2`, and some more.

    The four `_config` are strings in fairseq's notation: tuples of layers, or `((...),) * n`.
    in_channels: frames that are stacked as the channels of one input position. position_rows: sine
    and cosine rows that are added to the bins, since the model knows no positions otherwise.
    max_source_positions counts frames, max_target_positions tokens.
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
    """Frames [sentence, frame, bin] are masked after every layer that mixes them over time."""

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
        """Most frames of a source."""
        return self.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, **_: Any) -> dict[str, Any]:
        """Source [sentence, frame, bin], any values after src_lengths [sentence] frames.

        What comes out has the keys and shapes of fairseq's own encoder.
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
        """Input [sentence, channel, position, bin] of the convolutions, and its length."""
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
    """fairseq's decoder, with a length limit, and with its output layer apart where asked for."""

    def __init__(self, max_target_positions: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.max_target_positions = max_target_positions
        for module in self.modules():
            if isinstance(module, _LinearizedConvolution):
                # They clear a cache that is never filled, and torch is about to drop their kind.
                module._backward_hooks.clear()

    def max_positions(self) -> int:
        """Most tokens of a target."""
        return self.max_target_positions

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits [..., vocab] of features."""
        logits: Tensor = self.fc_out(features)
        return logits

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: Any = None,
        features_only: bool = False,
    ) -> Any:
        """As fairseq's, and with features_only what its output layer would be given."""
        output_layer = self._modules["fc_out"]
        if features_only:
            self._modules["fc_out"] = nn.Identity()
        try:
            with warnings.catch_warnings():
                # fairseq hands torch a mask of numbers beside one of truth values
                warnings.filterwarnings("ignore", ".*mismatched key_padding_mask and attn_mask.*")
                return super().forward(prev_output_tokens, encoder_out, incremental_state)
        finally:
            self._modules["fc_out"] = output_layer


@_register_model(ARCHITECTURE, dataclass=VggTransformerConfig)
class VggTransformer(_vgg.VGGTransformerModel):  # type: ignore[misc, name-defined]
    """fairseq's VGG-Transformer under settings that are read, not evaluated, and checked."""

    @classmethod
    def build_model(cls, args: VggTransformerConfig, task: Any) -> VggTransformer:
        """A model with fresh weights.

        Raises ConfigError for settings that fairseq's model would take and fail on later.
        """
        vgg = _layers(args.vggblock_enc_config, "vggblock_enc_config", 5)
        encoder_layers = _layers(args.transformer_enc_config, "transformer_enc_config", 7)
        decoder_layers = _layers(args.transformer_dec_config, "transformer_dec_config", 7)
        convolutions = _layers(args.conv_dec_config, "conv_dec_config", 3)
        _check(args, vgg, decoder_layers, convolutions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch's weight norm has a successor
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
        """As any module's."""
        with warnings.catch_warnings():
            # fairseq's convolutions hand its arguments on in a way that torch will drop.
            warnings.filterwarnings("ignore", "Positional args are being deprecated", FutureWarning)
            return super().state_dict(*args, **kwargs)


def _within(length: Tensor, n_position: int, like: Tensor) -> Tensor:
    """1 where there is a frame and 0 where there is padding [sentence, position]."""
    place = torch.arange(n_position, device=length.device)
    return (place < length[:, None]).to(like)


def _positions(n_frame: int, n_row: int) -> Tensor:
    """Sine and cosine of slow phases [frame, row]; each period is half of the one before."""
    period = _LONGEST_PERIOD_FRAMES / 2.0 ** torch.arange(n_row // 2)
    phase = 2 * torch.pi * torch.arange(n_frame)[:, None] / period
    return torch.cat([phase.sin(), phase.cos()], dim=1)


def _layers(text: str, name: str, n_value: int) -> list[Any]:
    """The tuples of a setting in fairseq's notation: `[(...), (...)]` or `((...),) * n`."""
    layers, times = re.fullmatch(r"\s*(.*?)\s*(?:\*\s*(\d+)\s*)?", text, re.DOTALL).groups()  # type: ignore[union-attr]
    try:
        found = list(ast.literal_eval(layers)) * int(times or 1)
    except (ValueError, SyntaxError, TypeError):
        found = []
    if not found or not all(isinstance(one, tuple) and len(one) == n_value for one in found):
        raise ConfigError(
            f"model.settings.{name} must be a string with at least one tuple of {n_value} values, "
            f"such as ((...),) * 2, got {text!r}"
        )
    return found


def _check(
    config: VggTransformerConfig, vgg: list[Any], decoder: list[Any], convolutions: list[Any]
) -> None:
    where = "model.settings"
    if config.enc_output_dim != decoder[0][0]:
        raise ConfigError(
            f"{where}.enc_output_dim must be the width of the decoder's layers ({decoder[0][0]}), "
            f"got {config.enc_output_dim}"
        )
    if any(kernel < 2 for _, kernel, _ in convolutions):
        raise ConfigError(
            f"{where}.conv_dec_config must have kernels > 1, got {config.conv_dec_config}"
        )
    if not all(isinstance(pooling, int) for _, _, pooling, _, _ in vgg):
        raise ConfigError(
            f"{where}.vggblock_enc_config must have whole numbers for pooling, "
            f"got {config.vggblock_enc_config}"
        )
    if config.position_rows < 0 or config.position_rows % 2:
        raise ConfigError(
            f"{where}.position_rows must be an even number >= 0, got {config.position_rows}"
        )
