"""What a model costs, counted on the model itself: parameters, and floating-point operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.member import FairseqMember, as_member, build_model
from pipeline.fairseq_bridge.models.configuration import model_configuration

_SYMBOLS_OF_FAIRSEQ = 4  # beside the units: <s>, <pad>, </s>, <unk>


@dataclass(frozen=True)
class ModelCosts:
    """parameters: shared ones once. Operations of one forward pass: of the encoder for a source
    token (a frame of speech), and of the decoder for a target token.
    """

    parameters: int
    encoder_flops: float
    decoder_flops: float


def stand_in_dictionary(vocab_size: int) -> Any:
    """fairseq's Dictionary of vocab_size symbols, its four own ones among them."""
    dictionary = import_fairseq("fairseq.data").Dictionary()
    for place in range(vocab_size - _SYMBOLS_OF_FAIRSEQ):
        dictionary.add_symbol(f"unit{place}")
    return dictionary


def stand_in_source(length: int, bins: int | None, n_sentence: int = 1) -> Tensor:
    """Token ids [sentence, token], or frames [sentence, frame, bin] where there are bins."""
    if bins is None:
        return torch.full((n_sentence, length), _SYMBOLS_OF_FAIRSEQ)
    return torch.zeros(n_sentence, length, bins)


def model_costs(
    architecture: str,
    settings: Mapping[str, Any],
    vocab_size: int,
    source_length: int,
    target_length: int,
    bins: int | None = None,
) -> ModelCosts:
    """Costs of a model with a vocabulary of vocab_size, for one sentence of such lengths.

    Lengths are in tokens, the source's of speech (with so many `bins`) in frames. Its weights are
    left as memory has them: only operations are counted. Raises ConfigError for an architecture or
    a setting that fairseq does not have.
    """
    dictionary = stand_in_dictionary(vocab_size)
    configuration = model_configuration(architecture, settings)
    with torch.device("meta"):
        model = build_model(configuration, dictionary, dictionary)
    parameters = sum(one.numel() for one in model.parameters())
    member: FairseqMember = as_member(model.to_empty(device="cpu"), architecture)
    source = stand_in_source(source_length, bins)
    prefix = torch.full((1, target_length), _SYMBOLS_OF_FAIRSEQ)
    encoder = _flops(lambda: member.encode(source))
    whole = _flops(lambda: list(member.force(source, prefix, [target_length])))
    return ModelCosts(parameters, encoder / source_length, (whole - encoder) / target_length)


def _flops(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())
