"""Causal models with other positions than GPT-2: rotary ones, and none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.scoring import score_targets
from pipeline.decoding.test_set import Sentence
from pipeline.huggingface.causal import CausalMember
from pipeline.huggingface.control_tokens import control_tokens
from pipeline.run.settings import decode_settings

CONTROL = {"vocab_size": 24, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": None}
CONFIGS = {
    "llama": transformers.LlamaConfig(
        **CONTROL, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=40,
    ),
    "bloom": transformers.BloomConfig(**CONTROL, hidden_size=32, n_layer=2, n_head=2),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_prompts_of_a_batch_do_not_change_each_other(name: str) -> None:
    members = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        config = CONFIGS[name]
        config.initializer_range = 0.3
        model: Any = transformers.AutoModelForCausalLM.from_config(config)
        tokens = control_tokens(model.config, model.generation_config, name)
        members.append(CausalMember(model, tokens))
    limit = {"llama": 41, "bloom": 2**20 + 1}
    assert members[0].max_shared_tokens == limit[name]
    ensemble = as_ensemble(members)
    settings = decode_settings(beam=3, max_length_ratio=0.0, max_length_offset=8)
    sentences = [
        Sentence(0, [5, 6, 7, 8, 9], None),
        Sentence(1, [5], None),
        Sentence(2, [9, 3], None),
    ]
    together = beam_search(ensemble, sentences, "prex", settings)
    for sentence, (best, *_) in zip(sentences, together, strict=True):
        ((alone, *_),) = beam_search(ensemble, [sentence], "prex", settings)
        forced = replace(sentence, target=best.token_id.tolist())
        ((rescored,),) = score_targets(ensemble, [forced], "prex", settings)
        assert alone.token_id.tolist() == best.token_id.tolist()
        for other in (alone, rescored):
            np.testing.assert_allclose(other.statistics.logprob, best.statistics.logprob, atol=1e-4)
