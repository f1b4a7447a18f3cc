"""The sentences of a translation task: cleaned, split by page, nothing held out in training."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.config import DataConfig
from pipeline.data.clean import PIVOT, LengthRange, clean
from pipeline.data.corpus import AlignedSentence, Corpus, align
from pipeline.data.libreoffice import read_libreoffice
from pipeline.data.near_duplicates import near_duplicates
from pipeline.data.split import HeldOut, hold_out
from pipeline.errors import DataError

# Every pair holds out the same pages, and finds its test sentences in all of these languages.
SHARED_LANGUAGES = frozenset({"de", "en", "fr"})
_SOURCES: dict[str, Callable[[DataConfig, list[str]], Corpus]] = {"libreoffice": read_libreoffice}
_log = logging.getLogger(__name__)

Counts = dict[str, int]


@dataclass(frozen=True)
class ParallelData:
    """The sentences of each set, the corpus that they are from, and the counts of every step."""

    corpus: Corpus
    train: list[AlignedSentence]
    dev: list[AlignedSentence]
    test: list[AlignedSentence]
    counts: dict[str, Counts]


def make_parallel_data(
    data: DataConfig, pair: tuple[str, str], languages: set[str], seed: int
) -> ParallelData:
    """Train sentences of `pair`; dev and test sentences in all of `languages` and the shared ones.

    Raises DataError where a set would be empty; MachineError where the corpus cannot be had.
    """
    every = sorted(SHARED_LANGUAGES | languages)
    corpus = _SOURCES[data.source](data, every)
    length = LengthRange(data.min_words, data.max_words)
    counts: dict[str, Counts] = {}

    def cleaned(step: str, wanted: list[str]) -> list[AlignedSentence]:
        aligned, counts[f"align_{step}"] = align(corpus.paragraphs, wanted)
        kept, counts[f"clean_{step}"] = clean(aligned, length)
        return kept

    held_out = hold_out(cleaned("held_out", every), data.test_sentences, data.dev_sentences, seed)
    train, split = _train_sentences(cleaned("train", sorted(pair)), held_out, data, seed)
    counts["split"] = {
        "held_out_pages": len(held_out.pages),
        "test": len(held_out.test),
        "dev": len(held_out.dev),
        **split,
    }
    for step, numbers in counts.items():
        _log.info("%s: %s", step, ", ".join(f"{name} {n}" for name, n in numbers.items()))
    for name, sentences in (("test", held_out.test), ("dev", held_out.dev), ("train", train)):
        if not sentences:
            raise DataError(
                f"the {name} set of {corpus.name} must hold a sentence, got none with "
                f"data.min_words={data.min_words}, data.max_words={data.max_words}, "
                f"data.test_sentences={data.test_sentences}, "
                f"data.dev_sentences={data.dev_sentences}"
            )
    return ParallelData(corpus, train, held_out.dev, held_out.test, counts)


def _train_sentences(
    sentences: list[AlignedSentence], held_out: HeldOut, data: DataConfig, seed: int
) -> tuple[list[AlignedSentence], Counts]:
    """The sentences on other pages, without what is nearly held out; and counts."""
    elsewhere = [sentence for sentence in sentences if sentence.page not in held_out.pages]
    near = near_duplicates(
        [sentence.text[PIVOT] for sentence in elsewhere],
        [sentence.text[PIVOT] for sentence in held_out.test + held_out.dev],
        data.near_duplicate_jaccard,
    )
    train = [sentence for sentence, is_near in zip(elsewhere, near, strict=True) if not is_near]
    distinct = len(train)
    if data.train_sentences is not None and data.train_sentences < distinct:
        chosen = random.Random(seed).sample(range(distinct), data.train_sentences)
        train = [train[number] for number in sorted(chosen)]
    return train, {
        "train_dropped_held_out_page": len(sentences) - len(elsewhere),
        "train_dropped_near_duplicate": len(elsewhere) - distinct,
        "train_dropped_over_train_sentences": distinct - len(train),
        "train": len(train),
    }
