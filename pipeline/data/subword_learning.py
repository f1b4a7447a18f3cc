"""Learning the sentencepiece model of a task, and counting its subwords."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from pipeline.data.subwords import SentencePieceModel
from pipeline.errors import ConfigError

# An even sample of a larger corpus suffices, and sentencepiece keeps all of it in memory.
_MAX_TEXTS = 4_000_000


def evenly_spaced(texts: Iterable[str], n_text: int, max_texts: int = _MAX_TEXTS) -> Iterator[str]:
    """Take at most `max_texts` of `n_text` texts, evenly spaced."""
    step = max(1, math.ceil(n_text / max_texts))
    # An even step would only take one language if source and target alternate.
    return islice(texts, 0, None, step if step == 1 or step % 2 else step + 1)


def learn_subwords(
    texts: Iterable[str],
    vocabulary_size: int,
    size_key: str = "data.vocabulary_size",
    required_characters: str = "",
    model_type: str = "bpe",
) -> SentencePieceModel:
    """Learn a sentencepiece model; equal texts give equal bytes.

    Text is not normalised, so that subwords can be joined to the same text again.
    `vocabulary_size` includes three control symbols, and `size_key` is the setting it comes from.
    `required_characters` are in the vocabulary even if no text contains them. `model_type` is bpe
    or unigram. Raises ConfigError if the size does not suit the texts.
    """
    try:
        return _train(
            texts,
            model_type=model_type,
            vocab_size=vocabulary_size,
            required_chars=required_characters,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2].strip()
        raise ConfigError(
            f"{size_key}: does not suit the training text (got {vocabulary_size}: {reason})."
        ) from None


def learn_words(texts: Iterable[str]) -> SentencePieceModel:
    """Make a sentencepiece model in which every word of the texts is one subword."""
    return _train(texts, model_type="word", use_all_vocab=True)


def _train(texts: Iterable[str], **settings: Any) -> SentencePieceModel:
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=(" ".join(text.split()) for text in texts),
        model_writer=model,
        character_coverage=1.0,
        normalization_rule_name="identity",
        num_threads=1,
        shuffle_input_sentence=False,
        minloglevel=2,
        **settings,
    )
    return SentencePieceModel(model.getvalue())


def subword_counts(vocabulary: Sequence[str], sentences: Iterable[Sequence[str]]) -> dict[str, int]:
    """Count each subword of a vocabulary in `sentences`, in the vocabulary's order."""
    counts = Counter(subword for sentence in sentences for subword in sentence)
    return {subword: counts[subword] for subword in vocabulary}
