"""Folders of tiny random models with tokenizers that are made here, without any download."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
import torch
import transformers

TEXTS = [f"source {index} w{index} and more words" for index in range(10)]
# Settings of an ensemble, without models.
SETTINGS: dict[str, Any] = {
    "models": [], "adapters": [], "prompt": None, "source_language": None,
    "target_language": None, "allow_download": False, "members": None, "rate": 0.1, "seed": 0,
}  # fmt: skip
_SIDE = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
}  # fmt: skip


# Control tokens as mBART and NLLB number them.
_CONTROL = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0)]


def _sentencepiece(**settings: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 3), model_writer=model, vocab_size=40, minloglevel=2,
        hard_vocab_limit=False, **settings,
    )  # fmt: skip
    return model.getvalue()


def save_marian(folder: Path, seed: int) -> Path:
    """Write a Marian model with sentencepiece models of both sides, as converted from OPUS."""
    folder.mkdir(parents=True)
    spm = _sentencepiece(model_type="unigram")
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    pieces = [processor.id_to_piece(index) for index in range(len(processor))]
    words = [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]
    vocabulary = ["</s>", "<unk>", *words, "<pad>"]
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(spm)
    content = {piece: index for index, piece in enumerate(vocabulary)}
    (folder / "vocab.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = transformers.MarianTokenizer(
        *(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")),
        source_lang="en", target_lang="de",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    pad = content["<pad>"]
    config = transformers.MarianConfig(
        **_SIDE, vocab_size=len(vocabulary), pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, max_position_embeddings=64, forced_eos_token_id=0,
        tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = transformers.MarianMTModel(config)
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(folder)
    return folder


def save_t5(folder: Path, seed: int) -> Path:
    """Write a T5 model with a unigram tokenizer; padding starts every prefix."""
    control = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0)]
    tokenizer = transformers.T5Tokenizer(vocab=[*control, *_scored_pieces()], extra_ids=2)
    config = transformers.T5Config(
        vocab_size=len(tokenizer) + 4, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0, feed_forward_proj="gated-gelu",
    )  # fmt: skip
    return _save(folder, seed, tokenizer, transformers.T5ForConditionalGeneration, config)


def save_bart(folder: Path, seed: int) -> Path:
    """Write a BART model with a byte-level tokenizer; <s> is forced after </s>."""
    trainer = tokenizers.ByteLevelBPETokenizer()
    control = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer.train_from_iterator(TEXTS, 300, special_tokens=control)
    tokenizer = transformers.BartTokenizer(**_bpe(trainer))
    config = transformers.BartConfig(
        **_SIDE, vocab_size=len(tokenizer), max_position_embeddings=64, decoder_start_token_id=2,
    )  # fmt: skip
    generation = {"forced_bos_token_id": 0, "decoder_start_token_id": 2}
    return _save(
        folder, seed, tokenizer, transformers.BartForConditionalGeneration, config, **generation
    )


def save_mbart(folder: Path, seed: int) -> Path:
    """Write an mBART model: targets end with their language, and prefixes begin with it."""
    tokenizer = transformers.MBartTokenizer(vocab=[*_CONTROL, *_scored_pieces()])
    return _save_mbart(folder, seed, tokenizer)


def save_mbart50(folder: Path, seed: int) -> Path:
    """Write an mBART-50 model: targets begin with their language."""
    tokenizer = transformers.MBart50Tokenizer(vocab=[*_CONTROL, *_scored_pieces()])
    return _save_mbart(folder, seed, tokenizer, decoder_start_token_id=2)


def _save_mbart(folder: Path, seed: int, tokenizer: Any, **generation: Any) -> Path:
    config = transformers.MBartConfig(
        **_SIDE, vocab_size=len(tokenizer), max_position_embeddings=64, forced_eos_token_id=None,
    )  # fmt: skip
    model = transformers.MBartForConditionalGeneration
    return _save(folder, seed, tokenizer, model, config, **generation)


def save_nllb(folder: Path, seed: int) -> Path:
    """Write an NLLB model with two languages, whose tokens begin sources and targets."""
    trainer = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    control = [name for name, _ in _CONTROL]
    settings = tokenizers.trainers.BpeTrainer(
        vocab_size=60, special_tokens=control, show_progress=False
    )
    trainer.train_from_iterator(TEXTS, settings)
    tokenizer = transformers.NllbTokenizer(
        **_bpe(trainer), extra_special_tokens=["eng_Latn", "deu_Latn"]
    )
    config = transformers.M2M100Config(
        **_SIDE, vocab_size=len(tokenizer), max_position_embeddings=64, decoder_start_token_id=2,
    )  # fmt: skip
    return _save(folder, seed, tokenizer, transformers.M2M100ForConditionalGeneration, config)


def _scored_pieces() -> list[tuple[str, float]]:
    spm = _sentencepiece(model_type="unigram")
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    return [(piece, score) for piece, score in pieces if piece not in ("<unk>", "<s>", "</s>")]


def _bpe(trainer: Any) -> dict[str, Any]:
    """Return vocabulary and merges of a trained tokenizer."""
    model = json.loads(trainer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(merge) for merge in model["merges"]]}


def _save(
    folder: Path, seed: int, tokenizer: Any, model_class: Any, config: Any, **generation: Any
) -> Path:
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    model = model_class(config)
    for name, value in generation.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder)
    return folder


def save_causal(folder: Path, seed: int) -> Path:
    """Write a GPT-2 model with a byte-level BPE tokenizer, in which padding is EOS."""
    folder.mkdir(parents=True)
    trainer = tokenizers.ByteLevelBPETokenizer()
    trainer.train_from_iterator(TEXTS, 300, special_tokens=["<|endoftext|>"])
    trainer.save_model(str(folder))
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=96, n_embd=16, n_layer=1, n_head=2,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(seed)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder
