"""The subwords of a task: learnt from its training data, or imported with trained models."""

from __future__ import annotations

import io
import math
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.data.subwords import (
    CODES_FILE,
    MODEL_FILE,
    MosesBpeModel,
    SentencePieceModel,
    SubwordModel,
    read_sentencepiece_model,
)
from pipeline.data.text.corpus import SpooledSentences
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary, write_dictionaries
from pipeline.run.settings import DataConfig, UnitsConfig

VOCABULARY_FILE = "units.vocab"
# sentencepiece keeps all text in memory. An evenly spaced sample of a larger corpus suffices.
_MAX_TEXTS = 4_000_000
# sentencepiece's reason; its last number counts the characters and the control symbols.
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


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
        if too_small := _TOO_SMALL.search(reason):
            raise ConfigError(
                f"{size_key}: must be at least {too_small[1]}, since each character of the "
                f"training text is a subword (got {vocabulary_size}). Increase it."
            ) from None
        raise ConfigError(
            f"{size_key}: does not suit the training text (got {vocabulary_size}: {reason}). "
            f"Choose another size."
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


Pair = tuple[str, str]


@dataclass(frozen=True)
class LearntSubwords:
    """A sentencepiece model of the training text of both languages."""

    model: SentencePieceModel
    pair: Pair
    train: SpooledSentences

    def models(self, languages: Iterable[str]) -> Mapping[str, SubwordModel]:
        """Map each language to the subword model of all languages."""
        return dict.fromkeys(languages, self.model)

    def source_vocabulary(self) -> Sequence[str]:
        """List the subwords that the models know on the source side."""
        return self.model.vocabulary()

    def write(self, folder: Path) -> None:
        """Write the model, its vocabulary, and a joint dictionary for each language."""
        sides = (
            self.model.subwords(sentence.text[language])
            for language in self.pair
            for sentence in self.train
        )
        write_learnt_model(folder, self.model, self.pair, sides)


@dataclass(frozen=True)
class ImportedSubwords:
    """The user's BPE codes or sentencepiece model, with the dictionaries of both languages."""

    codes: Path | None
    model: Path | None
    pair: Pair
    dictionaries: tuple[Path, Path]

    def models(self, languages: Iterable[str]) -> Mapping[str, SubwordModel]:
        """Map each language to its subword model; raises DataError if the file is not one."""
        if self.codes is not None:
            codes = self.codes
            return {language: MosesBpeModel(codes, language) for language in languages}
        assert self.model is not None  # ensured by the checks of the configuration
        return dict.fromkeys(languages, read_sentencepiece_model(self.model))

    def source_vocabulary(self) -> Sequence[str]:
        """List the entries of the source dictionary; raises DataError if it is malformed."""
        symbols: list[str] = load_dictionary(self.dictionaries[0]).symbols
        return symbols

    def write(self, folder: Path) -> None:
        """Copy the files, unchanged, to the names they have in a prepared folder."""
        for path, name in ((self.codes, CODES_FILE), (self.model, MODEL_FILE)):
            if path is not None:
                shutil.copyfile(path, folder / name)
        (folder / "fairseq").mkdir()
        for language, path in zip(self.pair, self.dictionaries, strict=True):
            load_dictionary(path)
            shutil.copyfile(path, folder / "fairseq" / f"dict.{language}.txt")


class Words:
    """A `SubwordModel` of words, for test sets that the models' own tokenizer will cut."""

    def subwords(self, text: str) -> list[str]:
        """Divide a text at white space."""
        return text.split()

    def text(self, subwords: Sequence[str]) -> str:
        """Join words with spaces."""
        return " ".join(subwords)


class OwnSubwords:
    """No subwords: models bring their own tokenizer. Test sets are divided into words."""

    def models(self, languages: Iterable[str]) -> Mapping[str, SubwordModel]:
        """Map each language to words."""
        return dict.fromkeys(languages, Words())

    def source_vocabulary(self) -> Sequence[str] | None:
        """There is none, so that no subword is unknown."""
        return None

    def write(self, folder: Path) -> None:
        """Write a note in place of training data, since stage train depends on that folder."""
        (folder / "fairseq").mkdir()
        note = "Nothing is trained: the models bring their own tokenizer.\n"
        (folder / "fairseq" / "README").write_text(note, encoding="utf-8", newline="\n")


TaskSubwords = LearntSubwords | ImportedSubwords | OwnSubwords


def task_subwords(data: DataConfig, pair: Pair, train: SpooledSentences) -> TaskSubwords:
    """Learn or import the subwords of a translation task, as `data.units` says.

    Raises ConfigError if a file is missing, or if there is too little text to learn from.
    """
    units = data.units
    if units.name == "own":
        return OwnSubwords()
    if not is_imported(data):
        texts = (side for sentence in train for side in sentence.text.values())
        sample = evenly_spaced(texts, len(pair) * len(train))
        return LearntSubwords(learn_subwords(sample, data.vocabulary_size), pair, train)
    codes, model, source, target = (
        _file(units, name)
        for name in ("codes", "sentencepiece", "source_dictionary", "target_dictionary")
    )
    assert source is not None  # ensured by the checks of the configuration
    assert target is not None
    return ImportedSubwords(codes, model, pair, (source, target))


def is_imported(data: DataConfig) -> bool:
    """Tell whether subwords come with models that exist, in which case nothing is trained."""
    return data.units.name in ("imported", "own")


def write_learnt_model(
    folder: Path,
    model: SentencePieceModel,
    languages: Sequence[str],
    sentences: Iterable[Sequence[str]],
) -> None:
    """Write a learnt model, its vocabulary, and a joint dictionary for each language.

    The counts in the dictionary are how often each subword occurs in `sentences`.
    """
    model.write(folder / MODEL_FILE, folder / VOCABULARY_FILE)
    counts = subword_counts(model.vocabulary(), sentences)
    write_dictionaries(folder / "fairseq", languages, counts)


def _file(units: UnitsConfig, name: str) -> Path | None:
    path: str | None = getattr(units, name)
    if path is not None and not Path(path).is_file():
        raise ConfigError(
            f"data.units.{name}: no such file ({path}). Set it to a file of the imported models."
        )
    return None if path is None else Path(path)
