"""Dropout with a fixed mask, folded into the weights so that a member is one fixed model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge import import_fairseq


def fold_dropout(model: Any, rate: float | None, seed: int) -> None:
    """Drop the same units of every transformer layer for every token, in place.

    Units are dropped from the outputs of attention and of the feed-forward network, and from the
    hidden layer of the latter. Kept units are scaled by 1 / (1 - rate), as in training. If `rate`
    is None, the rates of the training are used. Dropout of embeddings and of attention weights is
    left out, because it cannot be folded into weights. Raises ConfigError if nothing would be
    dropped: the model has no such layer, or was trained without dropout.
    """
    transformer = import_fairseq("fairseq.modules.transformer_layer")
    layer_types = (transformer.TransformerEncoderLayerBase, transformer.TransformerDecoderLayerBase)
    generator = torch.Generator().manual_seed(seed)
    total_rate = 0.0
    for layer in (module for module in model.modules() if isinstance(module, layer_types)):
        output_rate = layer.dropout_module.p if rate is None else rate
        hidden_rate = layer.activation_dropout_module.p if rate is None else rate
        total_rate += output_rate + hidden_rate
        attentions = [layer.self_attn, getattr(layer, "encoder_attn", None)]
        outputs = [attention.out_proj for attention in attentions if attention is not None]
        with torch.no_grad():
            for linear in (*outputs, layer.fc2):
                mask = _mask(linear.weight[:, 0], output_rate, generator)
                linear.weight.mul_(mask[:, None])
                linear.bias.mul_(mask)
            layer.fc2.weight.mul_(_mask(layer.fc2.weight[0], hidden_rate, generator))
    if not total_rate:
        raise ConfigError(
            "settings.rate of an ensemble by dropout: the model was trained without dropout in its "
            f"transformer layers (got {rate}). Set a rate in (0, 1)."
        )


def _mask(like: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Mask [unit]: 0 for dropped, 1 / (1 - rate) for kept units, on the device of `like`."""
    kept = torch.rand(len(like), generator=generator) >= rate
    return (kept / (1 - rate)).to(like)
