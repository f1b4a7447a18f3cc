from __future__ import annotations

from typing import Any

import pytest
import torch

from pipeline.decoding.ensemble import MembersInTurn
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.fairseq_bridge.members.stacked import StackedTransformers, can_stack
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration

SIDE = {"embed_dim": 8, "ffn_embed_dim": 12, "layers": 2, "attention_heads": 2}
PLAIN = {"encoder": SIDE, "decoder": SIDE}
SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 1, 1]])


def member(seed: int, **settings: Any) -> FairseqMember:
    dictionary = import_fairseq("fairseq.data").Dictionary()
    for word in range(20):
        dictionary.add_symbol(f"w{word}")
    torch.manual_seed(seed)
    configuration = model_configuration("transformer", PLAIN | settings)
    return FairseqMember(build_model(configuration, dictionary, dictionary))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"share_all_embeddings": True, "activation_fn": "gelu"},
        {
            "encoder": SIDE | {"normalize_before": True},
            "decoder": SIDE | {"normalize_before": True, "learned_pos": True},
            "no_scale_embedding": True,
        },
        {"no_token_positional_embeddings": True},
    ],
)
def test_steps_of_stacked_members_equal_those_of_members_in_turn(settings: dict[str, Any]) -> None:
    members = [member(seed, **settings) for seed in range(3)]
    assert can_stack(members)
    stacked, in_turn = StackedTransformers(members), MembersInTurn(members)
    states = [model.encode(SOURCE) for model in (stacked, in_turn)]
    prefix = torch.tensor([[2]] * 2)
    moves = [
        ([0, 0, 1, 1], [9, 10, 11, 12]),
        ([0, 0, 3, 3], [9, 10, 11, 12]),
        ([3, 2], [5, 6]),
        ([1, 1], [7, 2]),
    ]
    for rows, tokens in moves:
        steps = [
            model.step(state, prefix)
            for model, state in zip((stacked, in_turn), states, strict=True)
        ]
        assert steps[0].shape == (len(prefix), 3, 24)
        torch.testing.assert_close(steps[0], steps[1])
        row = torch.tensor(rows)
        prefix = torch.cat([prefix[row], torch.tensor(tokens)[:, None]], dim=1)
        states = [
            model.reorder(state, row, 2)
            for model, state in zip((stacked, in_turn), states, strict=True)
        ]


def test_teacher_forcing_of_stacked_members_equals_that_of_members_in_turn() -> None:
    members = [member(seed) for seed in range(2)]
    prefix = torch.tensor([[2, 9, 10], [2, 11, 2]])
    for logits, expected in zip(
        StackedTransformers(members).force(SOURCE, prefix, [3, 2]),
        MembersInTurn(members).force(SOURCE, prefix, [3, 2]),
        strict=True,
    ):
        torch.testing.assert_close(logits, expected)


def test_members_of_different_architectures_are_not_stacked() -> None:
    assert not can_stack([member(0), member(1, encoder=SIDE | {"layers": 1})])


@pytest.mark.parametrize(
    "settings",
    [
        {"layernorm_embedding": True},
        {"cross_self_attention": True, "no_cross_attention": True},
        {"decoder": SIDE | {"output_dim": 4}},
        {"adaptive_softmax_cutoff": [10]},
    ],
)
def test_decoders_with_extras_are_not_stacked(settings: dict[str, Any]) -> None:
    assert not can_stack([member(0, **settings), member(1, **settings)])
