"""Tiny models, built from configurations and trained for seconds to reverse a sequence."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from omegaconf import OmegaConf

from pipeline.decoding.test_set import Sentence
from pipeline.huggingface.causal import CausalMember
from pipeline.huggingface.control_tokens import control_tokens
from pipeline.huggingface.encoder_decoder import EncoderDecoderMember, SpeechMember
from pipeline.run.settings import CONF, DecodeConfig

VOCAB, WIDTH, PAD, EOS, BOS = 24, 32, 0, 1, 2
LANGUAGE = BOS
FIRST_WORD, LONGEST = 4, 7
SEPARATOR = 3
_COMMON = {"vocab_size": VOCAB, "pad_token_id": PAD, "eos_token_id": EOS}
_BART = _COMMON | {
    "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": WIDTH, "decoder_ffn_dim": WIDTH,
    "max_position_embeddings": 32, "dropout": 0.0, "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}  # fmt: skip


def _marian() -> Any:
    config = transformers.MarianConfig(
        **_BART, decoder_start_token_id=PAD, forced_eos_token_id=None
    )
    return transformers.MarianMTModel(config)


def _bart() -> Any:
    config = transformers.BartConfig(
        **_BART, bos_token_id=BOS, decoder_start_token_id=EOS, forced_eos_token_id=None
    )  # fmt: skip
    model = transformers.BartForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = BOS
    return model


def _mbart() -> Any:
    config = transformers.MBartConfig(
        **_BART, bos_token_id=None, decoder_start_token_id=LANGUAGE, forced_eos_token_id=None
    )
    return transformers.MBartForConditionalGeneration(config)


def _nllb() -> Any:
    config = transformers.M2M100Config(**_BART, decoder_start_token_id=EOS)
    model = transformers.M2M100ForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = LANGUAGE
    return model


def _t5() -> Any:
    config = transformers.T5Config(
        **_COMMON, d_model=WIDTH, d_kv=16, d_ff=WIDTH, num_layers=1, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=PAD, feed_forward_proj="relu",
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def _whisper() -> Any:
    settings = {key: value for key, value in _BART.items() if key != "max_position_embeddings"}
    config = transformers.WhisperConfig(
        **settings, num_mel_bins=VOCAB, max_source_positions=16, max_target_positions=32,
        bos_token_id=BOS, decoder_start_token_id=BOS, begin_suppress_tokens=[SEPARATOR, EOS],
        suppress_tokens=None,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config)
    model.generation_config.begin_suppress_tokens = [SEPARATOR, EOS]
    return model


def _gpt2() -> Any:
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=32, n_embd=WIDTH, n_layer=2, n_head=2, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=EOS, eos_token_id=EOS, pad_token_id=EOS,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


BUILDERS = {
    "marian": _marian, "bart": _bart, "mbart": _mbart, "nllb": _nllb, "t5": _t5,
    "whisper": _whisper, "gpt2": _gpt2,
}  # fmt: skip
STARTS = {
    "marian": [PAD], "t5": [PAD], "bart": [EOS, BOS], "mbart": [LANGUAGE],
    "nllb": [EOS, LANGUAGE], "whisper": [BOS, SEPARATOR],
}  # fmt: skip


def words_of(random: Any) -> list[int]:
    count = int(random.integers(2, LONGEST + 1))
    return [int(word) for word in random.integers(FIRST_WORD, VOCAB, count)]


def source_of(name: str, words: list[int]) -> Any:
    """Return what the model encodes: ids, a prompt, or for Whisper frames."""
    if name == "gpt2":
        return [*words, SEPARATOR]
    if name != "whisper":
        return [*words, EOS]
    frames = np.zeros((32, VOCAB), np.float32)
    for place, word in enumerate(words):
        frames[4 * place : 4 * place + 4, word] = 3.0
    return frames


def sentences_of(name: str, count: int = 12, seed: int = 1) -> list[Sentence]:
    random = np.random.default_rng(seed)
    words = [words_of(random) for _ in range(count)]
    return [
        Sentence(index, source_of(name, row), [*row[::-1], EOS]) for index, row in enumerate(words)
    ]


@cache
def trained(name: str, seed: int) -> Any:
    """Return a model that reverses sequences, but not perfectly."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = BUILDERS[name]()
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    random = np.random.default_rng(seed)
    for _ in range(150):
        words = [words_of(random) for _ in range(16)]
        optimiser.zero_grad()
        _loss(model, name, words).backward()
        optimiser.step()
    return model.eval()


def _loss(model: Any, name: str, words: list[list[int]]) -> torch.Tensor:
    targets = [[*row[::-1], EOS] for row in words]
    if name == "gpt2":
        rows = [[*row, SEPARATOR, *target] for row, target in zip(words, targets, strict=True)]
        labels = [
            [-100] * (len(row) + 1) + target for row, target in zip(words, targets, strict=True)
        ]
        tokens = _filled(rows, EOS)
        return model(input_ids=tokens, labels=_filled(labels, -100)).loss
    prefix = [[*STARTS[name], *target[:-1]] for target in targets]
    labels = [[-100] * (len(STARTS[name]) - 1) + target for target in targets]
    settings: dict[str, Any] = {}
    sources = [source_of(name, row) for row in words]
    if name == "whisper":
        frames = np.stack(sources).transpose(0, 2, 1)
        settings["input_features"] = torch.from_numpy(frames.copy())
    else:
        tokens = _filled(sources, -1)
        settings |= {"input_ids": tokens.clamp(min=0), "attention_mask": (tokens >= 0).long()}
    logits = model(decoder_input_ids=_filled(prefix, EOS), **settings).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), _filled(labels, -100).flatten())


def _filled(rows: list[list[int]], value: int) -> torch.Tensor:
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


@pytest.fixture(scope="session")
def member_of() -> Callable[[str, int], Any]:
    def make(name: str, seed: int = 1) -> Any:
        model = trained(name, seed)
        start = tuple(STARTS[name]) if name == "whisper" else None
        tokens = control_tokens(model.config, model.generation_config, name, start=start)
        kind = {"gpt2": CausalMember, "whisper": SpeechMember}.get(name, EncoderDecoderMember)
        return kind(model, tokens)

    return make


@pytest.fixture
def decode_config() -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        return OmegaConf.merge(
            OmegaConf.structured(DecodeConfig),
            OmegaConf.load(CONF / "decode" / "beam.yaml"),
            {"seed": 0, "max_length_ratio": 0.0, "max_length_offset": 20, "min_length": 0},
            settings,
        )

    return make
