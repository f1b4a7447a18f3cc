"""fairseq's VGG-Transformer, rebuilt from its layers and independent of the padding of a batch."""

from __future__ import annotations

import ast
import re
import warnings
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge import import_fairseq

ARCHITECTURE = "vggtransformer"
_LONGEST_PERIOD_FRAMES = 1024
_PROBE = (10, 200)  # sentences and frames of the random batch by which fairseq measures a width

_dataclass = import_fairseq("fairseq.dataclass").FairseqDataclass
_models = import_fairseq("fairseq.models")
_modules = import_fairseq("fairseq.modules")


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


class _Encoder(_models.FairseqEncoder):  # type: ignore[misc, name-defined]
    """Blocks of convolutions over frames and bins, and then transformer layers.

    Weights have the names, the shapes and, for a seed, the values of fairseq's own encoder. Padding
    is masked after every layer that mixes frames over time.
    """

    def __init__(self, config: VggTransformerConfig, vgg: list[Any], layers: list[Any]) -> None:
        super().__init__(None)
        self.feature_bins = config.input_feat_per_channel
        self.position_rows = config.position_rows
        self.max_source_positions = config.max_source_positions
        self.in_channels = channels = config.in_channels
        self.input_dim = bins = self.feature_bins + self.position_rows
        self.conv_layers = nn.ModuleList()
        for out_channels, kernel, pooling, depth, has_norm in vgg:
            block = _modules.VGGBlock(
                channels, out_channels, kernel, pooling, depth, bins, layer_norm=has_norm
            )
            self.conv_layers.append(block)
            channels, bins = out_channels, block.output_dim
        width = self._width_of_convolutions()
        self.transformer_layers = nn.ModuleList(_transformer_layers("encoder", width, layers))
        self.transformer_layers.append(nn.Linear(layers[-1][0], config.enc_output_dim))
        self.transformer_layers.append(nn.LayerNorm(config.enc_output_dim))

    @torch.no_grad()
    def _width_of_convolutions(self) -> int:
        """Measure the number of values per position after the convolutions, as fairseq does.

        The weights of all further layers follow this draw in the stream of random numbers.
        """
        n_sentence, n_frame = _PROBE
        x = torch.randn(n_sentence, self.in_channels, n_frame, self.input_dim)
        for block in self.conv_layers:
            x = block(x)
        return x.shape[1] * x.shape[3]

    def max_positions(self) -> int:
        """Maximum number of frames of a source."""
        return self.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, **_: Any) -> dict[str, Any]:
        """Encode sources [sentence, frame, bin] of src_lengths [sentence] frames.

        Values after the last frame are ignored. The output has the keys and shapes of fairseq's
        own encoder.
        """
        x, length = self._stacked(src_tokens, src_lengths)
        block: Any
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
            is_block = isinstance(layer, _modules.TransformerEncoderLayer)
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


class _Decoder(_models.FairseqIncrementalDecoder):  # type: ignore[misc, name-defined]
    """Convolutions over the previous tokens, transformer layers, and a separate output layer.

    Weights have the names, the shapes and, for a seed, the values of fairseq's own decoder.
    """

    def __init__(
        self,
        config: VggTransformerConfig,
        dictionary: Any,
        convolutions: list[Any],
        layers: list[Any],
    ) -> None:
        super().__init__(dictionary)
        self.max_target_positions = config.max_target_positions
        self.padding_idx = dictionary.pad()
        width = config.tgt_embed_dim
        self.embed_tokens = nn.Embedding(len(dictionary), width, self.padding_idx)
        self.conv_layers = nn.ModuleList()
        for out_width, kernel, has_norm in convolutions:
            self.conv_layers.append(_convolution(width, out_width, kernel))
            if has_norm:
                self.conv_layers.append(nn.LayerNorm(out_width))
            self.conv_layers.append(nn.ReLU())
            width = out_width
        self.layers = nn.ModuleList(_transformer_layers("decoder", width, layers))
        self.fc_out = nn.Linear(layers[-1][0], len(dictionary))

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
        encoder_out: dict[str, Any],
        incremental_state: Any = None,
        features_only: bool = False,
    ) -> tuple[Tensor, None]:
        """Compute logits [sentence, token, vocab] after every prefix of prev_output_tokens.

        With an incremental state, only those after the last token. With features_only, the input of
        the output layer instead of logits.
        """
        is_step = incremental_state is not None
        future = padding = None
        if not is_step:
            padding = prev_output_tokens == self.padding_idx
            n_token = prev_output_tokens.shape[1]
            future = torch.ones(n_token, n_token, dtype=torch.bool, device=padding.device).triu(1)
        x = self.embed_tokens(prev_output_tokens[:, -1:] if is_step else prev_output_tokens)
        # fairseq's convolution takes [sentence, 1, width] in a step, else [token, sentence, width].
        x = x if is_step else x.transpose(0, 1)
        for layer in self.conv_layers:
            is_convolution = isinstance(layer, _modules.LinearizedConvolution)
            x = layer(x, incremental_state) if is_convolution else layer(x)
        x = x.transpose(0, 1) if is_step else x
        source_padding = encoder_out["encoder_padding_mask"]
        for layer in self.layers:
            if isinstance(layer, _modules.TransformerDecoderLayer):
                x, *_ = layer(
                    x,
                    encoder_out["encoder_out"],
                    None if source_padding is None else source_padding.t(),
                    incremental_state,
                    self_attn_mask=future,
                    self_attn_padding_mask=padding,
                )
            else:
                x = layer(x)
        x = x.transpose(0, 1)
        return (x if features_only else self.output_layer(x)), None


@_models.register_model(ARCHITECTURE, dataclass=VggTransformerConfig)
class VggTransformer(_models.FairseqEncoderDecoderModel):  # type: ignore[misc, name-defined]
    """fairseq's VGG-Transformer, with settings that are parsed and checked instead of evaluated."""

    @classmethod
    def build_model(cls, args: VggTransformerConfig, task: Any) -> VggTransformer:
        """Build a model with fresh weights.

        Raises ConfigError for settings that cannot be read or do not fit together.
        """
        vgg = _layers(args.vggblock_enc_config, "vggblock_enc_config", 5)
        encoder_layers = _layers(args.transformer_enc_config, "transformer_enc_config", 7)
        decoder_layers = _layers(args.transformer_dec_config, "transformer_dec_config", 7)
        convolutions = _layers(args.conv_dec_config, "conv_dec_config", 3)
        _check(args, vgg, encoder_layers, decoder_layers, convolutions)
        # Both sides draw their weights from one stream of random numbers, the decoder first.
        decoder = _Decoder(args, task.target_dictionary, convolutions, decoder_layers)
        return cls(_Encoder(args, vgg, encoder_layers), decoder)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state dict."""
        with warnings.catch_warnings():
            # fairseq's convolutions pass its arguments by position.
            warnings.filterwarnings("ignore", "Positional args are being deprecated", FutureWarning)
            return super().state_dict(*args, **kwargs)


def _transformer_layers(side: str, width: int, layers: list[Any]) -> Iterator[nn.Module]:
    """Yield the layers of a side, encoder or decoder, whose first input has `width` values.

    A linear layer precedes each layer whose width differs from that of its input.
    """
    kind = {
        "encoder": _modules.TransformerEncoderLayer,
        "decoder": _modules.TransformerDecoderLayer,
    }[side]
    for own_width, heads, inner_width, norm_first, dropout, attention, activation in layers:
        if own_width != width:
            yield nn.Linear(width, own_width)
        names = {
            "encoder_embed_dim": None,  # in the decoder: as wide as the layer itself
            f"{side}_embed_dim": own_width,
            f"{side}_attention_heads": heads,
            f"{side}_ffn_embed_dim": inner_width,
            f"{side}_normalize_before": norm_first,
            "dropout": dropout,
            "attention_dropout": attention,
            "activation_dropout": activation,
        }
        yield kind(Namespace(**names))
        width = own_width


def _convolution(width: int, out_width: int, kernel: int) -> nn.Module:
    """Return a causal convolution with weight normalisation."""
    layer = _modules.LinearizedConvolution(width, out_width, kernel, padding=kernel - 1)
    # Its hooks clear a cache that is never filled, and torch deprecates their kind.
    layer._backward_hooks.clear()
    nn.init.normal_(layer.weight, std=(4 / (kernel * width)) ** 0.5)
    nn.init.zeros_(layer.bias)
    with warnings.catch_warnings():
        # It is deprecated, but its successor renames the weights.
        warnings.simplefilter("ignore", FutureWarning)
        normalised: nn.Module = nn.utils.weight_norm(layer, dim=2)
    return normalised


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
    config: VggTransformerConfig,
    vgg: list[Any],
    encoder: list[Any],
    decoder: list[Any],
    convolutions: list[Any],
) -> None:
    where = "model.settings"
    for name, layers in (("transformer_enc_config", encoder), ("transformer_dec_config", decoder)):
        for width, heads, *_ in layers:
            if not isinstance(width, int) or heads not in range(1, width + 1) or width % heads:
                raise ConfigError(
                    f"{where}.{name}: the width of a layer must be a multiple of its heads "
                    f"(got {width} and {heads})."
                )
    if config.enc_output_dim != decoder[0][0]:
        raise ConfigError(
            f"{where}.enc_output_dim: must be the width of the decoder's layers, {decoder[0][0]} "
            f"(got {config.enc_output_dim})."
        )
    if any(kernel < 1 for _, kernel, _ in convolutions):
        raise ConfigError(
            f"{where}.conv_dec_config: kernels must be at least 1 (got {config.conv_dec_config})."
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
