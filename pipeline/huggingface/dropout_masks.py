"""Dropout with a fixed mask, folded into the weights so that a member is one fixed model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.errors import ConfigError


@dataclass(frozen=True)
class _Layout:
    """Where an architecture has the units that masks drop.

    attention: ends of the names of the maps that attention ends with; feed_forward: of those that
    feed-forward networks end with. layers: settings of the configuration that add up to the number
    of layers. output_rate, hidden_rate: settings with the dropout rate of outputs and of the hidden
    layer of the feed-forward network; None if training has no such dropout.
    """

    attention: tuple[str, ...]
    feed_forward: str
    layers: tuple[str, ...]
    output_rate: str | None
    hidden_rate: str | None


_LAYOUTS = (
    # Marian, BART, mBART, NLLB, Whisper, Speech2Text
    _Layout(
        ("self_attn.out_proj", "encoder_attn.out_proj"), ".fc2",
        ("encoder_layers", "decoder_layers"), "dropout", "activation_dropout",
    ),
    _Layout(  # T5
        ("SelfAttention.o", "EncDecAttention.o"), "DenseReluDense.wo",
        ("num_layers", "num_decoder_layers"), "dropout_rate", "dropout_rate",
    ),
    _Layout((".attn.c_proj",), ".mlp.c_proj", ("n_layer",), "resid_pdrop", None),  # GPT-2
    # Llama, Mistral, Qwen, Gemma
    _Layout((".self_attn.o_proj",), ".mlp.down_proj", ("num_hidden_layers",), None, None),
)  # fmt: skip


def fold_dropout(model: Any, rate: float | None, seed: int) -> None:
    """Drop the same units of every layer for every token, in place.

    Units are dropped from the outputs of attention and of the feed-forward network, and from the
    hidden layer of the latter. Kept units are scaled by 1 / (1 - rate), as in training. If `rate`
    is None, the rates of the training are used. Dropout of embeddings and of attention weights is
    left out, because it cannot be folded into weights. Raises ConfigError if the units of the
    architecture are not known, or if the model was trained without dropout and `rate` is None.
    """
    layout, attention, feed_forward = _maps(model)
    output_rate = _rate(model.config, layout.output_rate) if rate is None else rate
    hidden_rate = _rate(model.config, layout.hidden_rate) if rate is None else rate
    if not output_rate + hidden_rate:
        raise ConfigError(
            "settings.rate of ensemble=huggingface: the model was trained without dropout in its "
            "layers (got null). Set a rate in (0, 1)."
        )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for linear in (*attention, *feed_forward):
            outputs = _by_output(linear)
            mask = _mask(outputs[:, 0], output_rate, generator)
            outputs.mul_(mask[:, None])
            if linear.bias is not None:
                linear.bias.mul_(mask)
        for linear in feed_forward:
            outputs = _by_output(linear)
            outputs.mul_(_mask(outputs[0], hidden_rate, generator))


def _maps(model: Any) -> tuple[_Layout, list[Any], list[Any]]:
    """The last maps of all attentions and of all feed-forward networks of a model."""
    modules = dict(model.named_modules())
    for layout in _LAYOUTS:
        n_layer = sum(int(getattr(model.config, name, 0) or 0) for name in layout.layers)
        attention = [modules[name] for name in modules if name.endswith(layout.attention)]
        feed_forward = [modules[name] for name in modules if name.endswith(layout.feed_forward)]
        if len(attention) >= len(feed_forward) == n_layer > 0:
            return layout, attention, feed_forward
    raise ConfigError(
        f"settings.members of ensemble=huggingface: dropout masks are not known for models of type "
        f"{model.config.model_type}. Give several models or adapters instead."
    )


def _by_output(linear: Any) -> Tensor:
    """The weights as [output, input]; GPT-2 has them the other way round."""
    weight: Tensor = linear.weight
    return weight.t() if type(linear).__name__ == "Conv1D" else weight


def _rate(config: Any, name: str | None) -> float:
    return 0.0 if name is None else float(getattr(config, name))


def _mask(like: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Mask [unit]: 0 for dropped, 1 / (1 - rate) for kept units, on the device of `like`."""
    kept = torch.rand(len(like), generator=generator) >= rate
    return (kept / (1 - rate)).to(like)
