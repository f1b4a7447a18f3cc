"""LoRA adapters of one model as members."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.scoring import score_targets
from pipeline.decoding.test_set import Sentence
from pipeline.ensembles.ensemble import load_member
from pipeline.ensembles.huggingface import huggingface_members
from pipeline.errors import ConfigError, DataError
from pipeline.huggingface import adapters
from pipeline.huggingface.causal import CausalMember
from pipeline.huggingface.loader import load_tokenizer
from pipeline.run.settings import decode_settings
from tests.pipeline.huggingface.folders import SETTINGS, save_causal

pytestmark = pytest.mark.slow

EMPTY = torch.empty(1, 0, dtype=torch.long)
PROMPT = torch.tensor([[5, 6, 7]])


def save_adapter(base: Path, folder: Path, seed: int) -> Path:
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    torch.manual_seed(seed)
    # In GPT-2, c_attn makes queries, keys and values.
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    adapted = peft.get_peft_model(model, config)
    for name, weight in adapted.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(weight, std=0.5)
    adapted.save_pretrained(folder)
    return folder


def first_logits(member: Any) -> torch.Tensor:
    logits: torch.Tensor = member.step(member.encode(PROMPT), EMPTY)
    return logits


@pytest.fixture
def lora(tmp_path: Path) -> dict[str, Any]:
    """Return the settings of two adapters of one model."""
    base = save_causal(tmp_path / "base", 1)
    adapters = [str(save_adapter(base, tmp_path / f"adapter.{seed}", seed)) for seed in (1, 2)]
    prompt = "{source}: {target}"
    return SETTINGS | {"models": [str(base)], "adapters": adapters, "prompt": prompt}


def loaded(settings: dict[str, Any]) -> list[Any]:
    members = huggingface_members("mine", settings)
    tokenizer = load_tokenizer(members[0])
    return [load_member(member, tokenizer, "cpu", "float32") for member in members]


def test_each_adapter_is_the_model_that_it_is_merged_into(lora: dict[str, Any]) -> None:
    members = loaded(lora)
    merged = []
    for adapter in lora["adapters"]:
        base = transformers.AutoModelForCausalLM.from_pretrained(lora["models"][0])
        model = peft.PeftModel.from_pretrained(base, adapter).merge_and_unload().eval()
        merged.append(CausalMember(model, members[0]._tokens))
    expected = [first_logits(member) for member in merged]
    assert (expected[0] - expected[1]).abs().max() > 0.1
    # Members run in turn, each step with another adapter, and in any order.
    for order in ((0, 1), (1, 0), (0, 1)):
        for index in order:
            torch.testing.assert_close(first_logits(members[index]), expected[index])
    ours, theirs = as_ensemble(members), as_ensemble(merged)
    config = decode_settings(beam=3, min_length=0, max_length_offset=6)
    sentences = [Sentence(0, [5, 6, 7], None), Sentence(1, [6, 7], None)]
    found, others = (beam_search(model, sentences, "prex", config) for model in (ours, theirs))
    for sentence, hypotheses, expected_ones in zip(sentences, found, others, strict=True):
        for one, other in zip(hypotheses, expected_ones, strict=True):
            assert one.token_id.tolist() == other.token_id.tolist()
            assert one.score == pytest.approx(other.score, abs=1e-5)
            forced = replace(sentence, target=one.token_id.tolist())
            ((again,),) = score_targets(ours, [forced], "prex", config)
            assert again.score == pytest.approx(one.score, abs=1e-5)


def test_all_adapters_share_the_weights_of_one_model_until_the_last_is_gone(
    lora: dict[str, Any],
) -> None:
    members = loaded(lora)
    models = [member.model._active() for member in members]
    assert models[0] is models[1]
    assert len(adapters._SHARED) == 1
    # Besides one model there are the adapters: two maps of rank 2 each.
    base = transformers.AutoModelForCausalLM.from_pretrained(lora["models"][0])
    of_adapter = 2 * (16 + 48)
    n_weight = sum(weight.numel() for weight in models[0].parameters())
    assert n_weight == sum(weight.numel() for weight in base.parameters()) + 2 * of_adapter
    del models, members
    gc.collect()
    assert len(adapters._SHARED) == 0


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"LORA"', '"IA3"', "peft_type is IA3, not LORA"),
        ('"c_attn"', '"q_proj"', "q_proj"),
        ('"c_attn"', '"c_attn", "c_fc"', "2 weights are missing"),
    ],
)
def test_adapters_that_do_not_fit_are_named(
    lora: dict[str, Any], old: str, new: str, match: str
) -> None:
    config = Path(lora["adapters"][1]) / "adapter_config.json"
    config.write_text(config.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=rf"adapter\.2: not a LoRA adapter of .*{match}"):
        loaded(lora)


def test_settings_that_do_not_fit_adapters_are_named(lora: dict[str, Any]) -> None:
    base = lora["models"][0]
    with pytest.raises(ConfigError, match=r"settings.members .* must be null .* \(got 2\)"):
        loaded(lora | {"members": 2})
    with pytest.raises(ConfigError, match=r"must be one model if adapters is set \(got 2\)"):
        loaded(lora | {"models": [base, base]})
    with pytest.raises(DataError, match=r"adapter_config\.json: no such file"):
        loaded(lora | {"adapters": [base]})
