"""Models and adapters from folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers

from pipeline.ensembles.ensemble import load_member
from pipeline.ensembles.huggingface import huggingface_members
from pipeline.errors import DataError
from pipeline.huggingface.loader import load_tokenizer
from tests.pipeline.huggingface.folders import save_causal, save_marian

SETTINGS: dict[str, Any] = {
    "models": [], "adapters": [], "prompt": None, "source_language": None,
    "target_language": None, "allow_download": False, "revision": None,
}  # fmt: skip


def test_adapters_of_one_model_are_members(tmp_path: Path) -> None:
    base = save_causal(tmp_path / "base", 1)
    adapters = []
    for seed in (1, 2):
        model = transformers.AutoModelForCausalLM.from_pretrained(base)
        torch.manual_seed(seed)
        config = peft.LoraConfig(
            r=2, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True
        )
        adapters.append(tmp_path / f"adapter_{seed}")
        peft.get_peft_model(model, config).save_pretrained(adapters[-1])
    settings = SETTINGS | {
        "models": [str(base)], "adapters": [*map(str, adapters)], "prompt": "{source}: {target}",
    }  # fmt: skip
    members = huggingface_members("lora", settings)
    assert [member.name for member in members] == ["lora_1", "lora_2"]
    assert len({member.model_sha256 for member in members}) == 2
    tokenizer = load_tokenizer(members[0])
    first, second = (load_member(member, tokenizer, "cpu", "float32") for member in members)
    prompt = torch.tensor([[5, 6, 7]])
    own = peft.PeftModel.from_pretrained(
        transformers.AutoModelForCausalLM.from_pretrained(base), adapters[0]
    ).eval()
    with torch.inference_mode():
        expected = own(input_ids=prompt).logits[:, -1]
    empty = torch.empty(1, 0, dtype=torch.long)
    torch.testing.assert_close(first.step(first.encode(prompt), empty), expected)
    assert not torch.allclose(second.step(second.encode(prompt), empty), expected)


def test_changed_files_and_missing_weights_are_named(tmp_path: Path) -> None:
    folder = save_marian(tmp_path / "marian", 1)
    (member,) = huggingface_members("mine", SETTINGS | {"models": [str(folder)]})
    member.check_weights()
    tokenizer = load_tokenizer(member)
    config = folder / "config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text + " ", encoding="utf-8")
    with pytest.raises(DataError, match=r"config\.json: missing, or changed since"):
        member.check_weights()
    deeper = text.replace('"decoder_layers": 1', '"decoder_layers": 2')
    config.write_text(deeper, encoding="utf-8")
    tokenizer = load_tokenizer(member)
    with pytest.raises(DataError, match=r"weights are missing \(.*layers\.1"):
        load_member(member, tokenizer, "cpu", "float32")
