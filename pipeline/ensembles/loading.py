"""A member in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.ensembles.ensemble import Member

if TYPE_CHECKING:
    from pipeline.fairseq_bridge.members.member import FairseqMember


def load(
    member: Member, source_dictionary: Any, target_dictionary: Any, device: str, dtype: str
) -> FairseqMember:
    """The model of a member, ready to decode, with its dropout mask if it has one.

    Raises what fairseq_bridge's `load_member` and `fold_dropout` raise.
    """
    from pipeline.fairseq_bridge.members.dropout_masks import fold_dropout
    from pipeline.fairseq_bridge.members.member import load_member

    loaded = load_member(
        member.description["model"],
        member.weights,
        source_dictionary,
        target_dictionary,
        device,
        dtype,
    )
    if member.mask is not None:
        fold_dropout(loaded.model, member.mask.rate, member.mask.seed)
    return loaded
