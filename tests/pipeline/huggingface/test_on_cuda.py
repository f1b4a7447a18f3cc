"""Hugging Face members on a device: the same results as on the CPU, and no hidden copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import MembersInTurn
from pipeline.decoding.scoring import score_targets
from pipeline.huggingface.causal import CausalMember
from pipeline.huggingface.control_tokens import control_tokens
from pipeline.huggingface.encoder_decoder import EncoderDecoderMember, SpeechMember
from tests.fake_cuda import CUDA, fake_cuda, on_fake_cuda, steps_of
from tests.pipeline.decoding.test_device import assert_same
from tests.pipeline.huggingface.conftest import BUILDERS, STARTS, VOCAB, sentences_of
from tests.pretended_cuda import PretendedCuda

pytestmark = pytest.mark.slow


def member(name: str, move: Callable[[Any], Any]) -> Any:
    """A member with random weights, always the same, that were moved."""
    torch.manual_seed(0)
    model = BUILDERS[name]().eval()
    start = tuple(STARTS[name]) if name == "whisper" else None
    tokens = control_tokens(model.config, model.generation_config, name, start=start)
    kind: Any = {"gpt2": CausalMember, "whisper": SpeechMember}.get(name, EncoderDecoderMember)
    return kind(move(model), tokens)


@pytest.mark.parametrize("name", BUILDERS)
def test_results_are_those_of_the_cpu(name: str, decode_config: Any) -> None:
    sentences, config = sentences_of(name, 3), decode_config(beam=2, max_length_offset=6)
    on_cpu = MembersInTurn([member(name, lambda model: model)])
    expected = [
        search(on_cpu, sentences, "prex", config) for search in (beam_search, score_targets)
    ]
    with PretendedCuda() as cuda:
        model = MembersInTurn([member(name, cuda.moved)])
        assert model.encode.__self__._members[0].device.type == "cuda"
        found = [
            search(model, sentences, "prex", config) for search in (beam_search, score_targets)
        ]
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)
    distribution_bytes = 2 * len(sentences) * VOCAB * 4
    assert max(cuda.to_host) < distribution_bytes


@pytest.mark.parametrize("name", ["marian", "bart", "t5"])
def test_steps_on_fake_tensors_stay_on_the_device(name: str) -> None:
    with fake_cuda():
        model = MembersInTurn([member(name, on_fake_cuda)])
        logits = steps_of(model, torch.ones(3, 5, dtype=torch.long))
        assert (logits.device, logits.shape) == (CUDA, (4, 1, VOCAB))
