"""The sub-word units of a translation task: learnt from its text, or those of given models."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.data.subword_learning import evenly_spaced, learn_subwords, subword_counts
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

Pair = tuple[str, str]


@dataclass(frozen=True)
class LearntUnits:
    """A sentencepiece model of the training text of both languages."""

    model: SentencePieceModel
    pair: Pair
    train: SpooledSentences

    def of(self, languages: Iterable[str]) -> Mapping[str, SubwordModel]:
        """The units of each language: the same."""
        return dict.fromkeys(languages, self.model)

    def source_vocabulary(self) -> Sequence[str]:
        """Units that a source may have and models know."""
        return self.model.vocabulary()

    def write(self, folder: Path) -> None:
        """Write the model, its pieces, and one joint dictionary under the name of each language."""
        self.model.write(folder / MODEL_FILE, folder / "units.vocab")
        sides = (self.model.subwords(one.text[side]) for side in self.pair for one in self.train)
        counts = subword_counts(self.model.vocabulary(), sides)
        write_dictionaries(folder / "fairseq", self.pair, counts)


@dataclass(frozen=True)
class ImportedUnits:
    """Codes or a sentencepiece model, and the dictionaries of source and target: the user's own."""

    codes: Path | None
    model: Path | None
    pair: Pair
    dictionaries: tuple[Path, Path]

    def of(self, languages: Iterable[str]) -> Mapping[str, SubwordModel]:
        """The units of each language; DataError where the file holds none."""
        if self.codes is not None:
            codes = self.codes
            return {language: MosesBpeModel(codes, language) for language in languages}
        assert self.model is not None  # the configuration was checked
        return dict.fromkeys(languages, read_sentencepiece_model(self.model))

    def source_vocabulary(self) -> Sequence[str]:
        """Units that a source may have and models know; DataError for a faulty dictionary."""
        symbols: list[str] = load_dictionary(self.dictionaries[0]).symbols
        return symbols

    def write(self, folder: Path) -> None:
        """Write the same bytes under the names of a prepared folder."""
        for own, name in ((self.codes, CODES_FILE), (self.model, MODEL_FILE)):
            if own is not None:
                shutil.copyfile(own, folder / name)
        (folder / "fairseq").mkdir()
        for language, path in zip(self.pair, self.dictionaries, strict=True):
            load_dictionary(path)
            shutil.copyfile(path, folder / "fairseq" / f"dict.{language}.txt")


TaskUnits = LearntUnits | ImportedUnits


def task_units(data: DataConfig, pair: Pair, train: SpooledSentences) -> TaskUnits:
    """The units that `data.units` asks for.

    Raises ConfigError where a setting names no file, or the text is too little to learn from.
    """
    units = data.units
    if not is_imported(data):
        texts = (side for sentence in train for side in sentence.text.values())
        sample = evenly_spaced(texts, len(pair) * len(train))
        return LearntUnits(learn_subwords(sample, data.vocabulary_size), pair, train)
    codes, model, source, target = (
        _file(units, name)
        for name in ("codes", "sentencepiece", "source_dictionary", "target_dictionary")
    )
    assert source is not None  # the configuration was checked
    assert target is not None
    return ImportedUnits(codes, model, pair, (source, target))


def is_imported(data: DataConfig) -> bool:
    """Whether units are those of given models, so that nothing is trained."""
    return data.units.name == "imported"


def _file(units: UnitsConfig, name: str) -> Path | None:
    path: str | None = getattr(units, name)
    if path is not None and not Path(path).is_file():
        raise ConfigError(f"data.units.{name} must name a file, got {path}, which is none")
    return None if path is None else Path(path)
