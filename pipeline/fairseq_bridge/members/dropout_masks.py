"""Dropout with one mask that stays: folded into the weights, so that the model is a fixed one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge import import_fairseq


def fold_dropout(model: Any, rate: float | None, seed: int) -> None:
    """Drop the same units of every transformer layer for every token, in place.

    What a layer adds to its input loses units at the outputs of attention and of the feed-forward
    network, and hidden units of the latter; what is kept is scaled up by 1 / (1 - rate), as in
    training. rate: None stands for the model's own rates. Dropout of embeddings and of attention
    weights has no fixed units that weights could hold, and is left out. Raises ConfigError where
    nothing would be dropped: there is no such layer, or the model was trained without dropout.
    """
    transformer = import_fairseq("fairseq.modules.transformer_layer")
    kinds = (transformer.TransformerEncoderLayerBase, transformer.TransformerDecoderLayerBase)
    generator = torch.Generator().manual_seed(seed)
    dropped = 0.0
    for layer in (module for module in model.modules() if isinstance(module, kinds)):
        outputs = layer.dropout_module.p if rate is None else rate
        hidden = layer.activation_dropout_module.p if rate is None else rate
        dropped += outputs + hidden
        attentions = [layer.self_attn, getattr(layer, "encoder_attn", None)]
        with torch.no_grad():
            for linear in (*(one.out_proj for one in attentions if one is not None), layer.fc2):
                mask = _mask(linear.weight[:, 0], outputs, generator)
                linear.weight.mul_(mask[:, None])
                linear.bias.mul_(mask)
            layer.fc2.weight.mul_(_mask(layer.fc2.weight[0], hidden, generator))
    if not dropped:
        raise ConfigError(
            "settings.rate of an ensemble by dropout must be in (0, 1) for a model that was "
            f"trained without dropout in its transformer layers, got {rate}"
        )


def _mask(like: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """0 for a dropped unit, 1 / (1 - rate) for one that is kept: [unit], where `like` is."""
    kept = torch.rand(len(like), generator=generator) >= rate
    return (kept / (1 - rate)).to(like)
