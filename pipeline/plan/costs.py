"""Parameters and FLOPs of a model, counted on the model itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pipeline.fairseq_bridge.corpus.binarised import dictionary_of
from pipeline.fairseq_bridge.members.member import as_member
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration

_SPECIAL_SYMBOLS = 4  # of fairseq, at the start of a dictionary: <s>, <pad>, </s>, <unk>


@dataclass(frozen=True)
class ModelCosts:
    """Number of parameters (shared parameters count once), and FLOPs of one forward pass.

    `encoder_flops` are per source token (speech: per frame), `decoder_flops` per target token.
    """

    parameters: int
    encoder_flops: float
    decoder_flops: float


def placeholder_dictionary(vocab_size: int) -> Any:
    """A fairseq Dictionary of `vocab_size` entries, including fairseq's special symbols."""
    return dictionary_of(f"unit{index}" for index in range(vocab_size - _SPECIAL_SYMBOLS))


def placeholder_source(length: int, bins: int | None, n_sentence: int = 1) -> Tensor:
    """Token ids [sentence, token], or frames [sentence, frame, bin] if `bins` is given."""
    if bins is None:
        return torch.full((n_sentence, length), _SPECIAL_SYMBOLS)
    return torch.zeros(n_sentence, length, bins)


def model_costs(
    architecture: str,
    settings: Mapping[str, Any],
    vocab_size: int,
    source_length: int,
    target_length: int,
    bins: int | None = None,
) -> ModelCosts:
    """Count the costs of a model for one sentence.

    Lengths are in tokens; for speech, which has `bins`, the source length is in frames. Weights are
    not initialised, as FLOPs do not depend on them. Raises ConfigError for an architecture or a
    setting that fairseq does not have.
    """
    dictionary = placeholder_dictionary(vocab_size)
    configuration = model_configuration(architecture, settings)
    with torch.device("meta"):
        model = build_model(configuration, dictionary, dictionary)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    member = as_member(model.to_empty(device="cpu"), architecture)
    source = placeholder_source(source_length, bins)
    prefix = torch.full((1, target_length), _SPECIAL_SYMBOLS)
    encoder = _flops(lambda: member.encode(source))
    total = _flops(lambda: list(member.force(source, prefix, [target_length])))
    return ModelCosts(parameters, encoder / source_length, (total - encoder) / target_length)


def _flops(forward: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        forward()
    return int(counter.get_total_flops())
