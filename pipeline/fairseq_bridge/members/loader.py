"""Load a member of fairseq, with its dropout mask if it has one."""

from __future__ import annotations

from typing import Any

from pipeline.fairseq_bridge.members.dropout_masks import fold_dropout
from pipeline.fairseq_bridge.members.member import FairseqMember, load_member


def load(member: Any, tokenizer: Any, device: str, dtype: str) -> FairseqMember:
    """Load the model of a `Member`, ready to decode, with the dictionaries of a SubwordTokenizer.

    Raises DataError if the weights are damaged or do not fit, MachineError if there is no such
    device, ConfigError if the mask would drop nothing.
    """
    source, target = tokenizer.source_dictionary, tokenizer.target_dictionary
    model = member.description["model"]
    loaded = load_member(model, member.weights, source, target, device, dtype)
    if member.mask is not None:
        fold_dropout(loaded.model, member.mask.rate, member.mask.seed)
    return loaded
