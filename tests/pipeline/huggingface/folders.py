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
_SIDE = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
}  # fmt: skip


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
