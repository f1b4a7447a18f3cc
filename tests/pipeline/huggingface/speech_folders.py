"""Folders of tiny Whisper and Speech2Text models, and of audio in which a word is a tone."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import soundfile
import tokenizers
import torch
import transformers
from numpy.typing import NDArray

RATE = 16000
WORDS = ("red", "green", "blue", "door", "lamp")
WINDOW_SECONDS = 1
_WORD_SECONDS = 0.2
_SPECIAL = (
    "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>",
    "<|transcribe|>", "<|notimestamps|>",
)  # fmt: skip
_SIZE = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "dropout": 0.0,
    "max_target_positions": 24,
}  # fmt: skip


def sound(words: list[str], random: Any) -> NDArray[np.float32]:
    """Return one tone per word, with noise."""
    time = np.arange(round(_WORD_SECONDS * RATE)) / RATE
    tones = [np.sin(2 * np.pi * 300 * 1.6 ** WORDS.index(word) * time) for word in words]
    clean = 0.1 * np.concatenate(tones)
    noisy: NDArray[np.float32] = (clean + 0.05 * random.standard_normal(len(clean))).astype("f4")
    return noisy


def utterances(count: int, seed: int) -> list[tuple[list[str], NDArray[np.float32]]]:
    """Return the words and samples of utterances of one to four words."""
    random = np.random.default_rng(seed)
    drawn = [
        [WORDS[word] for word in random.integers(0, len(WORDS), random.integers(1, 5))]
        for _ in range(count)
    ]
    return [(words, sound(words, random)) for words in drawn]


def write_audio_folder(folder: Path, count: int, seed: int, suffix: str = ".wav") -> Path:
    """Write utterances as audio files, each with a .txt beside it."""
    folder.mkdir(parents=True)
    for index, (words, samples) in enumerate(utterances(count, seed)):
        path = folder / f"{index:02d}{suffix}"
        soundfile.write(path, samples, RATE)
        path.with_suffix(".txt").write_text(f"{' '.join(words).capitalize()}.", encoding="utf-8")
    return folder


def whisper_processor(**extractor: Any) -> Any:
    """Return a byte-level tokenizer of the words, and an extractor for a window of a second."""
    trainer = tokenizers.ByteLevelBPETokenizer()
    trainer.train_from_iterator([" ".join(WORDS)] * 9, 300)
    content = json.loads(trainer.to_str())["model"]
    vocabulary = content["vocab"] | {
        word: len(content["vocab"]) + index for index, word in enumerate(_SPECIAL)
    }
    tokenizer = transformers.WhisperTokenizer(
        vocabulary, [tuple(merge) for merge in content["merges"]],
        additional_special_tokens=list(_SPECIAL[1:]), pad_token=_SPECIAL[0],
    )  # fmt: skip
    settings = {"feature_size": 16, "chunk_length": WINDOW_SECONDS} | extractor
    return transformers.WhisperProcessor(
        transformers.WhisperFeatureExtractor(**settings), tokenizer
    )


def _whisper(processor: Any) -> Any:
    token = processor.tokenizer.get_vocab()
    end, start, *_ = (token[word] for word in _SPECIAL)
    config = transformers.WhisperConfig(
        **_SIZE, vocab_size=len(token), num_mel_bins=16, pad_token_id=end, eos_token_id=end,
        bos_token_id=end, decoder_start_token_id=start, max_source_positions=50,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=end, pad_token_id=end, decoder_start_token_id=start, is_multilingual=True,
        lang_to_id={word: token[word] for word in ("<|en|>", "<|de|>")},
        task_to_id={task: token[f"<|{task}|>"] for task in ("translate", "transcribe")},
        no_timestamps_token_id=token["<|notimestamps|>"], suppress_tokens=[token["z"]],
        begin_suppress_tokens=[token["Ġ"], end],
    )  # fmt: skip
    return model


@cache
def trained_whisper(seed: int) -> tuple[Any, Any]:
    """Return a model that is trained for seconds to recognise the words, and its processor."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    processor = whisper_processor()
    model = _whisper(processor)
    token = processor.tokenizer.get_vocab()
    prompt = [token[f"<|{word}|>"] for word in ("en", "transcribe", "notimestamps")]

    def labels(words: list[str]) -> list[int]:
        text = processor.tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
        return [*prompt, *text, model.config.eos_token_id]

    _train(model, processor.feature_extractor, labels, seed, padding="max_length")
    return model.eval(), processor


def _train(model: Any, extractor: Any, labels: Any, seed: int, **settings: Any) -> None:
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(80):
        batch = utterances(8, 1000 * seed + step)
        inputs = extractor(
            [samples for _, samples in batch], sampling_rate=RATE, return_tensors="pt", **settings
        )
        rows = [torch.tensor(labels(words)) for words, _ in batch]
        target = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)
        optimiser.zero_grad()
        model(**inputs, labels=target).loss.backward()
        optimiser.step()


def save_whisper(folder: Path, seed: int) -> Path:
    """Write a trained Whisper model."""
    model, processor = trained_whisper(seed)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@cache
def trained_speech2text(seed: int, folder: Path) -> tuple[Any, Any]:
    """Return a trained model and its processor, whose vocabulary is written to the folder."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    processor = _speech2text_processor(folder)
    config = transformers.Speech2TextConfig(
        **_SIZE, vocab_size=len(processor.tokenizer), pad_token_id=1, bos_token_id=0,
        eos_token_id=2, decoder_start_token_id=2, max_source_positions=100,
        input_feat_per_channel=16, conv_channels=32, conv_kernel_sizes=[5, 5],
    )  # fmt: skip
    model = transformers.Speech2TextForConditionalGeneration(config)

    def labels(words: list[str]) -> list[int]:
        ids: list[int] = processor.tokenizer(" ".join(words))["input_ids"]
        return ids

    _train(model, processor.feature_extractor, labels, seed, padding=True)
    return model.eval(), processor


def _speech2text_processor(folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    spm = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)] * 9), model_writer=spm, vocab_size=40,
        minloglevel=2, hard_vocab_limit=False, pad_id=1, bos_id=0, eos_id=2, unk_id=3,
    )  # fmt: skip
    (folder / "words.spm").write_bytes(spm.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spm.getvalue())
    content = {pieces.id_to_piece(index): index for index in range(len(pieces))}
    (folder / "words.json").write_text(json.dumps(content), encoding="utf-8")
    return transformers.Speech2TextProcessor(
        transformers.Speech2TextFeatureExtractor(feature_size=16, num_mel_bins=16),
        transformers.Speech2TextTokenizer(str(folder / "words.json"), str(folder / "words.spm")),
    )


def save_speech2text(folder: Path, seed: int) -> Path:
    """Write a trained Speech2Text model."""
    model, processor = trained_speech2text(seed, folder.parent / "vocabulary")
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
