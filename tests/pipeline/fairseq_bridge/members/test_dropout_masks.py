from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.dropout_masks import fold_dropout
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.fairseq_bridge.members.stacked import StackedTransformers
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration

SIDE = {"embed_dim": 8, "ffn_embed_dim": 16, "layers": 2, "attention_heads": 2}
SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 1, 1]])
PREFIX = torch.tensor([[2, 9, 10], [2, 11, 12]])


def model(**settings: Any) -> Any:
    dictionary = import_fairseq("fairseq.data").Dictionary()
    for word in range(20):
        dictionary.add_symbol(f"▁w{word}")
    configuration = model_configuration(
        "transformer", {"encoder": SIDE, "decoder": SIDE, "dropout": 0.0, **settings}
    )
    torch.manual_seed(1)
    return build_model(configuration, dictionary, dictionary).eval()


def logits(one: Any) -> torch.Tensor:
    return torch.cat(list(FairseqMember(one).force(SOURCE, PREFIX, [3, 3])))


def test_the_seed_determines_the_dropped_units() -> None:
    first, again, other = (copy.deepcopy(model()) for _ in range(3))
    fold_dropout(first, 0.3, 1)
    fold_dropout(again, 0.3, 1)
    fold_dropout(other, 0.3, 2)
    assert torch.equal(logits(first), logits(again))
    assert not torch.allclose(logits(first), logits(other))
    assert not torch.allclose(logits(first), logits(model()))


def test_a_layer_equals_one_with_masked_activations() -> None:
    """The first encoder layer, compared with masks applied to its activations."""
    plain, folded = model(), model()
    fold_dropout(folded, 0.5, 3)
    layer, masked = plain.encoder.layers[0], folded.encoder.layers[0]
    generator = torch.Generator().manual_seed(3)
    keep = [(torch.rand(n, generator=generator) >= 0.5) / 0.5 for n in (8, 8, 16)]
    x = torch.randn(3, 1, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        y = layer.self_attn(x, x, x, need_weights=False)[0] * keep[0]
        x_1 = layer.self_attn_layer_norm(x + y)
        y = layer.fc2(layer.activation_fn(layer.fc1(x_1)) * keep[2]) * keep[1]
        expected = layer.final_layer_norm(x_1 + y)
        torch.testing.assert_close(masked(x, None), expected)


def test_stacked_members_keep_their_masks() -> None:
    members = []
    for seed in (1, 2):
        one = model()
        fold_dropout(one, 0.3, seed)
        members.append(FairseqMember(one))
    stacked = StackedTransformers(members)
    state = stacked.encode(SOURCE)
    for place in range(3):
        step = stacked.step(state, PREFIX[:, : place + 1])
        state = stacked.reorder(state, torch.tensor([0, 1]), 1)
    for number, member in enumerate(members):
        expected = torch.stack([logits[-1] for logits in member.force(SOURCE, PREFIX, [3, 3])])
        torch.testing.assert_close(step[:, number], expected)


def test_without_a_rate_the_rates_of_training_are_used() -> None:
    own, given = model(dropout=0.4, activation_dropout=0.4), model()
    fold_dropout(own, None, 1)
    fold_dropout(given, 0.4, 1)
    assert torch.equal(logits(own), logits(given))


def test_a_model_trained_without_dropout_needs_a_rate() -> None:
    with pytest.raises(ConfigError, match=r"settings\.rate .*trained without dropout.*got None"):
        fold_dropout(model(), None, 1)
