"""One model with several dropout masks: each is folded into weights, and so is one fixed model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.scoring import score_targets
from pipeline.ensembles.ensemble import load_member
from pipeline.ensembles.huggingface import huggingface_members
from pipeline.errors import ConfigError
from pipeline.huggingface.control_tokens import control_tokens
from pipeline.huggingface.dropout_masks import fold_dropout
from pipeline.huggingface.encoder_decoder import EncoderDecoderMember
from pipeline.huggingface.loader import load_tokenizer
from pipeline.run.settings import decode_settings
from tests.pipeline.huggingface.conftest import BUILDERS, sentences_of
from tests.pipeline.huggingface.folders import SETTINGS, save_marian

_LLAMA = {
    "vocab_size": 24, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 2,
}  # fmt: skip
# Model -> names of the modules after which units are dropped, and before which: those that give
# the outputs of attention and of feed-forward networks, and the last map of the latter.
PLACES: dict[str, tuple[tuple[str, ...], str]] = {
    "marian": (("self_attn", "encoder_attn", "fc2"), "fc2"),
    "nllb": (("self_attn", "encoder_attn", "fc2"), "fc2"),
    "whisper": (("self_attn", "encoder_attn", "fc2"), "fc2"),
    "t5": (("SelfAttention", "EncDecAttention", "wo"), "wo"),
    "gpt2": (("attn", "mlp"), "c_proj of mlp"),
    "llama": (("self_attn", "down_proj"), "down_proj"),
}


def built(name: str) -> Any:
    torch.manual_seed(3)
    if name == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**_LLAMA)).eval()
    return BUILDERS[name]().eval()


def logits_of(model: Any, name: str) -> torch.Tensor:
    tokens = torch.tensor([[5, 6, 7, 1], [9, 8, 1, 1]])
    inputs: dict[str, Any] = {"input_ids": tokens}
    if name == "whisper":
        torch.manual_seed(0)
        inputs = {"input_features": torch.randn(2, 24, 32)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    with torch.inference_mode():
        logits: torch.Tensor = model(**inputs).logits
    return logits


def _masked(value: Any, mask: torch.Tensor) -> Any:
    return (value[0] * mask, *value[1:]) if isinstance(value, tuple) else value * mask


@pytest.mark.parametrize("name", PLACES)
def test_folded_masks_are_masks_of_the_hidden_units(name: str) -> None:
    """With hooks that multiply what modules return or take by the mask, logits are the same."""
    folded, hooked = built(name), built(name)
    fold_dropout(folded, 0.25, seed=7)
    after, before = PLACES[name]
    original, changed = dict(hooked.named_parameters()), dict(folded.named_parameters())
    n_dropped = 0
    for path, module in hooked.named_modules():
        weight = next(
            (f"{path}.{last}weight" for last in ("", "out_proj.", "o.", "c_proj.", "o_proj.")
             if f"{path}.{last}weight" in original), None
        )  # fmt: skip
        if weight is None or path.rpartition(".")[2] not in after:
            continue
        # Which units are dropped is read off the weights; that all else is equal, off the logits.
        kept = changed[weight] / original[weight]
        if name == "gpt2":
            kept = kept.t()
        outputs = kept.abs().amax(dim=1) > 0
        hidden = kept.abs().amax(dim=0) > 0
        n_dropped += int((~outputs).sum())
        scale = 1 / 0.75
        module.register_forward_hook(
            lambda _, __, value, mask=outputs * scale: _masked(value, mask)
        )
        if before in (path.rpartition(".")[2], f"c_proj of {path.rpartition('.')[2]}"):
            target = module.c_proj if name == "gpt2" else module
            target.register_forward_pre_hook(
                lambda _, values, mask=hidden * scale: (values[0] * mask,)
            )
    assert n_dropped > 0
    expected = logits_of(hooked, name)
    torch.testing.assert_close(logits_of(folded, name), expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(expected, logits_of(built(name), name), atol=1e-3)


def test_a_mask_is_fixed_by_its_seed_and_rates_are_those_of_training() -> None:
    def folded(rate: float | None, seed: int, **config: float) -> torch.Tensor:
        model = built("marian")
        for name, value in config.items():
            setattr(model.config, name, value)
        fold_dropout(model, rate, seed)
        return logits_of(model, "marian")

    assert torch.equal(folded(0.2, 1), folded(0.2, 1))
    assert not torch.equal(folded(0.2, 1), folded(0.2, 2))
    both = {"dropout": 0.2, "activation_dropout": 0.2}
    assert torch.equal(folded(None, 1, **both), folded(0.2, 1))
    with pytest.raises(ConfigError, match=r"trained without dropout .*\(got null\)"):
        folded(None, 1, dropout=0.0, activation_dropout=0.0)


def test_architectures_whose_units_are_not_known_are_refused_by_name() -> None:
    config = transformers.BloomConfig(vocab_size=24, hidden_size=16, n_layer=1, n_head=2)
    with pytest.raises(ConfigError, match=r"masks are not known for models of type bloom"):
        fold_dropout(transformers.BloomForCausalLM(config), 0.1, 1)


def test_search_agrees_with_rescoring_and_with_decoding_alone() -> None:
    members = []
    for seed in (1, 2):
        model = built("marian")
        fold_dropout(model, 0.1, seed)
        tokens = control_tokens(model.config, model.generation_config, "marian")
        members.append(EncoderDecoderMember(model, tokens))
    ensemble = as_ensemble(members)
    config = decode_settings(beam=3, max_length_offset=6)
    sentences = sentences_of("marian", 4)
    for sentence, (best, *_) in zip(
        sentences, beam_search(ensemble, sentences, "prex", config), strict=True
    ):
        ((alone, *_),) = beam_search(ensemble, [sentence], "prex", config)
        forced = replace(sentence, target=best.token_id.tolist())
        ((rescored,),) = score_targets(ensemble, [forced], "prex", config)
        assert alone.token_id.tolist() == best.token_id.tolist()
        for other in (alone, rescored):
            assert other.score == pytest.approx(best.score, abs=1e-5)


def test_masks_of_one_model_are_members(tmp_path: Path) -> None:
    folder = str(save_marian(tmp_path / "marian", 1))
    settings = SETTINGS | {"models": [folder], "members": 3, "rate": 0.2, "seed": 5}
    members = huggingface_members("dropout", settings)
    assert [member.name for member in members] == ["dropout_1", "dropout_2", "dropout_3"]
    assert [member.mask.seed for member in members if member.mask] == [5, 6, 7]
    assert len({member.model_sha256 for member in members}) == 3
    tokenizer = load_tokenizer(members[0])
    loaded = [load_member(member, tokenizer, "cpu", "float32").model for member in members]
    weights = [model.model.decoder.layers[0].fc2.weight for model in loaded]
    assert not torch.equal(weights[0], weights[1])
    with pytest.raises(ConfigError, match=r"must be one model if members is set \(got 2\)"):
        huggingface_members("dropout", settings | {"models": [folder, folder]})
