"""Sizes of test sets: as prepared, or as expected from the paper's tables and the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.data.paper_corpora import SPEECH_FRAMES_PER_WORD, TEST_SETS, paper_corpus
from pipeline.decoding.inputs import Prepared
from pipeline.decoding.test_set import read_test_set
from pipeline.errors import DataError
from pipeline.run.settings import PipelineConfig, TestSetConfig

SUBWORDS_PER_WORD = 1.3  # of a joint BPE, with EOS and punctuation; an assumption
_DEFAULT_SET = TEST_SETS["newstest14"]


@dataclass(frozen=True)
class SetSize:
    """Number of sentences, and their mean lengths in tokens (source of speech: in frames)."""

    sentences: int
    source_length: float
    target_length: float


def set_sizes(config: PipelineConfig) -> tuple[dict[str, SetSize], bool]:
    """Sizes of all test sets by name, and whether they were read from prepared data."""
    task = config.task
    folder = Path(config.io.root) / "prepare" / task.name
    prepared = Prepared(folder, task.source_language, task.target_language)
    if not (folder / "manifest.json").is_file():
        return {
            name: _expected_size(config, test_set) for name, test_set in task.test_sets.items()
        }, False
    absent = prepared.absent_sets()
    present = [name for name in task.test_sets if name not in absent]
    return {name: _prepared_size(prepared.test_set(name)) for name in present}, True


def baseline_size(config: PipelineConfig, sizes: Mapping[str, SetSize]) -> SetSize:
    """Size of the test set that is like the training data.

    Raises DataError if it could not be prepared.
    """
    names = (name for name, test_set in config.task.test_sets.items() if test_set.baseline)
    name = next(names)
    if name not in sizes:
        raise DataError(
            f"task.test_sets.{name}: could not be prepared, so that the lengths of sentences are "
            "not known. See the log of stage prepare, or choose another set with baseline: true."
        )
    return sizes[name]


def target_share(config: PipelineConfig, size: SetSize) -> float:
    """Target tokens per source token (or frame) of a training batch.

    A batch of text has the same number of tokens on both sides, padding included.
    """
    return size.target_length / size.source_length if config.task.family == "speech" else 1.0


def _prepared_size(path: Path) -> SetSize:
    sentences = read_test_set(path)
    n_sentence = len(sentences)
    target = sum(sentence.expected_tokens for sentence in sentences) / n_sentence
    utterances = sentences[0].utterances
    frames = target if utterances is None else float(utterances.n_frame.sum()) / n_sentence
    return SetSize(n_sentence, frames, target)


def _expected_size(config: PipelineConfig, test_set: TestSetConfig) -> SetSize:
    paper = paper_corpus(test_set) or _DEFAULT_SET
    language = test_set.language or config.task.source_language
    n_sentence = min(paper.sentences, config.data.test_sentences)
    words = paper.words.get(language, next(iter(paper.words.values())))
    if config.task.family == "speech":
        return SetSize(n_sentence, words * SPEECH_FRAMES_PER_WORD, words * SUBWORDS_PER_WORD)
    data = config.data
    words = min(words, (data.min_words + data.max_words) / 2)
    return SetSize(n_sentence, words * SUBWORDS_PER_WORD, words * SUBWORDS_PER_WORD)
